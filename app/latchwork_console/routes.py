"""Every address of the console, on one screen, each with the permission it asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from latchwork.errors import LatchworkError
from latchwork_console.actions import bulk_actions, cancellations, requeues, workflow_actions
from latchwork_console.actions import observers as observer_actions
from latchwork_console.actions.queue_actions import limit_queue, pause_queue, resume_queue
from latchwork_console.actions.schedules import trigger
from latchwork_console.console import Permission, permits
from latchwork_console.live_views import LiveView
from latchwork_console.pages import (
    audit,
    failures,
    graph,
    health,
    job,
    jobs,
    log,
    log_stream,
    metrics,
    nodes,
    observers,
    operations,
    overview,
    queue,
    queues,
    schedules,
    static,
    workflow,
    workflows,
)

Endpoint = Callable[[Request], Any]


@dataclass(frozen=True, slots=True)
class Address:
    """One address: its path, the permission it asks for, what answers, and by which method."""

    path: str
    permission: Permission
    endpoint: Endpoint
    name: str
    method: str = "GET"


ADDRESSES = (
    Address("/", Permission.VIEW, overview.show, "overview"),
    Address("/log", Permission.VIEW, log.show, "log"),
    Address("/log/stream", Permission.VIEW, log_stream.show, "log_stream"),
    Address("/jobs", Permission.VIEW, jobs.show, "jobs"),
    Address("/jobs/requeue", Permission.REQUEUE, requeues.requeue_selected, "requeue_jobs", "POST"),
    Address(
        "/jobs/cancel", Permission.CANCEL, cancellations.cancel_selected, "cancel_jobs", "POST"
    ),
    Address(
        "/jobs/requeue-matching",
        Permission.REQUEUE,
        bulk_actions.requeue_matching,
        "requeue_matching",
        "POST",
    ),
    Address(
        "/jobs/cancel-matching",
        Permission.CANCEL,
        bulk_actions.cancel_matching,
        "cancel_matching",
        "POST",
    ),
    Address("/failures", Permission.VIEW, failures.show, "failures"),
    Address("/failures/{key}", Permission.VIEW, failures.show_group, "failure_group"),
    Address(
        "/failures/{key}/requeue",
        Permission.REQUEUE,
        bulk_actions.requeue_group,
        "requeue_group",
        "POST",
    ),
    Address("/operations", Permission.VIEW, operations.show, "operations"),
    Address("/operations/{operation_id:uuid}", Permission.VIEW, operations.show_one, "operation"),
    Address(
        "/operations/{operation_id:uuid}/continue",
        Permission.REQUEUE,
        bulk_actions.let_follow,
        "continue_operation",
        "POST",
    ),
    # Whoever may do what the operation does may stop it: the action asks for that permission.
    Address(
        "/operations/{operation_id:uuid}/stop",
        Permission.VIEW,
        bulk_actions.stop,
        "stop_operation",
        "POST",
    ),
    Address("/jobs/{job_id:uuid}", Permission.VIEW, job.show, "job"),
    Address("/jobs/{job_id:uuid}/payload", Permission.VIEW_SENSITIVE, job.payload, "job_payload"),
    Address("/jobs/{job_id:uuid}/output", Permission.VIEW_SENSITIVE, job.output, "job_output"),
    Address("/jobs/{job_id:uuid}/graph", Permission.VIEW, graph.show, "graph"),
    Address("/jobs/{job_id:uuid}/requeue", Permission.REQUEUE, requeues.requeue, "requeue", "POST"),
    Address(
        "/jobs/{job_id:uuid}/cancel", Permission.CANCEL, cancellations.cancel, "cancel", "POST"
    ),
    Address("/workflows", Permission.VIEW, workflows.show, "workflows"),
    Address("/workflows/{workflow_id:uuid}", Permission.VIEW, workflow.show, "workflow"),
    Address(
        "/workflows/{workflow_id:uuid}/input",
        Permission.VIEW_SENSITIVE,
        workflow.show_input,
        "workflow_input",
    ),
    Address(
        "/workflows/{workflow_id:uuid}/retry",
        Permission.RETRY_WORKFLOW,
        workflow_actions.retry,
        "retry_workflow",
        "POST",
    ),
    Address(
        "/workflows/{workflow_id:uuid}/restart",
        Permission.RETRY_WORKFLOW,
        workflow_actions.restart,
        "restart_workflow",
        "POST",
    ),
    Address(
        "/workflows/{workflow_id:uuid}/cancel",
        Permission.CANCEL,
        workflow_actions.cancel,
        "cancel_workflow",
        "POST",
    ),
    Address("/queues", Permission.VIEW, queues.show, "queues"),
    Address("/queue", Permission.VIEW, queue.show, "queue"),
    Address("/queues/pause", Permission.MANAGE_QUEUES, pause_queue, "pause_queue", "POST"),
    Address("/queues/resume", Permission.MANAGE_QUEUES, resume_queue, "resume_queue", "POST"),
    Address("/queues/limit", Permission.MANAGE_QUEUES, limit_queue, "limit_queue", "POST"),
    Address("/audit", Permission.VIEW, audit.show, "audit"),
    Address("/nodes", Permission.VIEW, nodes.show, "nodes"),
    Address("/observers", Permission.VIEW, observers.show, "observers"),
    Address("/observer", Permission.VIEW, observers.show_one, "observer"),
    Address(
        "/observers/retire",
        Permission.MANAGE_OBSERVERS,
        observer_actions.retire,
        "retire_observer",
        "POST",
    ),
    Address(
        "/deliveries/{delivery_id:int}/replay",
        Permission.MANAGE_OBSERVERS,
        observer_actions.replay,
        "replay_delivery",
        "POST",
    ),
    Address(
        "/history-policy",
        Permission.MANAGE_OBSERVERS,
        observer_actions.set_history_policy,
        "set_history_policy",
        "POST",
    ),
    Address("/schedules", Permission.VIEW, schedules.show, "schedules"),
    Address("/schedule", Permission.VIEW, schedules.show_one, "schedule"),
    Address(
        "/schedules/trigger",
        Permission.TRIGGER_SCHEDULE,
        trigger,
        "trigger_schedule",
        "POST",
    ),
    Address("/health", Permission.PUBLIC, health.show, "health"),
    Address("/ready", Permission.PUBLIC, health.show_ready, "ready"),
    Address("/metrics", Permission.METRICS, metrics.show, "metrics"),
    Address("/favicon.ico", Permission.PUBLIC, static.favicon, "favicon"),
    Address("/static/{digest}/{name:path}", Permission.PUBLIC, static.show, "static"),
)


LIVE_VIEWS: dict[str, LiveView] = {
    "overview": overview.LIVE,
    "log": log.LIVE,
    "jobs": jobs.LIVE,
    "job": job.LIVE,
    "graph": graph.LIVE,
    "failures": failures.LIVE,
    "operation": operations.LIVE,
    "workflows": workflows.LIVE,
    "workflow": workflow.LIVE,
    "queues": queues.LIVE,
    "queue": queue.LIVE,
    "nodes": nodes.LIVE,
    "schedules": schedules.LIVE,
    "schedule": schedules.LIVE_ONE,
    "observers": observers.LIVE,
    "observer": observers.LIVE_ONE,
}
"""What each live page receives over ``/log/stream?view=NAME``."""


class UndeclaredPermission(LatchworkError):
    """An address without a declared permission: the console does not start."""


def build_routes(addresses: tuple[Address, ...] = ADDRESSES) -> list[Route]:
    """Routes that ask for their permission before anything of theirs runs.

    Raises:
        UndeclaredPermission: an address declares none.
    """
    for address in addresses:
        if not isinstance(address.permission, Permission):
            raise UndeclaredPermission(f"{address.path} declares no permission")
    return [
        Route(one.path, _guarded(one), methods=[one.method], name=one.name) for one in addresses
    ]


def _guarded(address: Address) -> Endpoint:
    endpoint = address.endpoint

    def check(request: Request) -> None:
        if not permits(request, address.permission):
            raise HTTPException(403, f"This needs the permission {address.permission.value}.")

    if iscoroutinefunction(endpoint):

        @wraps(endpoint)
        async def guarded_coroutine(request: Request) -> Any:
            check(request)
            return await endpoint(request)

        return guarded_coroutine

    @wraps(endpoint)
    def guarded(request: Request) -> Any:
        check(request)
        return endpoint(request)

    return guarded
