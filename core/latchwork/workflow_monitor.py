"""What one may read of workflows; a part of the monitor."""

from uuid import UUID

from latchwork.decisions.workflows import WorkflowStatus
from latchwork.errors import InvalidValue
from latchwork.reader import Reader, at_least_one
from latchwork.store import graph_queries, workflow_queries
from latchwork.values import checked_id, checked_name
from latchwork.views import Graph
from latchwork.workflow_views import WorkflowDetail, WorkflowPage


class WorkflowMonitor(Reader):
    """Reads workflows (contract section 6)."""

    def workflow(self, workflow_id: UUID, *, with_input: bool = True) -> WorkflowDetail | None:
        """The workflow of this id, its input and its restarts; None if it is unknown."""
        return self._read(
            workflow_queries.find_workflow,
            checked_id("workflow_id", workflow_id),
            with_input=with_input,
        )

    def workflows(
        self,
        status: WorkflowStatus | None = None,
        name: str | None = None,
        page: str | None = None,
        *,
        limit: int = 50,
    ) -> WorkflowPage:
        """One page of workflows, newest first, each with how many members are in which state.

        Args:
            status: Only those of this status, which is derived from their members.
            name: Only those of this name.
            page: A cursor from ``WorkflowPage.next`` or ``.previous``.
            limit: Rows of the page, at most 200.

        Raises:
            InvalidValue: an argument is malformed.
        """
        return self._read(
            workflow_queries.list_workflows,
            status=None if status is None else _checked_status(status),
            name=None if name is None else checked_name("name", name),
            cursor=None if page is None else workflow_queries.parse_cursor(page),
            limit=at_least_one(limit),
        )

    def workflow_graph(
        self, workflow_id: UUID, *, limit: int = graph_queries.MAX_GRAPH_JOBS
    ) -> Graph | None:
        """The members of a workflow and their dependencies, in enqueue order; None if unknown."""
        return self._read(
            graph_queries.read_workflow_graph,
            checked_id("workflow_id", workflow_id),
            limit=at_least_one(limit),
        )


def _checked_status(status: WorkflowStatus) -> WorkflowStatus:
    try:
        return WorkflowStatus(status)
    except ValueError:
        raise InvalidValue("status", f"must be one of {', '.join(WorkflowStatus)}") from None
