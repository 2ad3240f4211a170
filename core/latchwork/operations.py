"""The operator: everything one may do to jobs, with an actor, a preview and an audit row."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from uuid_utils.compat import uuid7

from latchwork.action_results import CancelResult, RequeueResult
from latchwork.bulk_views import BulkAction, BulkOperation, BulkOutcome, BulkPreview
from latchwork.decisions.states import HistoryPolicy
from latchwork.errors import InvalidValue
from latchwork.observer_views import HistoryResult, ReplayResult, RetireResult, SettingPreview
from latchwork.queue_views import QueuePreview, QueueResult
from latchwork.schedule_operations import ScheduleOperator
from latchwork.store import (
    bulk_operations,
    bulk_queries,
    history_policy,
    observer_actions,
    operator_actions,
    previews,
    queue_actions,
    queue_previews,
)
from latchwork.store.lost_answers import repeat_until_answered
from latchwork.values import checked_filter, checked_id, checked_limit, checked_name
from latchwork.views import ActionPreview, JobFilter
from latchwork.workflow_operations import WorkflowOperator

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Operator(WorkflowOperator, ScheduleOperator):
    """Acts on the jobs of one database (contract section 8).

    Every action names its ``actor`` (1 to 128 characters, else InvalidValue or ValueTooLarge) and
    is written to the audit trail in its own transaction; a refused action changes nothing and
    leaves no row. An answer lost on the way is asked for again under the same request id;
    OutcomeUnknown is raised when the database stays away.
    """

    def cancel(self, job_id: UUID, *, actor: str) -> CancelResult:
        """Cancel a waiting job now, or ask the worker of a running one to stop it (section 2)."""
        checked_id("job_id", job_id)
        checked_name("actor", actor)
        request_id = uuid7()
        answer = repeat_until_answered(
            lambda: self._database.write(
                operator_actions.cancel,
                job_id,
                actor=actor,
                now=self._database.now(),
                request_id=request_id,
            ),
            ids=[job_id],
        )
        assert answer is not None  # noqa: S101 - only an enqueue can meet its own row
        return answer

    def requeue(self, job_id: UUID, *, actor: str) -> RequeueResult:
        """Give a Dead-Lettered or Quarantined job a new life, due now (edges 10 and 11)."""
        checked_id("job_id", job_id)
        checked_name("actor", actor)
        request_id = uuid7()
        answer = repeat_until_answered(
            lambda: self._database.write(
                operator_actions.requeue,
                job_id,
                actor=actor,
                now=self._database.now(),
                request_id=request_id,
            ),
            ids=[job_id],
        )
        assert answer is not None  # noqa: S101 - only an enqueue can meet its own row
        return answer

    def preview_cancel(self, job_id: UUID) -> ActionPreview | None:
        """What ``cancel`` would do now, to how many jobs; None for an unknown job."""
        return self._database.read(previews.preview_cancel, checked_id("job_id", job_id))

    def preview_requeue(self, job_id: UUID) -> ActionPreview | None:
        """What ``requeue`` would do now, and what stays cancelled; None for an unknown job."""
        return self._database.read(previews.preview_requeue, checked_id("job_id", job_id))

    def requeue_matching(
        self, job_filter: JobFilter, *, actor: str, canary: bool = False
    ) -> BulkOperation:
        """Requeue every failed job that matches now, as one tracked operation.

        A node or a console lists the jobs and works them off; with ``canary`` the first of them
        goes alone and the rest waits for ``continue_operation``. Raises InvalidValue when the
        filter asks for no state that can be requeued.
        """
        return self._begin(BulkAction.REQUEUE, job_filter, actor, canary=canary)

    def requeue_group(self, key: str, *, actor: str, canary: bool = True) -> BulkOperation:
        """Requeue the jobs of one group of failures; see ``requeue_matching``."""
        return self.requeue_matching(JobFilter(cause_group=key), actor=actor, canary=canary)

    def cancel_matching(self, job_filter: JobFilter, *, actor: str) -> BulkOperation:
        """Cancel every live job that matches now; see ``requeue_matching``."""
        return self._begin(BulkAction.CANCEL, job_filter, actor, canary=False)

    def continue_operation(self, operation_id: UUID, *, actor: str) -> BulkOutcome:
        """Let the members that wait behind the canary follow; REFUSED when none waits."""
        return self._act_on_operation(bulk_operations.let_follow, operation_id, actor)

    def stop_operation(self, operation_id: UUID, *, actor: str) -> BulkOutcome:
        """Act on no further member; what was done stays done. REFUSED when it has ended."""
        return self._act_on_operation(bulk_operations.stop, operation_id, actor)

    def preview_requeue_matching(self, job_filter: JobFilter) -> BulkPreview:
        """How many jobs ``requeue_matching`` would requeue now, and what stays cancelled."""
        return self._database.read(
            bulk_queries.preview, BulkAction.REQUEUE, checked_filter(job_filter)
        )

    def preview_cancel_matching(self, job_filter: JobFilter) -> BulkPreview:
        """How many jobs ``cancel_matching`` would cancel now, and what goes with them."""
        return self._database.read(
            bulk_queries.preview, BulkAction.CANCEL, checked_filter(job_filter)
        )

    def pause_queue(self, queue: str, *, actor: str) -> QueueResult:
        """Let no job of the queue start any more, on any node; running ones run on (section 4).

        The queue need not exist yet. Once this has answered, no claim commits before a resume.
        UNCHANGED when it was paused already: whoever did it first stands.
        """
        return self._act_on_queue(queue, actor, queue_actions.pause)

    def resume_queue(self, queue: str, *, actor: str) -> QueueResult:
        """Let jobs of the queue start again; UNCHANGED when it was not paused."""
        return self._act_on_queue(queue, actor, queue_actions.resume)

    def set_limit(self, queue: str, limit: int | None, *, actor: str) -> QueueResult:
        """Let at most ``limit`` jobs of the queue run at once, over all nodes; None lifts it.

        Jobs above a lowered limit run on. Once this has answered, no claim commits that goes beyond
        it. Raises InvalidValue for a limit that is not a whole number from 1 to 2,147,483,647.
        """
        checked_limit(limit)
        return self._act_on_queue(queue, actor, partial(queue_actions.set_limit, limit=limit))

    def preview_pause_queue(self, queue: str) -> QueuePreview:
        """What ``pause_queue`` would do now: how many jobs are due, which run on."""
        return self._database.read(
            queue_previews.preview_pause, checked_name("queue", queue), now=self._database.now()
        )

    def preview_resume_queue(self, queue: str) -> QueuePreview:
        """What ``resume_queue`` would do now."""
        return self._database.read(
            queue_previews.preview_resume, checked_name("queue", queue), now=self._database.now()
        )

    def preview_set_limit(self, queue: str, limit: int | None) -> QueuePreview:
        """What ``set_limit`` would do now, and who holds the queue's slots."""
        return self._database.read(
            queue_previews.preview_limit,
            checked_name("queue", queue),
            checked_limit(limit),
            now=self._database.now(),
        )

    def retire_observer(self, name: str, *, actor: str) -> RetireResult:
        """Call an observer no more, for good: the log does not wait for it, its name is used up.

        Its pending and dead deliveries are given up with it (contract section 7).
        """
        checked_name("name", name)
        return self._carry_out(partial(observer_actions.retire, name=name), actor)

    def replay_delivery(self, delivery_id: int, *, actor: str) -> ReplayResult:
        """Let a dead delivery be tried again, with all its tries, from its own copy of the row."""
        _checked_number("delivery_id", delivery_id)
        return self._carry_out(partial(observer_actions.replay, delivery_id=delivery_id), actor)

    def set_history_policy(self, policy: HistoryPolicy, *, actor: str) -> HistoryResult:
        """Set how much the transition log keeps from now on, for the whole database (section 5).

        OFF is REFUSED, with their names, while observers are active.
        """
        chosen = _checked_policy(policy)
        return self._carry_out(partial(history_policy.set_history_policy, policy=chosen), actor)

    def preview_retire_observer(self, name: str) -> SettingPreview | None:
        """What ``retire_observer`` would give up now; None for an unknown observer."""
        return self._database.read(observer_actions.preview_retire, checked_name("name", name))

    def preview_replay_delivery(self, delivery_id: int) -> SettingPreview | None:
        """What ``replay_delivery`` would do now; None for an unknown delivery."""
        number = _checked_number("delivery_id", delivery_id)
        return self._database.read(observer_actions.preview_replay, number)

    def preview_set_history_policy(self, policy: HistoryPolicy) -> SettingPreview:
        """What ``set_history_policy`` would do now."""
        return self._database.read(
            history_policy.preview_history_policy, _checked_policy(policy), now=self._database.now()
        )

    def _begin(
        self, action: BulkAction, job_filter: JobFilter, actor: str, *, canary: bool
    ) -> BulkOperation:
        checked_name("actor", actor)
        chosen = bulk_queries.acted_on(action, checked_filter(job_filter))
        if chosen is None:
            raise InvalidValue("states", f"name none that a {action.value} is legal in")
        operation_id, now = uuid7(), self._database.now()

        def begin(connection: "Connection") -> BulkOperation | None:
            bulk_operations.begin(
                connection, operation_id, action, chosen, actor=actor, now=now, canary=canary
            )
            return bulk_queries.find_operation(connection, operation_id, now=now)

        answer = repeat_until_answered(lambda: self._database.write(begin), ids=[operation_id])
        assert answer is not None  # noqa: S101 - it was just stored
        return answer

    def _act_on_operation(
        self, act: Callable[..., BulkOutcome], operation_id: UUID, actor: str
    ) -> BulkOutcome:
        checked_id("operation_id", operation_id)
        checked_name("actor", actor)
        request_id = uuid7()
        answer = repeat_until_answered(
            lambda: self._database.write(
                act, operation_id, actor=actor, now=self._database.now(), request_id=request_id
            ),
            ids=[request_id],
        )
        assert answer is not None  # noqa: S101 - only an enqueue can meet its own row
        return answer

    def _act_on_queue(self, queue: str, actor: str, act: Callable[..., QueueResult]) -> QueueResult:
        return self._carry_out(partial(act, queue=checked_name("queue", queue)), actor)


def _checked_number(field: str, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 2**63:
        raise InvalidValue(field, "must be a positive whole number")
    return number


def _checked_policy(policy: HistoryPolicy) -> HistoryPolicy:
    try:
        return HistoryPolicy(policy)
    except ValueError:
        known = ", ".join(HistoryPolicy)
        raise InvalidValue("policy", f"must be one of {known}") from None
