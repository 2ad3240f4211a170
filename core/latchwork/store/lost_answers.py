"""Answers lost on the way: repeat a write under the same ids until it is known what stands."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from latchwork.errors import DuplicateJob, OutcomeUnknown, StoreUnavailable

T = TypeVar("T")

PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


def repeat_until_answered(
    write: Callable[[], T],
    *,
    ids: Sequence[UUID],
    written_before: Callable[[], bool] = lambda: False,
) -> T | None:
    """``write()``, again under the same ids when its answer was lost.

    A DuplicateJob after a lost answer is this call's own row if ``written_before`` says so; the
    answer is then None. Raises OutcomeUnknown naming ``ids`` when the database stays away.
    """
    lost: StoreUnavailable | None = None
    for pause_seconds in (*PAUSES_SECONDS, None):
        try:
            try:
                return write()
            except DuplicateJob:
                if lost is None or not written_before():
                    raise
                return None
        except StoreUnavailable as error:
            lost = error
        if pause_seconds is not None:
            time.sleep(pause_seconds)
    raise OutcomeUnknown(ids) from lost
