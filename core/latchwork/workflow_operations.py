"""What one may do to whole workflows; a part of the operator."""

from functools import partial
from uuid import UUID

from latchwork.audited_actions import AuditedActions
from latchwork.decisions.workflows import RetryScope
from latchwork.errors import InvalidValue
from latchwork.store import workflow_actions, workflow_previews, workflow_retry
from latchwork.values import checked_id
from latchwork.workflow_views import (
    CancelWorkflowResult,
    RestartWorkflowResult,
    RetryWorkflowResult,
    WorkflowPreview,
)


class WorkflowOperator(AuditedActions):
    """Acts on whole workflows (contract section 6)."""

    def cancel_workflow(self, workflow_id: UUID, *, actor: str) -> CancelWorkflowResult:
        """Cancel every live member: waiting ones now, running ones by asking their workers."""
        checked_id("workflow_id", workflow_id)
        act = partial(workflow_actions.cancel_workflow, workflow_id=workflow_id)
        return self._carry_out(act, actor)

    def retry_workflow(
        self, workflow_id: UUID, *, scope: RetryScope = RetryScope.UNFINISHED, actor: str
    ) -> RetryWorkflowResult:
        """Give members of an ended workflow a new life, in place, with the same ids.

        ``scope``: UNFINISHED, all that have not succeeded; DOWNSTREAM, those and all that follow
        them; ALL. REFUSED, naming them, while members are live. A cancelled branch comes back;
        dependents outside the workflow stay as they are.
        """
        checked_id("workflow_id", workflow_id)
        act = partial(
            workflow_retry.retry_workflow, workflow_id=workflow_id, scope=_checked_scope(scope)
        )
        return self._carry_out(act, actor)

    def restart_workflow(self, workflow_id: UUID, *, actor: str) -> RestartWorkflowResult:
        """Start a new workflow from the stored steps of this one, which stays as it is."""
        checked_id("workflow_id", workflow_id)
        act = partial(workflow_actions.restart_workflow, workflow_id=workflow_id)
        return self._carry_out(act, actor)

    def preview_cancel_workflow(self, workflow_id: UUID) -> WorkflowPreview | None:
        """What ``cancel_workflow`` would do now; None for an unknown workflow."""
        checked_id("workflow_id", workflow_id)
        return self._database.read(workflow_previews.preview_cancel, workflow_id)

    def preview_retry_workflow(
        self, workflow_id: UUID, *, scope: RetryScope = RetryScope.UNFINISHED
    ) -> WorkflowPreview | None:
        """What ``retry_workflow`` would do now, and whom it leaves out; None for an unknown one."""
        checked_id("workflow_id", workflow_id)
        return self._database.read(
            workflow_previews.preview_retry, workflow_id, _checked_scope(scope)
        )

    def preview_restart_workflow(self, workflow_id: UUID) -> WorkflowPreview | None:
        """What ``restart_workflow`` would do now; None for an unknown workflow."""
        checked_id("workflow_id", workflow_id)
        return self._database.read(workflow_previews.preview_restart, workflow_id)


def _checked_scope(scope: RetryScope) -> RetryScope:
    try:
        return RetryScope(scope)
    except ValueError:
        raise InvalidValue("scope", f"must be one of {', '.join(RetryScope)}") from None
