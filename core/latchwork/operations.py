"""The operator: everything one may do to jobs, with an actor, a preview and an audit row."""

from uuid import UUID

from uuid_utils.compat import uuid7

from latchwork.store import operator_actions, previews
from latchwork.store.database import Database
from latchwork.store.lost_answers import repeat_until_answered
from latchwork.values import checked_id, checked_name
from latchwork.views import ActionPreview, CancelResult, RequeueResult


class Operator:
    """Acts on the jobs of one database (contract section 8).

    Every action names its ``actor`` (1 to 128 characters, else InvalidValue or ValueTooLarge) and
    is written to the audit trail in its own transaction; a refused action changes nothing and
    leaves no row. An answer lost on the way is asked for again under the same request id;
    OutcomeUnknown is raised when the database stays away.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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
