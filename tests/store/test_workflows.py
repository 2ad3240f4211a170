"""Workflows as they are built and enqueued: all or nothing, named steps, inputs and outputs."""

import asyncio
from uuid import UUID, uuid4

import pytest

from latchwork.client import AsyncClient
from latchwork.context import JobContext
from latchwork.decisions.states import JobState
from latchwork.errors import (
    AmbiguousAncestor,
    InvalidValue,
    InvalidWorkflow,
    TooManyParents,
    ValueTooLarge,
)
from latchwork.values import MAX_PAYLOAD_BYTES
from latchwork.workflows import Steps, Workflow
from tests.store.builders import ON_ANY_TERMINAL, Store, counted_statements
from tests.store.workflow_scene import Flow, call, steps

S = JobState


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def context_of(flow: Flow, job_id: UUID) -> JobContext:
    """What the handler of a job that is due would be given."""
    return JobContext(flow.claim(job_id), flow.store.database)


def test_a_step_without_a_name_has_the_wire_name(flow: Flow) -> None:
    workflow = Workflow("order").add(call(wire_name="pack"))
    workflow.add(call(wire_name="ship"), after=["pack"])
    started = flow.client.start_workflow(workflow)
    assert flow.store.edges(started.jobs["ship"]) == {started.jobs["pack"]: True}


def test_a_malformed_step_is_refused_when_it_is_added() -> None:
    workflow = Workflow("order").add("a", call())
    with pytest.raises(InvalidWorkflow):
        workflow.add("a", call())
    with pytest.raises(InvalidWorkflow):
        workflow.add("b", call(), after="a")
    with pytest.raises(InvalidWorkflow):
        workflow.add(call(), call())
    with pytest.raises(InvalidValue):
        workflow.add("b", "pack")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        workflow.add("b")
    with pytest.raises(InvalidValue):
        workflow.add("b", call(), mode="sometimes")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        workflow.add("b\n", call())
    with pytest.raises(TooManyParents):
        workflow.add("b", call(), after=[str(number) for number in range(17)])
    assert list(workflow.steps) == ["a"]


def test_fan_out_and_fan_in_of_sixteen_with_a_mode_per_step(flow: Flow) -> None:
    middle = [f"m{number}" for number in range(16)]
    workflow = Workflow("order").add("first", call())
    for name in middle:
        workflow.add(name, call(), after=["first"])
    workflow.add("last", call(), after=middle, mode=ON_ANY_TERMINAL)
    jobs = flow.client.start_workflow(workflow).jobs
    flow.end(jobs["first"])
    for name in middle:
        assert flow.store.state(jobs["last"]) is S.AWAITING_PARENT
        flow.end(jobs[name], S.DEAD_LETTERED if name == "m7" else S.SUCCEEDED)
    assert flow.store.state(jobs["last"]) is S.SCHEDULED


def test_a_workflow_that_is_rolled_back_leaves_nothing(flow: Flow) -> None:
    before = flow.store.dump()
    with flow.store.database.engine.connect() as connection:
        started = flow.client.start_workflow(
            steps(Workflow("order"), {"a": "", "b": "a"}), connection=connection
        )
        flow.client.append_step(started.id, "c", call(), after=["b"], connection=connection)
        connection.rollback()
    assert flow.store.dump() == before


def test_the_steps_of_a_callers_transaction_are_stored_with_it(flow: Flow) -> None:
    with flow.store.database.engine.begin() as connection:
        started = flow.client.start_workflow(
            steps(Workflow("order"), {"a": ""}), connection=connection
        )
        with pytest.raises(InvalidWorkflow):
            flow.client.append_step(started.id, "a", call(), connection=connection)
        late = flow.client.append_step(started.id, "b", call(), after=["a"], connection=connection)
    assert flow.store.states(started.jobs["a"], late) == [S.SCHEDULED, S.AWAITING_PARENT]


def test_appended_steps_wait_for_each_other_and_for_stored_ones(flow: Flow) -> None:
    started = flow.start(a="", b="a")
    before = flow.store.edges(started.jobs["b"])
    added = flow.append(started, d="c b", c="a")
    assert flow.store.edges(added["d"]) == {added["c"]: True, started.jobs["b"]: True}
    assert flow.store.edges(added["c"]) == {started.jobs["a"]: True}
    assert flow.store.edges(started.jobs["b"]) == before
    assert flow.store.row(added["c"]).workflow_id == started.id


def test_an_ended_workflow_runs_again_when_a_step_is_appended(flow: Flow) -> None:
    started = flow.start(a="", b="")
    flow.end(started.jobs["a"], output='"x"')
    flow.end(started.jobs["b"], S.DEAD_LETTERED)
    added = flow.append(started, c="a", d="b", e="*b", f="d")
    assert flow.states(added) == {
        "c": S.SCHEDULED, "d": S.CANCELLED, "e": S.SCHEDULED, "f": S.CANCELLED
    }  # fmt: skip
    row = flow.store.row(added["d"])
    assert (row.cause_code, row.cause_parent_id) == ("parent_failed", started.jobs["b"])
    assert flow.store.row(added["f"]).cause_root_id == started.jobs["b"]
    assert context_of(flow, added["c"]).dependency_output("a").output == "x"


