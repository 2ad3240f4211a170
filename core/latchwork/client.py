"""The client puts work in: one job, many, a dependent, a workflow; also on your connection."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from uuid_utils.compat import uuid7

from latchwork.decisions.states import DependencyMode
from latchwork.errors import DuplicateJob, InvalidValue, InvalidWorkflow
from latchwork.jobs import JobCall
from latchwork.schedule_client import ScheduleClient
from latchwork.schedule_views import SetOutcome
from latchwork.store.callers import on_callers_connection
from latchwork.store.enqueueing import NewJob, enqueued_at, insert_jobs, stored_ids
from latchwork.store.lost_answers import repeat_until_answered
from latchwork.store.workflow_rows import insert_workflow, lock_workflow, read_members
from latchwork.tracing import traced
from latchwork.values import checked_id, checked_name, checked_tags
from latchwork.views import Tag
from latchwork.workflows import StartedWorkflow, Step, Steps, Workflow, checked_mode

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    CallersConnection = Connection | Session


class Client(ScheduleClient):
    """Enqueues jobs into one database.

    With ``connection`` (a SQLAlchemy Connection or Session) a call takes part in the caller's own
    transaction: the jobs exist if and only if that commits. Without it, an answer lost on the way
    is asked for again under the same ids; OutcomeUnknown names them when the database stays away.
    """

    @traced
    def enqueue(
        self,
        call: JobCall,
        *,
        due_at: datetime | None = None,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
        job_id: UUID | None = None,
        exist_ok: bool = False,
        connection: "CallersConnection | None" = None,
    ) -> UUID:
        """Enqueue one job and return its id (seed: Entering the lifecycle).

        ``due_at`` is an aware time, now if left out; ``queue`` overrides the job type's; ``tags``
        are added to the type's. With ``job_id`` the job gets that id: DuplicateJob if it exists,
        unless ``exist_ok`` accepts the stored job as it is. Raises InvalidValue or ValueTooLarge
        (contract section 9).
        """
        new = self._new_job(call, due_at=due_at, queue=queue, tags=tags, job_id=job_id)
        ids_are_new = job_id is None
        self._insert([new], ids_are_new=ids_are_new, exist_ok=exist_ok, connection=connection)
        return new.id

    @traced
    def enqueue_many(
        self,
        calls: Iterable[JobCall],
        *,
        due_at: datetime | None = None,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
        connection: "CallersConnection | None" = None,
    ) -> list[UUID]:
        """Enqueue many jobs in one transaction, all or none; returns their ids in order."""
        tags = tuple(tags)
        new = [self._new_job(call, due_at=due_at, queue=queue, tags=tags) for call in calls]
        if new:
            self._insert(new, ids_are_new=True, exist_ok=False, connection=connection)
        return [job.id for job in new]

    @traced
    def enqueue_dependency(
        self,
        call: JobCall,
        *,
        parent: UUID,
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        due_at: datetime | None = None,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
        job_id: UUID | None = None,
        exist_ok: bool = False,
        connection: "CallersConnection | None" = None,
    ) -> UUID:
        """Enqueue a job that waits for ``parent`` to end (seed: Declaring a Dependency).

        It never runs before its own ``due_at``. Raises UnknownParent if no such job is stored.
        """
        new = self._new_job(call, due_at=due_at, queue=queue, tags=tags, job_id=job_id)
        new = replace(new, parents=(checked_id("parent", parent),), mode=checked_mode(mode))
        ids_are_new = job_id is None
        self._insert([new], ids_are_new=ids_are_new, exist_ok=exist_ok, connection=connection)
        return new.id

    @traced
    def start_workflow(
        self, workflow: Workflow, *, connection: "CallersConnection | None" = None
    ) -> StartedWorkflow:
        """Enqueue a whole workflow in one transaction (contract section 6).

        Raises InvalidWorkflow for cycles and unknown steps before anything is written.
        """
        steps = workflow.in_order()
        workflow_id = uuid7()
        ids = {step.name: uuid7() for step in steps}
        new = [
            replace(
                self._new_member(step, workflow_id, ids),
                parents=tuple(ids[name] for name in step.after),
            )
            for step in steps
        ]
        now = self._database.now()

        def insert(connection: "Connection") -> None:
            insert_workflow(
                connection, workflow_id, name=workflow.name, now=now, input_json=workflow.input_json
            )
            insert_jobs(connection, new, now=now, ids_are_new=True)

        self._write(insert, new, now, connection)
        return StartedWorkflow(workflow_id, ids)

    @traced
    def append_step(
        self,
        workflow_id: UUID,
        step: str,
        call: JobCall,
        *,
        after: Iterable[str] = (),
        mode: DependencyMode = DependencyMode.ON_SUCCESS,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
        connection: "CallersConnection | None" = None,
    ) -> UUID:
        """Add a step to a stored workflow; the edges that exist never change (section 6).

        Also after it has ended: it then runs again. A step on parents that failed is born
        Cancelled. Raises InvalidWorkflow for an unknown workflow, a step name in use or an unknown
        step.
        """
        steps = Steps().add(step, call, after=after, mode=mode, queue=queue, tags=tags)
        return self.append_steps(workflow_id, steps, connection=connection)[step]

    @traced
    def append_steps(
        self, workflow_id: UUID, steps: Steps, *, connection: "CallersConnection | None" = None
    ) -> dict[str, UUID]:
        """Add steps to a stored workflow in one transaction; returns the job of each.

        They may wait for each other and for stored steps. Raises as ``append_step`` does.
        """
        checked_id("workflow_id", workflow_id)
        ids = {name: uuid7() for name in steps.steps}
        calls = {
            name: self._new_member(step, workflow_id, ids) for name, step in steps.steps.items()
        }
        now = self._database.now()

        def insert(connection: "Connection") -> None:
            if not lock_workflow(connection, workflow_id):
                raise InvalidWorkflow(f"workflow {workflow_id} does not exist")
            stored = {one.step: one.id for one in read_members(connection, workflow_id)}
            for step, job_id in ids.items():
                if stored.get(step) == job_id:
                    raise DuplicateJob(job_id)  # this call's own row, its answer was lost
            known = stored | ids
            new = [
                replace(calls[step.name], parents=tuple(known[name] for name in step.after))
                for step in steps.in_order(stored)
            ]
            insert_jobs(connection, new, now=now, ids_are_new=True)

        self._write(insert, list(calls.values()), now, connection)
        return ids

    def _new_job(
        self,
        call: JobCall,
        *,
        due_at: datetime | None = None,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
        job_id: UUID | None = None,
    ) -> NewJob:
        if not isinstance(call, JobCall):
            raise InvalidValue("call", "must be made by job_type.bind(...)")
        job_type, tracing = call.job_type, self._database.tracing
        job_id = uuid7() if job_id is None else checked_id("job_id", job_id)
        queue = job_type.queue if queue is None else checked_name("queue", queue)
        return NewJob(
            id=job_id,
            wire_name=job_type.wire_name,
            queue=queue,
            payload=call.payload,
            retry=job_type.retry,
            due_at=self._database.now() if due_at is None else _checked_time("due_at", due_at),
            tags=checked_tags((*job_type.tags, *_as_tags(tags))),
            trace_context=None
            if tracing is None
            else tracing.sent(job_id, job_type.wire_name, queue),
        )

    def _new_member(self, step: Step, workflow_id: UUID, ids: Mapping[str, UUID]) -> NewJob:
        """A step as a job, without its parents yet."""
        new = self._new_job(step.call, queue=step.queue, tags=step.tags, job_id=ids[step.name])
        return replace(new, mode=step.mode, workflow_id=workflow_id, step=step.name)

    def _insert(
        self,
        new: Sequence[NewJob],
        *,
        ids_are_new: bool,
        exist_ok: bool,
        connection: "CallersConnection | None",
    ) -> None:
        now = self._database.now()

        def insert(connection: "Connection") -> None:
            if exist_ok and stored_ids(connection, [job.id for job in new]):
                return
            try:
                with connection.begin_nested() if exist_ok else nullcontext():
                    insert_jobs(connection, new, now=now, ids_are_new=ids_are_new)
            except DuplicateJob:
                if not exist_ok:
                    raise

        self._write(insert, new, now, connection)

    def _write(
        self,
        insert: "Callable[[Connection], None]",
        new: Sequence[NewJob],
        now: datetime,
        connection: "CallersConnection | None",
    ) -> None:
        if connection is not None:
            on_callers_connection(self._database, connection, insert)
            return
        ids = [job.id for job in new]

        def written_before() -> bool:
            return self._database.read(enqueued_at, ids[0]) == now

        repeat_until_answered(
            lambda: self._database.write(insert), ids=ids, written_before=written_before
        )


def _as_tags(tags: Iterable[Tag]) -> Iterable[Tag]:
    if isinstance(tags, str):
        raise InvalidValue("tags", "must be a collection of tags, not one string")
    return tags


def _checked_time(field: str, value: object) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidValue(field, "must be a datetime with a time zone")
    try:
        # Stored in UTC, and read back: also the first and last days of the calendar must fit.
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue(field, "is outside the years 1 to 9999 in UTC") from error


class AsyncClient:
    """The client for async code: the same calls, awaitable, each in a thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def enqueue(self, call: JobCall, **options: Any) -> UUID:
        """``Client.enqueue``, awaited."""
        return await asyncio.to_thread(self._client.enqueue, call, **options)

    async def enqueue_many(self, calls: Iterable[JobCall], **options: Any) -> list[UUID]:
        """``Client.enqueue_many``, awaited."""
        return await asyncio.to_thread(self._client.enqueue_many, calls, **options)

    async def enqueue_dependency(self, call: JobCall, **options: Any) -> UUID:
        """``Client.enqueue_dependency``, awaited."""
        return await asyncio.to_thread(self._client.enqueue_dependency, call, **options)

    async def start_workflow(self, workflow: Workflow, **options: Any) -> StartedWorkflow:
        """``Client.start_workflow``, awaited."""
        return await asyncio.to_thread(self._client.start_workflow, workflow, **options)

    async def append_step(
        self, workflow_id: UUID, step: str, call: JobCall, **options: Any
    ) -> UUID:
        """``Client.append_step``, awaited."""
        return await asyncio.to_thread(self._client.append_step, workflow_id, step, call, **options)

    async def append_steps(
        self, workflow_id: UUID, steps: Steps, **options: Any
    ) -> dict[str, UUID]:
        """``Client.append_steps``, awaited."""
        return await asyncio.to_thread(self._client.append_steps, workflow_id, steps, **options)

    async def set_schedule(self, schedule_id: str, call: JobCall, **options: Any) -> SetOutcome:
        """``Client.set_schedule``, awaited."""
        return await asyncio.to_thread(self._client.set_schedule, schedule_id, call, **options)

    async def remove_schedule(self, schedule_id: str) -> bool:
        """``Client.remove_schedule``, awaited."""
        return await asyncio.to_thread(self._client.remove_schedule, schedule_id)
