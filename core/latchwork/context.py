"""What a handler is given: its job, its cancellation token, outputs its own and its ancestors'."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from uuid import UUID

from pydantic import TypeAdapter

from latchwork.decisions.states import CancelReason, JobState
from latchwork.errors import JobCancelled, OutputTooLarge
from latchwork.jobs import JobType
from latchwork.store import graph_queries
from latchwork.store.database import Database
from latchwork.store.workflow_rows import read_input
from latchwork.values import MAX_OUTPUT_BYTES, checked_tags, json_text
from latchwork.views import Tag

if TYPE_CHECKING:
    from latchwork.store.claiming import ClaimedJob

T = TypeVar("T")

# Tokens fire and are waited on seldom; one lock for all keeps each of them small.
_FIRING = threading.Lock()


class Cancellation:
    """A handler's cancellation token: fires once, from any thread, and stays fired.

    It fires when an operator asks for a cancel, the lease is lost, the node shuts down or the
    attempt times out (contract section 2, Cancel).
    """

    __slots__ = ("_listeners", "_reasons")

    def __init__(self) -> None:
        self._reasons: tuple[CancelReason, ...] = ()
        self._listeners: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Whether the handler was asked to stop."""
        return bool(self._reasons)

    @property
    def reason(self) -> CancelReason | None:
        """Why it was first asked to stop; None while it was not."""
        return self._reasons[0] if self._reasons else None

    @property
    def reasons(self) -> tuple[CancelReason, ...]:
        """Every reason that was given, oldest first."""
        return self._reasons

    def raise_if_requested(self) -> None:
        """Raise JobCancelled if the handler was asked to stop."""
        if self._reasons:
            raise JobCancelled(self._reasons[0])

    async def wait(self) -> CancelReason:
        """Wait until the token fires; returns why."""
        loop = asyncio.get_running_loop()
        fired = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(fired.set)

        self._listen(wake)
        try:
            await fired.wait()
        finally:
            self._forget(wake)
        return self._reasons[0]

    def wait_blocking(self, timeout_seconds: float | None = None) -> bool:
        """Wait in a plain handler until the token fires, at most ``timeout_seconds``.

        Returns whether it has fired.
        """
        fired = threading.Event()
        self._listen(fired.set)
        try:
            fired.wait(timeout_seconds)
        finally:
            self._forget(fired.set)
        return self.requested

    def fire(self, reason: CancelReason) -> bool:
        """Ask the handler to stop; returns whether this reason is new. For the worker."""
        with _FIRING:
            if reason in self._reasons:
                return False
            self._reasons = (*self._reasons, reason)
            listeners, self._listeners = self._listeners, []
        for wake in listeners:
            wake()
        return True

    def _listen(self, wake: Callable[[], None]) -> None:
        with _FIRING:
            if not self._reasons:
                self._listeners.append(wake)
                return
        wake()

    def _forget(self, wake: Callable[[], None]) -> None:
        with _FIRING:
            if wake in self._listeners:
                self._listeners.remove(wake)


@dataclass(frozen=True, slots=True)
class DependencyOutput(Generic[T]):
    """What an ancestor left behind; all empty for a job that is no ancestor.

    ``has_output`` tells an output of None from none at all.
    """

    has_output: bool
    output: T | None
    state: JobState | None


