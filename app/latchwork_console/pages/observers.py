"""``/observers`` and ``/observer?observer=NAME``: how far each has come, what it was not told."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.observer_shapes import dead_delivery_shape, history_policy_shape, observer_shape
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.job_filters import read_name
from latchwork_console.live_views import LiveView
from latchwork_console.observer_contexts import (
    ObserverContext,
    ObserverRegions,
    ObserversRegions,
    read_observer,
    read_observers,
)
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer all observers and the history policy."""
    console = console_of(request)
    if not wants_json(request):
        context = read_observers(console, console.permissions(request))
        return respond(request, page="pages/observers.html", context=context)
    monitor, now = console.app.monitor, console.now()
    sensitive = permits(request, Permission.VIEW_SENSITIVE)
    return respond_json(
        {
            "observers": [
                observer_shape(one, now, sensitive=sensitive) for one in monitor.observers()
            ],
            "history": history_policy_shape(monitor.history_policy()),
        }
    )


def show_one(request: Request) -> Response:
    """Answer one observer and its newest dead deliveries."""
    console = console_of(request)
    token = console.app.monitor.log_token()
    found = _find(console, request)
    if wants_json(request):
        sensitive = found.sensitive
        shape = observer_shape(found.observer, console.now(), sensitive=sensitive)
        dead = [dead_delivery_shape(one, sensitive=sensitive) for one in found.dead]
        return respond_json(shape | {"dead_deliveries": dead})
    context = ObserverContext(
        observer=found.observer,
        dead=found.dead,
        more_dead=found.more_dead,
        retire=found.retire,
        permitted=found.permitted,
        sensitive=found.sensitive,
        stream_token=token,
    )
    return respond(request, page="pages/observer.html", context=context)


def _find(console: Console, request: Request) -> ObserverRegions:
    name = read_name(request.query_params, "observer")
    found = read_observer(console, name, console.permissions(request))
    if found is None:
        raise HTTPException(404, "No observer of this name was ever registered here.")
    return found


def _regions(console: Console, around: Surroundings, _: str) -> str:
    context = ObserversRegions(console.app.monitor.observers())
    return console.renderer.render("partials/observers_regions.html", context, around)


def _regions_of_one(console: Console, around: Surroundings, subject: str) -> str:
    context = read_observer(console, subject, around.permissions) if subject else None
    if context is None:
        return ""
    return console.renderer.render("partials/observer_regions.html", context, around)


LIVE = LiveView(regions=_regions)
LIVE_ONE = LiveView(regions=_regions_of_one)
