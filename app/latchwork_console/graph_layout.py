"""Lay a graph out: the engine in a process of its own, under a deadline, once per shape."""

import json
import logging
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from latchwork_console.graph_layered import lay_out_plainly
from latchwork_console.graph_shapes import BOX_HEIGHT, Layout, Point, Shape

DEADLINE_SECONDS = 1.0
SHAPES_KEPT = 256
ENGINE_OPTIONS = {
    "direction": "leftright",
    "routing": {"style": "diagonal", "centre_ports": "round"},
    "spacing": {"layer_gap": 64, "node_gap": 20, "dummy_gap": 20, "port_gap": 8},
    "coords": {"placement": "network_simplex", "branch_style": "symmetric"},
}

_CHILD = Path(__file__).with_name("graph_layout_child.py")
_log = logging.getLogger(__name__)


class LayoutFailed(Exception):
    """The engine gave no layout; ``final`` if asking again would end the same way."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.final = final


class LayoutEngine:
    """The engine's process: started at first use, replaced when it dies or misses a deadline.

    It inherits no open file and no database connection, and it ends when this process does.
    """

    def __init__(self, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def lay_out(self, shape: Shape) -> Layout:
        """Ask the engine.

        Raises:
            LayoutFailed: no answer before the deadline, none at all, or the engine is taken.
        """
        give_up_at = time.monotonic() + self._deadline_seconds
        if not self._turn.acquire(timeout=self._deadline_seconds):
            raise LayoutFailed("the layout engine is busy", final=False)
        try:
            return _read_answer(self._ask(_request(shape), give_up_at), shape)
        finally:
            self._turn.release()

    @property
    def process_id(self) -> int | None:
        """The engine's process, while there is one."""
        return self._process.pid if self._process is not None else None

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _ask(self, request: bytes, give_up_at: float) -> bytes:
        answer = b""
        try:
            process = self._running()
            if process.stdin is None or process.stdout is None:
                raise LayoutFailed("the layout engine has no pipes", final=False)
            process.stdin.write(request)
            process.stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                while not answer.endswith(b"\n"):
                    if not ready.select(max(0.0, give_up_at - time.monotonic())):
                        raise LayoutFailed("the layout engine missed its deadline", final=True)
                    part = os.read(process.stdout.fileno(), 1 << 20)
                    if not part:
                        raise LayoutFailed("the layout engine ended", final=False)
                    answer += part
        except OSError as error:
            self.close()
            raise LayoutFailed(f"the layout engine is gone: {error}", final=False) from error
        except LayoutFailed:
            self.close()
            raise
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - our own file under our own interpreter
                # -P: the script's folder is no place to import from.
                [sys.executable, "-P", str(_CHILD), str(2 * self._deadline_seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the console, which closes the pipes
            )
        return self._process


class Layouts:
    """Layouts by shape, each computed once (architecture, rule 9)."""

    def __init__(self, engine: LayoutEngine | None = None) -> None:
        self._engine = engine or LayoutEngine()
        self._kept: OrderedDict[Shape, Layout] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, shape: Shape) -> Layout:
        """The layout of ``shape``: kept, the engine's, or our plain one if the engine fails."""
        with self._lock:
            if shape in self._kept:
                self._kept.move_to_end(shape)
                return self._kept[shape]
        try:
            layout, final = self._engine.lay_out(shape), True
        except LayoutFailed as failure:
            _log.warning("%s boxes are laid out plainly: %s", shape.count, failure)
            layout, final = lay_out_plainly(shape), failure.final
        if final:
            with self._lock:
                self._kept[shape] = layout
                if len(self._kept) > SHAPES_KEPT:
                    self._kept.popitem(last=False)
        return layout

    def close(self) -> None:
        """End the engine's process."""
        self._engine.close()


def _request(shape: Shape) -> bytes:
    size = {"width": shape.box_width, "height": BOX_HEIGHT}
    graph = {
        "nodes": [{"size": size, "shape": "box", "key": str(box)} for box in range(shape.count)],
        "edges": [{"source": source, "target": target} for source, target in shape.links],
    }
    request = {"graph": graph, "preset": "layered", "options": ENGINE_OPTIONS}
    return json.dumps(request).encode() + b"\n"


def _read_answer(answer: bytes, shape: Shape) -> Layout:
    raw: dict[str, Any] | None = json.loads(answer)
    if raw is None:
        raise LayoutFailed("the layout engine refused the graph", final=True)
    left, top = raw["bounds"]["min"]["x"], raw["bounds"]["min"]["y"]

    def moved(point: dict[str, float]) -> Point:
        return (point["x"] - left, point["y"] - top)

    centres = [moved(node["center"]) for node in raw["nodes"]]
    return Layout(
        width=raw["bounds"]["max"]["x"] - left,
        height=raw["bounds"]["max"]["y"] - top,
        boxes=tuple((x - shape.box_width / 2, y - BOX_HEIGHT / 2) for x, y in centres),
        links=tuple(tuple(moved(point) for point in edge["points"]) for edge in raw["edges"]),
    )