def test_appended_steps_that_do_not_fit_are_refused_and_nothing_is_written(flow: Flow) -> None:
    started, other = flow.start(a=""), flow.start(z="")
    before = flow.store.dump()
    for parents in ({"a": ""}, {"b": "z"}, {"b": "c", "c": "b"}, {"b": "b"}, {}):
        with pytest.raises(InvalidWorkflow):
            flow.append(started, **parents)
    with pytest.raises(InvalidWorkflow):
        flow.client.append_steps(uuid4(), Steps().add("b", call()))
    with pytest.raises(InvalidValue):
        flow.client.append_step(other.id, "b", call(), after=["z"], mode=1)  # type: ignore[arg-type]
    assert flow.store.dump() == before


def test_every_step_can_read_the_input(flow: Flow) -> None:
    given = {"order": "42", "boxes": [1, 2], "big": 2**60}
    workflow = steps(Workflow("order", input=given), {"a": "", "b": ""})
    jobs = flow.client.start_workflow(workflow).jobs
    first = context_of(flow, jobs["a"])
    assert first.workflow_input == given
    with counted_statements(flow.store.database) as statements:
        first.workflow_input["order"] = "changed"
        assert first.workflow_input == given
    assert statements == []
    assert (first.step, first.workflow_id) == ("a", flow.store.row(jobs["a"]).workflow_id)


def test_without_an_input_there_is_none(flow: Flow) -> None:
    jobs = flow.start(a="").jobs
    context = context_of(flow, jobs["a"])
    assert context.workflow_input is None
    assert asyncio.run(context.workflow_input_async()) is None
    alone = flow.store.enqueue(queue="work")
    assert context_of(flow, alone).workflow_input is None


def test_an_input_has_the_bounds_of_a_payload() -> None:
    Workflow("order", input="x" * (MAX_PAYLOAD_BYTES - 2))
    with pytest.raises(ValueTooLarge) as refused:
        Workflow("order", input="x" * (MAX_PAYLOAD_BYTES - 1))
    assert (refused.value.field, refused.value.bound) == ("workflow input", MAX_PAYLOAD_BYTES)
    for impossible in (float("nan"), object(), "\ud800", [float("inf")]):
        with pytest.raises(InvalidValue):
            Workflow("order", input=impossible)
    with pytest.raises(InvalidValue):
        Workflow("")


def test_outputs_are_read_by_step_name_from_ancestors_only(flow: Flow) -> None:
    started = flow.start(a="", b="a", c="", d="b")
    jobs = started.jobs
    flow.end(jobs["a"], output='"from a"')
    flow.end(jobs["c"], output='"from c"')
    flow.end(jobs["b"])
    context = context_of(flow, jobs["d"])
    assert context.dependency_output("a").output == "from a"
    b = context.dependency_output("b")
    assert (b.has_output, b.state) == (False, S.SUCCEEDED)
    c = context.dependency_output("c")
    assert (c.has_output, c.output, c.state) == (False, None, None)
    with pytest.raises(AmbiguousAncestor):
        context.dependency_output("pack")  # the wire name of them all


def test_a_step_name_comes_before_a_wire_name(flow: Flow) -> None:
    workflow = Workflow("order").add("ship", call(wire_name="pack"))
    workflow.add("other", call(wire_name="ship")).add("last", call(), after=["ship", "other"])
    jobs = flow.client.start_workflow(workflow).jobs
    flow.end(jobs["ship"], output='"by step"')
    flow.end(jobs["other"], output='"by wire name"')
    context = context_of(flow, jobs["last"])
    assert context.dependency_output("ship").output == "by step"
    assert context.dependency_output(call(wire_name="ship").job_type).output == "by wire name"


def test_a_dependent_outside_reads_the_outputs_of_two_workflows(flow: Flow) -> None:
    one, two = flow.start(a=""), flow.start(a="")
    flow.end(one.jobs["a"], output="1")
    flow.end(two.jobs["a"], output="2")
    outside = flow.store.enqueue(one.jobs["a"], two.jobs["a"], queue="work")
    context = context_of(flow, outside)
    with pytest.raises(AmbiguousAncestor):
        context.dependency_output("a")
    assert context.dependency_output(two.jobs["a"]).output == 2


def test_the_async_client_does_the_same(flow: Flow) -> None:
    async def use() -> dict[str, UUID]:
        client = AsyncClient(flow.client)
        started = await client.start_workflow(steps(Workflow("order"), {"a": ""}))
        b = await client.append_step(started.id, "b", call(), after=["a"])
        added = await client.append_steps(started.id, steps(Steps(), {"c": "b"}))
        return {"b": b} | added

    jobs = asyncio.run(use())
    assert set(flow.states(jobs).values()) == {S.AWAITING_PARENT}


def test_the_number_of_statements_does_not_depend_on_the_size(flow: Flow) -> None:
    for _ in range(2):  # the names are stored, then known
        flow.start(a="")
    starting, appending = [], []
    for width in (5, 80):
        parents = {"first": "", **{f"m{number}": "first" for number in range(width)}}
        with counted_statements(flow.store.database) as statements:
            started = flow.client.start_workflow(steps(Workflow("order"), parents))
        starting.append(len(statements))
        more = {f"late{number}": "first m1" for number in range(width)}
        with counted_statements(flow.store.database) as statements:
            flow.client.append_steps(started.id, steps(Steps(), more))
        appending.append(len(statements))
    assert starting[0] == starting[1]
    assert appending[0] == appending[1]
