"""``/nodes``: which nodes live, what each executes and for how long, how old its heartbeat is."""

from starlette.requests import Request
from starlette.responses import Response

from latchwork.json_shapes import node_shape
from latchwork_console.console import Console, console_of
from latchwork_console.contexts import NodesContext
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json


def show(request: Request) -> Response:
    """Answer all nodes of the last day."""
    console = console_of(request)
    if wants_json(request):
        return respond_json({"nodes": [node_shape(one) for one in console.app.monitor.nodes()]})
    return respond(request, page="pages/nodes.html", context=read_nodes(console))


def read_nodes(console: Console) -> NodesContext:
    """All nodes, and the place to follow the log from, read before them."""
    token = console.app.monitor.log_token()
    return NodesContext(nodes=console.app.monitor.nodes(), stream_token=token)


def _regions(console: Console, around: Surroundings, _: str) -> str:
    return console.renderer.render("partials/nodes_regions.html", read_nodes(console), around)


LIVE = LiveView(regions=_regions)
