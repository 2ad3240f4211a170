"""Workflows as they are listed and shown: derived status, bounded counts, paged by their ids."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import RetryScope, WorkflowStatus
from latchwork.errors import InvalidValue
from latchwork.store import workflow_queries
from latchwork.workflow_views import WorkflowPage
from latchwork.workflows import StartedWorkflow, Workflow
from tests.store.builders import Store
from tests.store.test_query_plans import faults, sent_by
from tests.store.workflow_scene import ACTOR, Flow, call, steps

S = JobState
RUNNING, SUCCEEDED = WorkflowStatus.RUNNING, WorkflowStatus.SUCCEEDED
FAILED, CANCELLED = WorkflowStatus.FAILED, WorkflowStatus.CANCELLED


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def in_every_status(flow: Flow) -> dict[WorkflowStatus, StartedWorkflow]:
    """One workflow of each status, in the order of the statuses."""
    ended = {
        status: flow.client.start_workflow(steps(Workflow(f"ends {status}"), {"a": "", "b": "a"}))
        for status in (SUCCEEDED, FAILED, CANCELLED)
    }
    flow.operator.cancel_workflow(ended[CANCELLED].id, actor=ACTOR)
    flow.end(ended[SUCCEEDED].jobs["a"])
    flow.end(ended[SUCCEEDED].jobs["b"])
    flow.end(ended[FAILED].jobs["a"], S.QUARANTINED)
    return ended | {RUNNING: flow.start(a="", b="a")}


def test_the_status_of_each_workflow_is_derived_from_its_members(flow: Flow) -> None:
    started = in_every_status(flow)
    listed = {one.id: one for one in flow.monitor.workflows().workflows}
    assert {status: listed[one.id].status for status, one in started.items()} == {
        status: status for status in WorkflowStatus
    }
    failed = listed[started[FAILED].id]
    figures = {state: count.value for state, count in failed.counts.items()}
    assert figures == {S.QUARANTINED: 1, S.CANCELLED: 1}
    assert str(failed.size) == "2"


@pytest.mark.parametrize("status", WorkflowStatus)
def test_a_filter_by_status_finds_those_and_no_other(flow: Flow, status: WorkflowStatus) -> None:
    started = in_every_status(flow)
    page = flow.monitor.workflows(status)
    assert [one.id for one in page.workflows] == [started[status].id]
    assert (page.next, page.previous, page.partial) == (None, None, False)


def test_a_filter_by_name_and_status(flow: Flow) -> None:
    started = in_every_status(flow)
    (found,) = flow.monitor.workflows(name="order").workflows
    assert found.id == started[RUNNING].id
    assert flow.monitor.workflows(FAILED, "order").workflows == ()
    assert flow.monitor.workflows(RUNNING, "order").workflows == (found,)


@pytest.mark.parametrize("filters", [{}, {"status": RUNNING}, {"name": "order"}])
def test_pages_go_both_ways_newest_first(flow: Flow, filters: dict[str, object]) -> None:
    started = [flow.start(a="").id for _ in range(7)][::-1]

    def page(place: str | None) -> WorkflowPage:
        return flow.monitor.workflows(page=place, limit=3, **filters)  # type: ignore[arg-type]

    first = page(None)
    second = page(first.next)
    last = page(second.next)
    met = [one.id for each in (first, second, last) for one in each.workflows]
    assert met == started
    assert (first.previous, last.next) == (None, None)
    assert page(last.previous) == second
    assert page(second.previous).workflows == first.workflows


def test_a_search_that_meets_its_bound_says_so_and_goes_on(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = flow.start(a="")
    flow.end(failed.jobs["a"], S.DEAD_LETTERED)
    for _ in range(8):
        flow.start(a="")
    monkeypatch.setattr("latchwork.store.keyset.WALK_BOUNDS", (2, 4))
    page = flow.monitor.workflows(FAILED)
    met = list(page.workflows)
    while page.partial and page.next:
        page = flow.monitor.workflows(FAILED, page=page.next)
        met += page.workflows
    assert [one.id for one in met] == [failed.id]


@pytest.mark.parametrize(
    "given",
    [{"page": "before:x"}, {"page": "x"}, {"limit": 0}, {"status": "ended"}, {"name": ""}],
)
def test_malformed_questions_are_refused(flow: Flow, given: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        flow.monitor.workflows(**given)  # type: ignore[arg-type]


def test_counts_stop_at_their_bound(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_queries, "COUNT_BOUND", 3)
    monkeypatch.setattr("latchwork.store.queue_queries.COUNT_BOUND", 3)
    flow.start(**{f"s{number}": "" for number in range(5)})
    (found,) = flow.monitor.workflows().workflows
    assert str(found.counts[S.SCHEDULED]) == "3+"
    assert str(found.size) == "3+"


def test_a_graph_has_the_members_in_enqueue_order_also_where_nothing_joins_them(
    flow: Flow,
) -> None:
    started = flow.start(a="", b="a", c="", d="")
    flow.store.enqueue(started.jobs["a"])
    graph = flow.monitor.workflow_graph(started.id)
    assert graph
    assert [node.step for node in graph.nodes] == ["a", "c", "d", "b"]
    assert {(edge.parent, edge.child) for edge in graph.edges} == {
        (started.jobs["a"], started.jobs["b"])
    }
    assert graph.focus == started.id
    assert not graph.truncated
    cut = flow.monitor.workflow_graph(started.id, limit=2)
    assert cut
    assert (len(cut.nodes), cut.truncated) == (2, True)


def test_an_unknown_workflow_is_none(flow: Flow) -> None:
    assert flow.monitor.workflow(uuid4()) is None
    assert flow.monitor.workflow_graph(uuid4()) is None
    with pytest.raises(InvalidValue):
        flow.monitor.workflow("order")  # type: ignore[arg-type]


def test_the_input_is_left_out_for_those_who_may_not_see_it(flow: Flow) -> None:
    started = flow.client.start_workflow(Workflow("order", input={"a": 1}).add("a", call()))
    shown, hidden = (
        flow.monitor.workflow(started.id, with_input=with_input) for with_input in (True, False)
    )
    assert shown
    assert hidden
    assert (shown.input, hidden.input) == ('{"a":1}', None)


def reads(flow: Flow, started: StartedWorkflow) -> dict[str, Callable[[], object]]:
    """Everything that is asked about workflows."""
    monitor, operator = flow.monitor, flow.operator
    asked: dict[str, Callable[[], object]] = {
        "workflow": lambda: monitor.workflow(started.id),
        "graph": lambda: monitor.workflow_graph(started.id),
        "all": lambda: monitor.workflows(limit=3),
        "named": lambda: monitor.workflows(name="order", limit=3),
        "named and running": lambda: monitor.workflows(RUNNING, "order", limit=3),
        "older": lambda: monitor.workflows(page=f"before:{started.id}", limit=3),
        "cancel": lambda: operator.preview_cancel_workflow(started.id),
        "restart": lambda: operator.preview_restart_workflow(started.id),
    }
    for status in WorkflowStatus:
        asked[status] = lambda status=status: monitor.workflows(status, limit=3)  # type: ignore[misc]
    for scope in RetryScope:
        asked[scope] = lambda scope=scope: operator.preview_retry_workflow(  # type: ignore[misc]
            started.id, scope=scope
        )
    return asked


def test_no_question_about_workflows_scans_a_big_table(flow: Flow) -> None:
    database = flow.store.database
    for started in in_every_status(flow).values():
        for name, read in reads(flow, started).items():
            sent = sent_by(database, read)
            assert sent, name
            with database.engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql("SET enable_seqscan = off")
                for statement, values in sent:
                    assert faults(connection, statement, values) == [], (name, statement)


def test_more_workflows_and_more_steps_take_no_more_statements(flow: Flow) -> None:
    for _ in range(5):
        flow.start(a="")
    numbers = []
    for width in (5, 30):
        started = flow.start(first="", **{f"m{number}": "first" for number in range(width)})
        for _ in range(width):
            flow.start(a="")
        asked = reads(flow, started).items()
        numbers.append({name: len(sent_by(flow.store.database, read)) for name, read in asked})
    assert numbers[0] == numbers[1]
    assert max(numbers[1].values()) <= 8
