"""Draw a folded graph: boxes with words, links as curves, ready for the SVG templates."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.views import Graph, GraphNode
from latchwork_console.formatting import visible
from latchwork_console.graph_folding import Box, FoldedGraph, Link, fold, of_workflow, ranks_of
from latchwork_console.graph_layout import Layouts
from latchwork_console.graph_shapes import BOX_HEIGHT, Layout, Point, Shape

MARGIN = 14
TIMES = "\N{MULTIPLICATION SIGN}"
NAME_COLUMNS_MIN, NAME_COLUMNS_MAX = 19, 26
COLUMN_WIDTH = 7.6
NAME_LEFT = 33
BAR_LEFT, BAR_TOP, BAR_HEIGHT = 14, 31, 6

_LEADING = (
    JobState.DEAD_LETTERED, JobState.QUARANTINED, JobState.LEASED, JobState.SCHEDULED,
    JobState.AWAITING_PARENT, JobState.CANCELLED, JobState.SUCCEEDED,
)  # fmt: skip
"""Which of its members' states a folded box wears: a failure first, success when all are done."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One state's share of a folded box's bar."""

    state: JobState
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """One box with its words; ``bar`` is empty unless it stands for several jobs."""

    id: UUID
    x: float
    y: float
    width: int
    height: int
    name: str
    short_name: str
    count: int
    state: JobState
    line: str
    description: str
    focused: bool
    failed: bool
    bar: tuple[Segment, ...]

    @property
    def folded(self) -> bool:
        """Whether the box stands for several jobs."""
        return self.count > 1


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """One curve, as the data of an SVG path."""

    path: str
    open: bool
    failing: bool


@dataclass(frozen=True, slots=True)
class ListedBox:
    """A line of the outline that says the same as the drawing; ``after`` names the parents."""

    box: DrawnBox
    depth: int
    after: tuple[str, ...]
    members: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """A drawing and its list, from the same boxes."""

    focus: UUID
    width: int
    height: int
    boxes: tuple[DrawnBox, ...]
    links: tuple[DrawnLink, ...]
    listed: tuple[ListedBox, ...]
    counts: dict[JobState, int]
    hidden_jobs: int
    truncated: bool
    of_workflow: bool

    @property
    def route(self) -> str:
        """The page on which a job of the drawing is selected; ``address`` is where it is."""
        return "workflow" if self.of_workflow else "graph"

    @property
    def address(self) -> dict[str, UUID]:
        """What the address of that page is made from."""
        return {"workflow_id" if self.of_workflow else "job_id": self.focus}

    @property
    def focus_name(self) -> str:
        """The name of the job that the graph is drawn around."""
        return next((box.name for box in self.boxes if box.focused), "")

    @property
    def failing(self) -> bool:
        """Whether a failure took other jobs along."""
        return any(link.failing for link in self.links)

    @property
    def jobs(self) -> int:
        """How many jobs the boxes stand for."""
        return sum(box.count for box in self.boxes)


def draw(graph: Graph, layouts: Layouts) -> DrawnGraph:
    """Fold, lay out and draw the jobs connected to ``graph.focus``.

    Args:
        graph: the jobs and their edges, as the monitor answers them.
        layouts: where layouts are kept; this may wait for one up to the layout deadline.
    """
    folded = fold(graph)
    columns = max((_columns(visible(box.name) + _times(box)) for box in folded.boxes), default=0)
    columns = min(max(columns, NAME_COLUMNS_MIN), NAME_COLUMNS_MAX)
    shape = Shape(
        count=len(folded.boxes),
        box_width=round(NAME_LEFT + columns * COLUMN_WIDTH + 12),
        links=tuple((link.source, link.target) for link in folded.links),
    )
    layout = layouts.of(shape)
    parents = Counter(edge.child for edge in graph.edges)
    boxes = tuple(
        _draw_box(box, corner, shape.box_width, columns, parents)
        for box, corner in zip(folded.boxes, layout.boxes, strict=True)
    )
    return DrawnGraph(
        focus=graph.focus,
        width=round(layout.width) + 2 * MARGIN,
        height=round(layout.height) + 2 * MARGIN,
        boxes=boxes,
        links=_draw_links(folded.links, boxes, layout),
        listed=_list(folded, boxes),
        counts=_counts(folded.boxes),
        hidden_jobs=folded.hidden_jobs,
        truncated=folded.truncated,
        of_workflow=of_workflow(graph),
    )


