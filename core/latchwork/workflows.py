"""Workflows: named steps joined by dependencies, enqueued as a whole or not at all (section 6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

from latchwork.decisions.states import DependencyMode
from latchwork.errors import InvalidWorkflow, TooManyParents
from latchwork.jobs import JobCall
from latchwork.values import MAX_PARENTS, checked_name, checked_tags
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
class Workflow:
    """A workflow to be started: add its steps in any order, then ``client.start_workflow``."""

    name: str
    steps: dict[str, Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the name: InvalidValue or ValueTooLarge."""
        checked_name("workflow name", self.name)

    def add(
        self,
        step: str,
        call: JobCall,
        *,
        after: Iterable[str] = (),
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
    ) -> "Workflow":
        """Add a step that runs once the steps named in ``after`` (up to 16) have ended.

        Returns the workflow, so that calls can be chained. Raises InvalidWorkflow for a name used
        twice and TooManyParents; unknown steps and cycles are found when the workflow is started.
        """
        if step in self.steps:
            raise InvalidWorkflow(f"workflow {self.name!r} has two steps named {step!r}")
        self.steps[step] = new_step(step, call, after, mode, queue, tags)
        return self

    def in_order(self) -> list[Step]:
        """The steps, each after those it waits for. Raises InvalidWorkflow for a cycle or a gap."""
        if not self.steps:
            raise InvalidWorkflow(f"workflow {self.name!r} has no steps")
        for step in self.steps.values():
            for parent in step.after:
                if parent not in self.steps:
                    raise InvalidWorkflow(
                        f"step {step.name!r} of workflow {self.name!r} waits for {parent!r}, "
                        "which is no step of it"
                    )
        sorter = TopologicalSorter({step.name: step.after for step in self.steps.values()})
        try:
            return [self.steps[name] for name in sorter.static_order()]
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise InvalidWorkflow(f"workflow {self.name!r} has a cycle: {cycle}") from error


def new_step(
    step: str,
    call: JobCall,
    after: Iterable[str],
    mode: DependencyMode,
    queue: str | None,
    tags: Iterable[Tag],
) -> Step:
    """A checked step. Raises InvalidValue, ValueTooLarge or TooManyParents."""
    if isinstance(after, str):
        raise InvalidWorkflow(f"after={after!r} must be a collection of step names, not one string")
    parents = tuple(dict.fromkeys(after))
    if len(parents) > MAX_PARENTS:
        raise TooManyParents(len(parents), MAX_PARENTS)
    return Step(checked_name("step", step), call, parents, mode, queue, checked_tags(tags))


@dataclass(frozen=True, slots=True)
class StartedWorkflow:
    """A workflow that is stored: its id and the job of every step."""

    id: UUID
    jobs: Mapping[str, UUID]