class JobContext:
    """One attempt of one job, as its handler sees it: a new one for each attempt."""

    __slots__ = (
        "_database", "_job", "_workflow_input", "added_tags", "cancellation", "output", "scope",
    )  # fmt: skip

    def __init__(self, job: "ClaimedJob", database: Database) -> None:
        self._job = job
        self._database = database
        self._workflow_input: str | None = None
        self.cancellation = Cancellation()
        self.scope: Any = None
        """What the application's attempt scope gave for this attempt."""
        self.output: str | None = None
        """The output set so far, as JSON text."""
        self.added_tags: tuple[Tag, ...] | None = None
        """All tags of the job, once the handler has added some."""

    @property
    def job_id(self) -> UUID:
        """The job's id."""
        return self._job.id

    @property
    def wire_name(self) -> str:
        """The name its type is registered under."""
        return self._job.wire_name

    @property
    def queue(self) -> str:
        """The queue it was claimed from."""
        return self._job.queue

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        """How many tries its retry policy allows."""
        return self._job.retry.max_attempts

    @property
    def tags(self) -> tuple[Tag, ...]:
        """The job's tags, those added in this attempt included."""
        return self._job.tags if self.added_tags is None else self.added_tags

    def set_output(self, value: object) -> None:
        """Leave ``value``, written as JSON, to the jobs that depend on this one.

        The last call of the attempt wins. It is kept only if the attempt succeeds.

        Raises:
            InvalidValue: it has no JSON form.
            OutputTooLarge: it takes more than 65,536 bytes; nothing is ever cut.
        """
        self.output = json_text("output", value, MAX_OUTPUT_BYTES, OutputTooLarge)

    def add_tags(self, *tags: Tag) -> None:
        """Add tags to the job; they are stored with the outcome, whatever it is.

        Raises:
            InvalidValue: a tag is malformed.
            ValueTooLarge: a tag is too long, or the job would have more than 32.
        """
        self.added_tags = checked_tags((*self.tags, *tags))

    @property
    def workflow_id(self) -> UUID | None:
        """The workflow it is a step of, if any."""
        return self._job.workflow_id

    @property
    def step(self) -> str | None:
        """Its name within the workflow."""
        return self._job.step

    @property
    def workflow_input(self) -> Any:
        """The input that the workflow was started with, as plain JSON values; None without one.

        The first use reads it from the database; ``async`` handlers await
        ``workflow_input_async()`` instead.
        """
        if self._job.workflow_id is None:
            return None
        if self._workflow_input is None:
            stored = self._database.read(read_input, self._job.workflow_id)
            self._workflow_input = _NOTHING if stored is None else stored
        return json.loads(self._workflow_input)

    async def workflow_input_async(self) -> Any:
        """``workflow_input`` for ``async`` handlers: the read happens in a thread."""
        return await asyncio.to_thread(lambda: self.workflow_input)

    @overload
    def dependency_output(self, parent: "Parent") -> DependencyOutput[Any]: ...
    @overload
    def dependency_output(self, parent: "Parent", as_type: type[T]) -> DependencyOutput[T]: ...
    def dependency_output(
        self, parent: "Parent", as_type: type[Any] | None = None
    ) -> DependencyOutput[Any]:
        """The output of a job that this one depends on, directly or through others.

        Args:
            parent: a job id, a job type, or the name of a workflow step; a name that no step above
                bears is taken as a wire name.
            as_type: the type to read the output as; without it, plain JSON values.

        Returns:
            The output and the ancestor's state; (False, None, None) for anything else.

        Raises:
            AmbiguousAncestor: two ancestors answer to this name.
            pydantic.ValidationError: the output is no ``as_type``.
        """
        found = self._database.read(
            graph_queries.ancestor_output,
            self._job.sequence,
            parent_id=parent if isinstance(parent, UUID) else None,
            wire_name=parent.wire_name if isinstance(parent, JobType) else None,
            name=parent if isinstance(parent, str) else None,
        )
        if found.output is None:
            return DependencyOutput(False, None, found.state)  # noqa: FBT003 - the contract's triple
        if as_type is None:
            return DependencyOutput(True, json.loads(found.output), found.state)  # noqa: FBT003
        value = TypeAdapter(as_type).validate_json(found.output)
        return DependencyOutput(True, value, found.state)  # noqa: FBT003

    @overload
    async def dependency_output_async(self, parent: "Parent") -> DependencyOutput[Any]: ...
    @overload
    async def dependency_output_async(
        self, parent: "Parent", as_type: type[T]
    ) -> DependencyOutput[T]: ...
    async def dependency_output_async(
        self, parent: "Parent", as_type: type[Any] | None = None
    ) -> DependencyOutput[Any]:
        """``dependency_output`` for ``async`` handlers: the read happens in a thread."""
        if as_type is None:
            return await asyncio.to_thread(self.dependency_output, parent)
        return await asyncio.to_thread(self.dependency_output, parent, as_type)


_NOTHING = "null"

Parent = UUID | str | JobType[..., Any]
"""How a handler names an ancestor: by id, by job type, or by the name of a workflow step."""