def _draw_box(
    box: Box, corner: Point, width: int, columns: int, parents: Counter[UUID]
) -> DrawnBox:
    counts = box.counts
    leading = min(counts, key=_LEADING.index)
    words = ", ".join(f"{count} {state.label}" for state, count in counts.items())
    line = words if box.folded else _second_line(box.first, parents[box.first.id])
    name = visible(box.name)
    suffix = _times(box)
    return DrawnBox(
        id=box.first.id,
        x=corner[0] + MARGIN,
        y=corner[1] + MARGIN,
        width=width,
        height=BOX_HEIGHT,
        name=name,
        short_name=_cut(name, columns - len(suffix)) + suffix,
        count=len(box.members),
        state=leading,
        line=line,
        description=f"{name}{suffix}: {line}",
        focused=box.focused,
        failed=box.failed,
        bar=_bar(counts, len(box.members), width) if box.folded else (),
    )


def _second_line(node: GraphNode, parents: int) -> str:
    """The state in words, with what the operator asks next."""
    any_end = " · on any end" if node.mode is DependencyMode.ON_ANY_TERMINAL and parents else ""
    match node.state:
        case JobState.AWAITING_PARENT:
            of_all = max(parents, node.parents_remaining)
            return f"Waits for {node.parents_remaining} of {of_all}{any_end}"
        case JobState.SCHEDULED if node.attempt:
            return f"Scheduled · retry after {node.attempt}"
        case JobState.LEASED:
            return f"Leased · attempt {node.attempt}"
        case _:
            attempts = f" · attempt {node.attempt}" if node.attempt > 1 else ""
            return f"{node.state.label}{attempts}{any_end}"


def _bar(counts: dict[JobState, int], total: int, box_width: int) -> tuple[Segment, ...]:
    room = box_width - 2 * BAR_LEFT
    segments = []
    x = float(BAR_LEFT)
    for state, count in counts.items():
        width = room * count / total
        segments.append(Segment(state, count, round(x, 1), round(width, 1)))
        x += width
    return tuple(segments)


def _draw_links(
    links: Sequence[Link], boxes: Sequence[DrawnBox], layout: Layout
) -> tuple[DrawnLink, ...]:
    return tuple(
        DrawnLink(
            path=_curve(boxes[link.source], boxes[link.target], points),
            open=link.open,
            failing=link.failing,
        )
        for link, points in zip(links, layout.links, strict=True)
    )


def _curve(source: DrawnBox, target: DrawnBox, points: Sequence[Point]) -> str:
    """A path from side to side, level at both ends and at every bend, so that it flows onward."""
    moved = [
        (source.x + source.width, source.y + BOX_HEIGHT / 2),
        *((x + MARGIN, y + MARGIN) for x, y in points[1:-1]),
        (target.x, target.y + BOX_HEIGHT / 2),
    ]
    data = [f"M{moved[0][0]:.1f} {moved[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(moved):
        if abs(y1 - y0) < 1:
            data.append(f"L{x1:.1f} {y1:.1f}")
        else:
            middle = (x0 + x1) / 2
            data.append(f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}")
    return "".join(data)


def _list(folded: FoldedGraph, boxes: Sequence[DrawnBox]) -> tuple[ListedBox, ...]:
    """The boxes as an outline: each under its deepest parent, the others named beside it."""
    parents: dict[int, list[int]] = defaultdict(list)
    children: dict[int, list[int]] = defaultdict(list)
    for link in folded.links:
        parents[link.target].append(link.source)
    ranks = ranks_of(len(boxes), [(link.source, link.target) for link in folded.links])
    for place in range(len(boxes)):
        if parents[place]:
            children[max(parents[place], key=lambda parent: (ranks[parent], -parent))].append(place)

    listed = []
    waiting = [place for place in reversed(range(len(boxes))) if not parents[place]]
    while waiting:
        place = waiting.pop()
        box = folded.boxes[place]
        listed.append(
            ListedBox(
                box=boxes[place],
                depth=ranks[place],
                after=tuple(boxes[parent].name for parent in parents[place]),
                members=box.members if box.folded else (),
            )
        )
        waiting.extend(reversed(children[place]))
    return tuple(listed)


def _counts(boxes: Sequence[Box]) -> dict[JobState, int]:
    counted = Counter(member.state for box in boxes for member in box.members)
    return {state: counted[state] for state in JobState if counted[state]}


def _times(box: Box) -> str:
    return f" {TIMES} {len(box.members)}" if box.folded else ""


def _columns(text: str) -> int:
    """How many monospace columns a text takes: wide characters two, combining marks none."""
    return sum(_column_width(character) for character in text)


def _column_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(text: str, columns: int) -> str:
    """The beginning of a text that fits, with an ellipsis if something is missing."""
    if _columns(text) <= columns:
        return text
    kept, taken = [], 1
    for character in text:
        taken += _column_width(character)
        if taken > columns:
            break
        kept.append(character)
    return "".join(kept) + "…"
