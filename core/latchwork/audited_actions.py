"""Carrying an operator's action out exactly once: what every part of the operator stands on."""

from collections.abc import Callable
from typing import TypeVar

from uuid_utils.compat import uuid7

from latchwork.store.database import Database
from latchwork.store.lost_answers import repeat_until_answered
from latchwork.values import checked_name

T = TypeVar("T")


class AuditedActions:
    """Acts on one database; every action has an actor and an audit row."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _carry_out(self, act: Callable[..., T], actor: str) -> T:
        """An action under a request id of its own, asked for again when its answer was lost."""
        checked_name("actor", actor)
        request_id = uuid7()
        answer = repeat_until_answered(
            lambda: self._database.write(
                act, actor=actor, now=self._database.now(), request_id=request_id
            ),
            ids=[request_id],
        )
        assert answer is not None  # noqa: S101 - only an enqueue can meet its own row
        return answer
