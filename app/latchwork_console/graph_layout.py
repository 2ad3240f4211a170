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
from typing import IO, Any

from latchwork_console.graph_layered import lay_out_plainly
from latchwork_console.graph_shapes import BOX_HEIGHT, Layout, Point, Shape

DEADLINE_SECONDS = 1.0
ALARM_SECONDS = 2 * DEADLINE_SECONDS
"""When the engine's process ends itself, should there be nobody left to stop it."""
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
        self.deadline_seconds = deadline_seconds
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    def __del__(self) -> None:
        # A console that is mounted may never be told that it ends.
        self.close()

    def lay_out(self, shape: Shape) -> Layout:
        """Ask the engine.

        Raises:
            LayoutFailed: no answer before the deadline, none at all, or the engine is taken.
        """
        give_up_at = time.monotonic() + self.deadline_seconds
        if not self._turn.acquire(timeout=self.deadline_seconds):
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
        try:
            process = self._running()
            if not self._ready:
                # Left running: a start that a busy machine delays is no fault of the shape's.
                if _read_line(process, give_up_at) is None:
                    raise LayoutFailed("the layout engine is still starting", final=False)
                self._ready = True
            _pipe(process.stdin).write(request)
            _pipe(process.stdin).flush()
            answer = _read_line(process, give_up_at)
        except OSError as error:
            self.close()
            raise LayoutFailed(f"the layout engine is gone: {error}", final=False) from error
        if answer is None:
            self.close()
            raise LayoutFailed("the layout engine missed its deadline", final=True)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._ready = False
            self._process = subprocess.Popen(  # noqa: S603 - our own file under our own interpreter
                # -P: the script's folder is no place to import from.
                [sys.executable, "-P", str(_CHILD), str(ALARM_SECONDS)],
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


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BrokenPipeError("it was started without pipes")
    return pipe


def _read_line(process: subprocess.Popen[bytes], give_up_at: float) -> bytes | None:
    """One line of the process; None if it takes too long.

    Raises:
        OSError: the process has ended.
    """
    pipe = _pipe(process.stdout)
    line = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not ready.select(max(0.0, give_up_at - time.monotonic())):
                return None
            part = os.read(pipe.fileno(), 1 << 20)
            if not part:
                raise BrokenPipeError("it has ended")
            line += part
    return line


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
