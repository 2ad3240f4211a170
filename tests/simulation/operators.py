"""Operators of a world: they press buttons at random, and the oracles hear what was asked."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.action_results import CancelOutcome
from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import RetryScope
from latchwork.store import operator_actions, queue_actions, schema, workflow_actions
from latchwork.store.workflow_retry import retry_workflow

if TYPE_CHECKING:
    from tests.simulation.world import World

ACTOR = "ann"
_NUMBER = select(schema.jobs.c.payload).limit(1)
_FOUND = {
    "cancel running": _NUMBER.where(schema.jobs.c.state == JobState.LEASED).order_by(
        schema.jobs.c.sequence
    ),
    "requeue ended": _NUMBER.where(
        schema.jobs.c.state.in_((JobState.DEAD_LETTERED, JobState.QUARANTINED))
    ).order_by(schema.jobs.c.terminal_at.desc(), schema.jobs.c.sequence),
}
"""Actions on a job that is fit for them, chosen when it comes to it."""

Act = Callable[[Connection, Any, datetime], Any]


class Operators:
    """Everybody who presses buttons."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._chance = world.chance("operators")

    def press(self, kind: str, values: dict[str, Any]) -> None:
        """Do what a step says: cancel a job, pause a queue, retry a workflow."""
        if kind in _FOUND:
            find = _FOUND[kind]
            number = self._world.database.read(lambda connection: connection.scalar(find))
            if number is None:
                return
            kind, values = kind.split()[0], {"number": int(number)}
        touched = self._touched(values)
        if kind in ("cancel", "cancel workflow"):
            self._world.oracles.cancel_tried(touched)
        what = self._subject(values)
        now = self._world.now()
        answer = self._world.ask(
            lambda connection: _ACTS[kind](connection, what, now), self._chance
        )
        outcome = getattr(answer, "outcome", None)
        if outcome is CancelOutcome.REQUESTED and kind == "cancel":
            self._world.oracles.asked_to_stop(touched[0])
        elif kind in ("requeue", "retry workflow"):
            self._world.oracles.given_new_lives(touched)
        state = getattr(answer, "state", None)
        told = f" ({state.value})" if state is not None else ""
        self._world.note(f"{kind}: {outcome.value if outcome else type(answer).__name__}{told}")

    def _subject(self, values: dict[str, Any]) -> Any:
        if "number" in values:
            return self._world.job_id(values["number"])
        if "workflow" in values:
            return self._world.workflow_id(values["workflow"]), values["scope"]
        return values["queue"], values.get("limit")

    def _touched(self, values: dict[str, Any]) -> list[UUID]:
        """The jobs that an action is about."""
        if "number" in values:
            return [self._world.job_id(values["number"])]
        if "workflow" in values:
            return self._world.members_of(self._world.workflow_id(values["workflow"]))
        return []


def _cancel(connection: Connection, job: UUID, now: datetime) -> Any:
    return operator_actions.cancel(connection, job, actor=ACTOR, now=now)


def _requeue(connection: Connection, job: UUID, now: datetime) -> Any:
    return operator_actions.requeue(connection, job, actor=ACTOR, now=now)


def _pause(connection: Connection, what: tuple[str, None], now: datetime) -> Any:
    return queue_actions.pause(connection, what[0], actor=ACTOR, now=now)


def _resume(connection: Connection, what: tuple[str, None], now: datetime) -> Any:
    return queue_actions.resume(connection, what[0], actor=ACTOR, now=now)


def _limit(connection: Connection, what: tuple[str, int | None], now: datetime) -> Any:
    return queue_actions.set_limit(connection, *what, actor=ACTOR, now=now)


def _cancel_workflow(connection: Connection, what: tuple[UUID, str], now: datetime) -> Any:
    return workflow_actions.cancel_workflow(connection, what[0], actor=ACTOR, now=now)


def _retry_workflow(connection: Connection, what: tuple[UUID, str], now: datetime) -> Any:
    scope = RetryScope(what[1])
    return retry_workflow(connection, what[0], scope=scope, actor=ACTOR, now=now)


_ACTS: dict[str, Act] = {
    "cancel": _cancel, "requeue": _requeue,
    "pause": _pause, "resume": _resume, "limit": _limit,
    "cancel workflow": _cancel_workflow, "retry workflow": _retry_workflow,
}  # fmt: skip
