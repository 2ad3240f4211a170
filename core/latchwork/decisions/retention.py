"""When jobs that have ended may go (contract section 5, Purge).

A job goes when its window has passed and no child of it is stored any more; the members of a
workflow go together.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from latchwork.decisions.states import JobState

AUDIT_KEPT = timedelta(days=90)
NODES_KEPT = timedelta(days=1)
"""How long a node that is not seen any more is still listed."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a job stays after its end: ``done`` if Succeeded or Cancelled, else ``failed``."""

    done: timedelta
    failed: timedelta

    @property
    def shortest(self) -> timedelta:
        """No job goes earlier than this after its end."""
        return min(self.done, self.failed)

    def window(self, state: JobState) -> timedelta:
        """How long a job that ended in ``state`` stays."""
        return self.done if state in (JobState.SUCCEEDED, JobState.CANCELLED) else self.failed

    def passed(self, state: JobState, ended_at: datetime, now: datetime) -> bool:
        """Whether the window of a job that ended at ``ended_at`` is over."""
        return now - ended_at >= self.window(state)

    def passed_together(
        self, ends: Iterable[tuple[JobState, datetime | None]], now: datetime
    ) -> bool:
        """Whether a workflow's members may go: all have ended, and the longest window is over.

        It counts from the latest end. A state without a time has not ended and keeps them all.
        """
        longest, latest = timedelta(), None
        for state, ended_at in ends:
            if ended_at is None:
                return False
            longest = max(longest, self.window(state))
            latest = ended_at if latest is None else max(latest, ended_at)
        return latest is not None and now - latest >= longest


def may_go(
    groups: Sequence[Collection[int]],
    children: Mapping[int, Collection[int]],
    kept: Collection[int],
) -> list[Collection[int]]:
    """Those of ``groups`` of jobs that may be deleted together, children included.

    A group goes whole or stays whole. ``children`` maps a job to its children among the groups,
    ``kept`` are jobs that something else keeps. What stays keeps its parents in turn.
    """
    going, staying = list(groups), {job for group in groups for job in group if job in kept}
    while True:
        keeping = [
            group
            for group in going
            if any(job in staying or not staying.isdisjoint(children.get(job, ())) for job in group)
        ]
        if not keeping:
            return going
        staying.update(job for group in keeping for job in group)
        going = [group for group in going if group not in keeping]
