"""What observers are promised: every committed row, and those of a job in their order."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from latchwork.views import TransitionView
from tests.audit import Tables

if TYPE_CHECKING:
    from tests.simulation.world import World


class Observed:
    """A witness of the calls of one observer that watches everything from the log's beginning."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._succeeded: dict[UUID, set[int]] = defaultdict(set)

    def called(self, row: TransitionView, *, succeeds: bool) -> None:
        """The observer was called for a row."""
        before = self._succeeded[row.job_id]
        if row.ordinal > 0 and row.ordinal - 1 not in before:
            self._world.oracles.found(
                f"the observer was called for row {row.ordinal} of {row.job_id} too early"
            )
        self._world.note("observer called again" if row.ordinal in before else "observer called")
        if succeeds:
            before.add(row.ordinal)

    def missed(self, tables: Tables) -> Iterator[str]:
        """Rows that are kept and were never offered."""
        for sequence, log in tables.logs.items():
            for row in log:
                if row.ordinal not in self._succeeded[row.job_id]:
                    yield f"{tables.job(sequence)}: row {row.ordinal} was offered to no observer"
