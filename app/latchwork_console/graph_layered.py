"""A plain layered layout of our own: drawn when the layout engine is late or fails.

Longest-path columns, long links led through empty slots, order by barycentre, slots of one height.
It is linear in what it places, so it always arrives.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from latchwork_console.graph_folding import ranks_of
from latchwork_console.graph_shapes import BOX_HEIGHT, Layout, Point, Shape

COLUMN_GAP = 64
SLOT_HEIGHT = BOX_HEIGHT + 20
SWEEPS = 6

Slot = int
"""A place in a column: a box's number, or a number above all boxes for a link passing through."""


@dataclass(frozen=True, slots=True)
class _Columns:
    slots: list[list[Slot]]
    chains: dict[tuple[int, int], list[Slot]]
    """Each link as the slots it passes, its two boxes included."""


def lay_out_plainly(shape: Shape) -> Layout:
    """Place the boxes of ``shape`` in columns and lead its links between them.

    Args:
        shape: boxes and links without cycles.

    Returns:
        A layout marked ``plain``.
    """
    columns = _columns(shape)
    _order(columns)
    centres = _centres(shape, columns.slots)
    height = max((len(column) for column in columns.slots), default=1) * SLOT_HEIGHT
    width = len(columns.slots) * (shape.box_width + COLUMN_GAP) - COLUMN_GAP
    return Layout(
        width=width,
        height=height,
        boxes=tuple(
            (centres[box][0] - shape.box_width / 2, centres[box][1] - BOX_HEIGHT / 2)
            for box in range(shape.count)
        ),
        links=tuple(_points(shape, columns.chains[link], centres) for link in shape.links),
        plain=True,
    )


def _columns(shape: Shape) -> _Columns:
    ranks = ranks_of(shape.count, shape.links)
    slots: list[list[Slot]] = [[] for _ in range(max(ranks, default=0) + 1)]
    for box, rank in enumerate(ranks):
        slots[rank].append(box)
    chains: dict[tuple[int, int], list[Slot]] = {}
    passing = shape.count
    for source, target in shape.links:
        chain = [source]
        for rank in range(ranks[source] + 1, ranks[target]):
            slots[rank].append(passing)
            chain.append(passing)
            passing += 1
        chains[(source, target)] = [*chain, target]
    return _Columns(slots, chains)


def _order(columns: _Columns) -> None:
    before: dict[Slot, list[Slot]] = defaultdict(list)
    after: dict[Slot, list[Slot]] = defaultdict(list)
    for chain in columns.chains.values():
        for left, right in pairwise(chain):
            before[right].append(left)
            after[left].append(right)
    place = {slot: float(number) for column in columns.slots for number, slot in enumerate(column)}
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        neighbours = before if forward else after
        for column in columns.slots if forward else reversed(columns.slots):
            column.sort(key=lambda slot: _barycentre(neighbours[slot], place, default=place[slot]))
            place.update((slot, float(number)) for number, slot in enumerate(column))


def _barycentre(
    neighbours: Sequence[Slot], place: Mapping[Slot, float], *, default: float
) -> float:
    if not neighbours:
        return default
    return sum(place[slot] for slot in neighbours) / len(neighbours)


def _centres(shape: Shape, slots: Sequence[Sequence[Slot]]) -> dict[Slot, Point]:
    tallest = max((len(column) for column in slots), default=1)
    return {
        slot: (
            rank * (shape.box_width + COLUMN_GAP) + shape.box_width / 2,
            (number + (tallest - len(column)) / 2 + 0.5) * SLOT_HEIGHT,
        )
        for rank, column in enumerate(slots)
        for number, slot in enumerate(column)
    }


def _points(
    shape: Shape, chain: Sequence[Slot], centres: Mapping[Slot, Point]
) -> tuple[Point, ...]:
    """From the first box's right side to the last one's left side, level through each slot."""
    half = shape.box_width / 2
    points: list[Point] = []
    for slot in chain:
        x, y = centres[slot]
        if slot != chain[0]:
            points.append((x - half, y))
        if slot != chain[-1]:
            points.append((x + half, y))
    return tuple(points)
