"""Workflows: named steps joined by dependencies, enqueued as a whole or not at all (section 6)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Self
from uuid import UUID

from latchwork.decisions.states import DependencyMode
from latchwork.errors import InvalidValue, InvalidWorkflow, TooManyParents
from latchwork.jobs import JobCall
from latchwork.values import (
    MAX_PARENTS,
    MAX_PAYLOAD_BYTES,
    checked_name,
    checked_tags,
    json_text,
)
from latchwork.views import Tag


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its call, the steps it waits for, and how it takes their ends."""

    name: str
    call: JobCall
    after: tuple[str, ...]
    mode: DependencyMode
    queue: str | None
    tags: tuple[Tag, ...]


@dataclass(slots=True)
class Steps:
    """Named steps, added in any order: of a new workflow, or for ``client.append_steps``."""

    steps: dict[str, Step] = field(default_factory=dict, init=False)

    def add(
        self,
        step: str | JobCall,
        call: JobCall | None = None,
        *,
        after: Iterable[str] = (),
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
    ) -> Self:
        """Add a step that runs once the steps named in ``after`` (up to 16) have ended.

        The step's name may be left out, ``add(call)``: it is then the wire name. Returns the steps,
        so that calls can be chained. Raises InvalidWorkflow for a name used twice and
        TooManyParents; unknown steps and cycles are found when the steps are enqueued.
        """
        if isinstance(step, JobCall):
            if call is not None:
                raise InvalidWorkflow("a step takes a name and one call, or a call alone")
            name, call = step.job_type.wire_name, step
        else:
            name = step
        if name in self.steps:
            raise InvalidWorkflow(f"two steps are named {name!r}")
        self.steps[name] = _new_step(name, call, after, mode, queue, tags)
        return self

    def in_order(self, stored: Collection[str] = ()) -> list[Step]:
        """The steps, each after those it waits for; ``stored`` ones may be waited for, too.

        Raises InvalidWorkflow for a cycle, an unknown step, or a name that is stored already.
        """
        if not self.steps:
            raise InvalidWorkflow("a workflow needs at least one step")
        for step in self.steps.values():
            if step.name in stored:
                raise InvalidWorkflow(f"the workflow has a step named {step.name!r} already")
            for parent in step.after:
                if parent not in self.steps and parent not in stored:
                    raise InvalidWorkflow(
                        f"step {step.name!r} waits for {parent!r}, which is no step of the workflow"
                    )
        among = {
            step.name: [parent for parent in step.after if parent in self.steps]
            for step in self.steps.values()
        }
        try:
            return [self.steps[name] for name in TopologicalSorter(among).static_order()]
        except CycleError as error:
            raise InvalidWorkflow(
                f"the steps wait in a circle: {' -> '.join(error.args[1])}"
            ) from error


@dataclass(slots=True)
class Workflow(Steps):
    """A workflow to be started: add its steps in any order, then ``client.start_workflow``.

    Every step can read ``input`` (anything with a JSON form, at most 65,536 bytes) as
    ``context.workflow_input``. Raises InvalidValue or ValueTooLarge for it and for the name.
    """

    name: str
    input: InitVar[object] = None
    input_json: str | None = field(default=None, init=False)

    def __post_init__(self, given: object) -> None:
        """Check the name, and write the input down."""
        checked_name("workflow name", self.name)
        if given is not None:
            self.input_json = json_text("workflow input", given, MAX_PAYLOAD_BYTES)


def _new_step(
    step: str,
    call: JobCall | None,
    after: Iterable[str],
    mode: DependencyMode,
    queue: str | None,
    tags: Iterable[Tag],
) -> Step:
    """A checked step. Raises InvalidValue, ValueTooLarge or TooManyParents."""
    if not isinstance(call, JobCall):
        raise InvalidValue("call", "must be made by job_type.bind(...)")
    if isinstance(after, str):
        raise InvalidWorkflow(f"after={after!r} must be a collection of step names, not one string")
    parents = tuple(dict.fromkeys(after))
    if len(parents) > MAX_PARENTS:
        raise TooManyParents(len(parents), MAX_PARENTS)
    return Step(
        checked_name("step", step), call, parents, checked_mode(mode), queue, checked_tags(tags)
    )


def checked_mode(mode: DependencyMode) -> DependencyMode:
    """``mode`` if it is one; raises InvalidValue otherwise."""
    try:
        return DependencyMode(mode)
    except ValueError as error:
        raise InvalidValue("mode", "must be a DependencyMode") from error


@dataclass(frozen=True, slots=True)
class StartedWorkflow:
    """A workflow that is stored: its id and the job of every step."""

    id: UUID
    jobs: Mapping[str, UUID]
