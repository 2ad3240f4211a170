"""Fold a job graph until it can be drawn and read: identical siblings become one box.

What is folded and what is kept depends on the edges, the names and the focus, never on states, so
a graph keeps its shape (and its layout) while its jobs move.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from latchwork.decisions.states import JobState
from latchwork.views import Graph, GraphEdge, GraphNode

BOXES_MAX = 200
LINKS_MAX = 600
BOXES_PER_RANK_MAX = 60
SIBLINGS_TO_FOLD = 4
"""Up to three alike are as quick to read side by side as folded."""

FAILED_STATES = frozenset({JobState.DEAD_LETTERED, JobState.QUARANTINED})
_ENDED_OTHERWISE = FAILED_STATES | {JobState.CANCELLED}


@dataclass(frozen=True, slots=True)
class Box:
    """What is drawn as one box: one job, or identical siblings in enqueue order."""

    members: tuple[GraphNode, ...]
    focused: bool

    @property
    def first(self) -> GraphNode:
        """The member with the lowest enqueue number, whose id names the box."""
        return self.members[0]

    @property
    def folded(self) -> bool:
        """Whether the box stands for several jobs."""
        return len(self.members) > 1

    @property
    def name(self) -> str:
        """The step's or job's name; of a fold, the pattern its members share."""
        if self.folded and self.first.step is not None:
            return name_pattern(self.first.step)
        return self.first.step or self.first.wire_name

    @property
    def counts(self) -> dict[JobState, int]:
        """How many members are in each state, in life-cycle order, without zeros."""
        counted = Counter(member.state for member in self.members)
        return {state: counted[state] for state in JobState if counted[state]}

    @property
    def failed(self) -> bool:
        """Whether a member is dead-lettered or quarantined."""
        return any(member.state in FAILED_STATES for member in self.members)

    @property
    def ended_otherwise(self) -> bool:
        """Whether a member ended in anything but success."""
        return any(member.state in _ENDED_OTHERWISE for member in self.members)


@dataclass(frozen=True, slots=True)
class Link:
    """The edges between two boxes, by the boxes' places in ``FoldedGraph.boxes``."""

    source: int
    target: int
    open: bool
    failing: bool


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    """Boxes and links within the bounds; ``hidden_jobs`` of the graph lie beyond them."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    hidden_jobs: int
    truncated: bool


def of_workflow(graph: Graph) -> bool:
    """Whether a graph is of the members of a workflow, none of them in focus."""
    return all(node.id != graph.focus for node in graph.nodes)


def name_pattern(name: str) -> str:
    """A name with its numbers taken out, so that ``hash-01`` and ``hash-02`` read ``hash-#``."""
    return re.sub(r"\d+", "#", name)


def fold(graph: Graph) -> FoldedGraph:
    """Fold identical siblings, then keep what is nearest to the focus, of a workflow the first.

    Siblings are identical if they share parents, children, mode, wire name and step pattern. The
    focus stays a box of its own.

    Args:
        graph: the jobs connected to one job, or the members of a workflow.

    Returns:
        At most 200 boxes, 600 links and 60 boxes in a rank, in enqueue order (architecture, rule
        9).
    """
    groups = _identical_siblings(graph)
    box_of = {node.id: place for place, group in enumerate(groups) for node in group}
    arrows = _arrows(graph.edges, box_of)
    ranks = ranks_of(len(groups), arrows)
    starts = range(len(groups)) if of_workflow(graph) else [box_of[graph.focus]]
    kept = _nearest(list(arrows), starts=starts, ranks=ranks)
    new_place = {old: new for new, old in enumerate(kept)}
    boxes = tuple(
        Box(group, focused=any(node.id == graph.focus for node in group))
        for group in (groups[old] for old in kept)
    )
    links = tuple(
        Link(
            new_place[source],
            new_place[target],
            open=any(edge.open for edge in edges),
            failing=_carries_failure(boxes[new_place[source]], boxes[new_place[target]]),
        )
        for (source, target), edges in arrows.items()
        if source in new_place and target in new_place
    )
    shown = sum(len(box.members) for box in boxes)
    return FoldedGraph(boxes, links, len(graph.nodes) - shown, graph.truncated)


def ranks_of(count: int, arrows: Iterable[tuple[int, int]]) -> list[int]:
    """The longest path to each box, from 0: its column in a left-to-right drawing.

    Args:
        count: how many boxes there are.
        arrows: pairs of places, parent first, without cycles.
    """
    children = defaultdict(list)
    waiting = [0] * count
    for source, target in arrows:
        children[source].append(target)
        waiting[target] += 1
    ranks = [0] * count
    ready = deque(place for place in range(count) if waiting[place] == 0)
    while ready:
        place = ready.popleft()
        for child in children[place]:
            ranks[child] = max(ranks[child], ranks[place] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    return ranks


def _identical_siblings(graph: Graph) -> list[tuple[GraphNode, ...]]:
    parents: dict[UUID, set[UUID]] = defaultdict(set)
    children: dict[UUID, set[UUID]] = defaultdict(set)
    for edge in graph.edges:
        parents[edge.child].add(edge.parent)
        children[edge.parent].add(edge.child)

    whole = of_workflow(graph)
    alike: dict[object, list[GraphNode]] = defaultdict(list)
    for node in sorted(graph.nodes, key=lambda node: node.sequence):
        pattern = None if node.step is None else name_pattern(node.step)
        relatives = (frozenset(parents[node.id]), frozenset(children[node.id]))
        alone = relatives == (frozenset(), frozenset()) and not whole
        own = node.id if node.id == graph.focus or alone else None
        alike[(own, node.wire_name, pattern, node.mode, relatives)].append(node)

    groups: list[tuple[GraphNode, ...]] = []
    for nodes in alike.values():
        if len(nodes) >= SIBLINGS_TO_FOLD:
            groups.append(tuple(nodes))
        else:
            groups.extend((node,) for node in nodes)
    return sorted(groups, key=lambda group: group[0].sequence)


def _arrows(
    edges: Sequence[GraphEdge], box_of: Mapping[UUID, int]
) -> dict[tuple[int, int], list[GraphEdge]]:
    arrows: dict[tuple[int, int], list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        if edge.parent in box_of and edge.child in box_of:
            arrows[(box_of[edge.parent], box_of[edge.child])].append(edge)
    return dict(sorted(arrows.items()))


def _nearest(
    arrows: Sequence[tuple[int, int]], *, starts: Sequence[int], ranks: Sequence[int]
) -> list[int]:
    """The boxes reached from ``starts`` breadth first, in either direction, while bounds allow."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for source, target in arrows:
        neighbours[source].append(target)
        neighbours[target].append(source)
    kept: set[int] = set()
    links = 0
    in_rank: Counter[int] = Counter()
    seen = set(starts)
    queue = deque(starts)
    while queue and len(kept) < BOXES_MAX:
        place = queue.popleft()
        added = sum(other in kept for other in neighbours[place])
        if links + added > LINKS_MAX or in_rank[ranks[place]] >= BOXES_PER_RANK_MAX:
            continue
        kept.add(place)
        links += added
        in_rank[ranks[place]] += 1
        fresh = [other for other in sorted(set(neighbours[place])) if other not in seen]
        seen.update(fresh)
        queue.extend(fresh)
    return sorted(kept)


def _carries_failure(source: Box, target: Box) -> bool:
    """Whether the link lies on a failing path: an end without success, and what it took along."""
    return source.ended_otherwise and JobState.CANCELLED in target.counts
