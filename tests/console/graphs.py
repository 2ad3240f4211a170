"""Job graphs for the tests of folding, layout, drawing and their pages."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from latchwork.decisions.states import LIVE_STATES, DependencyMode, JobState
from latchwork.views import Graph, GraphEdge, GraphNode

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "{{ 7 * 7 }}{% raw %}",
    "--> ]]> </svg></template><hx-partial hx-target='#main'>",
    "日本語のジョブ 🧨 / + # % ..",
)


def uid(number: int) -> UUID:
    """The id of the job with this enqueue number."""
    return UUID(int=number + 1)


def node(
    number: int,
    name: str = "step",
    state: JobState = JobState.SCHEDULED,
    *,
    step: str | None = None,
    attempt: int = 0,
    remaining: int = 0,
    mode: DependencyMode = DependencyMode.ON_SUCCESS,
) -> GraphNode:
    """A job of a graph."""
    return GraphNode(uid(number), number, name, step, "default", state, attempt, remaining, mode)


def graph(nodes: Iterable[GraphNode], edges: Sequence[tuple[int, int]], *, focus: int = 0) -> Graph:
    """A graph of jobs; an edge is open while its parent lives."""
    nodes = tuple(nodes)
    live = {one.sequence for one in nodes if one.state in LIVE_STATES}
    return Graph(
        focus=uid(focus),
        nodes=nodes,
        edges=tuple(GraphEdge(uid(a), uid(b), a in live) for a, b in edges),
    )


def chain(length: int, *, focus: int = 0) -> Graph:
    """Jobs that wait one for the other."""
    nodes = [node(number, f"kind-{number}") for number in range(length)]
    return graph(nodes, [(number, number + 1) for number in range(length - 1)], focus=focus)


def fan(width: int, *, alike: bool = True) -> Graph:
    """One parent with many children."""
    names = ["hash" if alike else f"kind-{number:04d}" for number in range(width)]
    nodes = [node(0, "list"), *(node(place + 1, name) for place, name in enumerate(names))]
    return graph(nodes, [(0, number) for number in range(1, width + 1)])


def diamond() -> Graph:
    """A failure that cancels on one side, and a cleanup that runs whatever happens."""
    return graph(
        [
            node(0, "charge", JobState.DEAD_LETTERED, attempt=10),
            node(1, "receipt", JobState.CANCELLED),
            node(2, "cleanup", JobState.SUCCEEDED, attempt=1, mode=DependencyMode.ON_ANY_TERMINAL),
            node(3, "ship", JobState.CANCELLED),
        ],
        [(0, 1), (0, 2), (1, 3), (2, 3)],
        focus=1,
    )
