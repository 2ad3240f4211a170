"""Changing the history policy: an audited action, refused while observers need the log."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from latchwork.decisions.states import HistoryPolicy
from latchwork.observer_views import HistoryOutcome, HistoryResult, SettingPreview
from latchwork.store import audit
from latchwork.store.dialects import lock_name
from latchwork.store.history_facts import (
    HISTORY_LOCK,
    read_history_policy,
    store_history_policy,
)
from latchwork.store.observer_queries import active_names

ACTION = "set_history_policy"
NAMED = 3
"""How many of the observers that stand in the way a sentence names."""


def set_history_policy(
    connection: Connection,
    policy: HistoryPolicy,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> HistoryResult:
    """Let ``policy`` be in force from now on; rows that are logged already stay as they are."""
    lock_name(connection, HISTORY_LOCK)
    if audit.detail_of_request(connection, request_id):
        return HistoryResult(HistoryOutcome.CHANGED, policy)
    before = read_history_policy(connection).policy
    if before is policy:
        return HistoryResult(HistoryOutcome.UNCHANGED, policy)
    needed_by = active_names(connection, now=now) if policy is HistoryPolicy.OFF else ()
    if needed_by:
        return HistoryResult(HistoryOutcome.REFUSED, before, needed_by)
    store_history_policy(connection, policy, now=now)
    audit.append(
        connection, at=now, actor=actor, action=ACTION, subject_kind="history", subject="policy",
        detail={"from": before.value, "to": policy.value}, request_id=request_id,
    )  # fmt: skip
    return HistoryResult(HistoryOutcome.CHANGED, policy)


def preview_history_policy(
    connection: Connection, policy: HistoryPolicy, *, now: datetime
) -> SettingPreview:
    """What setting ``policy`` would do now."""
    if read_history_policy(connection).policy is policy:
        return SettingPreview(allowed=False, reason="This is the policy in force.")
    needed_by = active_names(connection, now=now) if policy is HistoryPolicy.OFF else ()
    if needed_by:
        return SettingPreview(allowed=False, reason=_needed(needed_by))
    return SettingPreview(allowed=True, reason=_CONSEQUENCES[policy])


_CONSEQUENCES = {
    HistoryPolicy.OFF: (
        "From now on no transition is logged: the log, timelines and time sliders have a hole, "
        "and no observer can be registered. Jobs, counts and the audit trail go on."
    ),
    HistoryPolicy.TRANSITIONS: (
        "Every transition is logged, failures without their messages and tracebacks."
    ),
    HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL: (
        "Every transition is logged, failures with their messages and tracebacks."
    ),
}


def _needed(names: tuple[str, ...]) -> str:
    more = len(names) - NAMED
    named = ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"Observers need the log: {named}. Retire them first."
