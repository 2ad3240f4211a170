"""A reader's place in the transition log: the position it came to, the gaps it left below.

PostgreSQL shows rows in the order of commits, not of positions, so a position alone does not say
what was read. Written as a token: ``POSITION`` or ``POSITION~11,15-17``.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from latchwork.errors import InvalidValue

MAX_GAPS = 100
"""Gaps that a token names; with more it is the position before the lowest, and rows come again."""

_LARGEST_POSITION = 2**63 - 1
_NUMBER = r"\d{1,19}"
_RANGE = rf"{_NUMBER}(?:-{_NUMBER})?"
_TOKEN = re.compile(rf"({_NUMBER})(?:~({_RANGE}(?:,{_RANGE})*))?", re.ASCII)

Range = tuple[int, int]
"""Positions from the first to the last, both included."""


@dataclass(frozen=True, slots=True)
class Place:
    """Everything up to ``position`` was delivered, except the positions in ``gaps``.

    Gaps are in rising order, apart from each other, and lie below ``position``.
    """

    position: int
    gaps: tuple[Range, ...] = ()

    @classmethod
    def parse(cls, token: str) -> "Place":
        """The place a token names; InvalidValue if it is none."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise InvalidValue("token", "is not a place in the transition log")
        position = int(match[1])
        gaps = tuple(_range(part) for part in match[2].split(",")) if match[2] else ()
        bounds = [0, *(bound for gap in gaps for bound in gap), position]
        rising = all(
            low <= high if index % 2 else low < high
            for index, (low, high) in enumerate(pairwise(bounds))
        )
        if (gaps and not rising) or len(gaps) > MAX_GAPS or position > _LARGEST_POSITION:
            raise InvalidValue("token", "is not a place in the transition log")
        return cls(position, gaps)

    def __str__(self) -> str:
        """The token."""
        if not self.gaps:
            return str(self.position)
        if len(self.gaps) > MAX_GAPS:
            return str(self.gaps[0][0] - 1)
        parts = (str(low) if low == high else f"{low}-{high}" for low, high in self.gaps)
        return f"{self.position}~{','.join(parts)}"

    def after(self, position: int) -> "Place":
        """The place once the row at ``position`` was delivered too."""
        if position <= self.position:
            return Place(self.position, without(self.gaps, position))
        passed = (self.position + 1, position - 1)
        return Place(position, (*self.gaps, passed) if passed[0] <= passed[1] else self.gaps)

    def holds(self, position: int) -> bool:
        """Whether the row at ``position`` was delivered, if there is one."""
        return position <= self.position and without(self.gaps, position) == self.gaps

    def joined(self, other: "Place") -> "Place":
        """The place of a reader to whom was delivered what either of two places says."""
        top = max(self.position, other.position)
        mine, others = self._undelivered(top), other._undelivered(top)
        both = ((max(a[0], b[0]), min(a[1], b[1])) for a in mine for b in others)
        return Place(top, tuple(sorted(one for one in both if one[0] <= one[1])))

    def _undelivered(self, top: int) -> tuple[Range, ...]:
        beyond = ((self.position + 1, top),) if self.position < top else ()
        return (*self.gaps, *beyond)


def without(gaps: tuple[Range, ...], position: int) -> tuple[Range, ...]:
    """``gaps`` less one position."""
    index = bisect_right(gaps, (position, _LARGEST_POSITION)) - 1
    if index < 0 or gaps[index][1] < position:
        return gaps
    low, high = gaps[index]
    left = ((low, position - 1),) if low < position else ()
    right = ((position + 1, high),) if position < high else ()
    return (*gaps[:index], *left, *right, *gaps[index + 1 :])


def _range(part: str) -> Range:
    low, _, high = part.partition("-")
    return int(low), int(high or low)
