"""The history policy as it is stored: a fact about the database, with the time it was set."""

from datetime import datetime

from sqlalchemy import Connection, select

from latchwork.decisions.states import HistoryPolicy
from latchwork.observer_views import HistoryPolicyView
from latchwork.store.dialects import insert_ignoring
from latchwork.store.log_writing import HISTORY_POLICY
from latchwork.store.schema import facts

HISTORY_LOCK = "history policy"
"""Held by whoever registers an observer or changes the policy: neither sees the other half done."""


def read_history_policy(connection: Connection) -> HistoryPolicyView:
    """The policy in force and since when; everything is kept until somebody says otherwise."""
    stored = connection.execute(
        select(facts.c.value, facts.c.since).where(facts.c.name == HISTORY_POLICY)
    ).first()
    if stored is None:
        return HistoryPolicyView(HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL, None)
    return HistoryPolicyView(HistoryPolicy(stored.value), stored.since)


def store_history_policy(connection: Connection, policy: HistoryPolicy, *, now: datetime) -> None:
    """Let ``policy`` be in force from the commit on."""
    values = {"name": HISTORY_POLICY, "value": policy.value, "since": now}
    statement = insert_ignoring(connection.dialect.name, facts).values(values)
    changed = {"value": policy.value, "since": now}
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))
