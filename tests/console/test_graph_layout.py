import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latchwork_console
from latchwork_console.graph_layered import lay_out_plainly
from latchwork_console.graph_layout import LayoutEngine, LayoutFailed, Layouts
from latchwork_console.graph_shapes import BOX_HEIGHT, Layout, Shape

DIAMOND = Shape(4, 180, ((0, 1), (0, 2), (1, 3), (2, 3)))
SLOW = Shape(402, 180, tuple((0, n) for n in range(1, 401)) + tuple((n, 401) for n in range(1, 401)))  # fmt: skip # noqa: E501


def started(engine: LayoutEngine) -> LayoutEngine:
    """The engine, once it answers: its start may take longer than a deadline."""
    while True:
        with contextlib.suppress(LayoutFailed):
            engine.lay_out(DIAMOND)
            return engine


@pytest.fixture
def engine() -> Iterator[LayoutEngine]:
    engine = started(LayoutEngine(deadline_seconds=20))
    yield engine
    engine.close()


def exists(process_id: int) -> bool:
    """Whether a process of ours runs, or has ended without being waited for."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def overlaps(shape: Shape, layout: Layout) -> list[tuple[int, int]]:
    """Pairs of boxes that cover each other."""
    return [
        (a, b)
        for a in range(shape.count)
        for b in range(a + 1, shape.count)
        if abs(layout.boxes[a][0] - layout.boxes[b][0]) < shape.box_width
        and abs(layout.boxes[a][1] - layout.boxes[b][1]) < BOX_HEIGHT
    ]


def check(shape: Shape, layout: Layout) -> None:
    assert len(layout.boxes) == shape.count
    assert len(layout.links) == len(shape.links)
    assert overlaps(shape, layout) == []
    for (source, target), points in zip(shape.links, layout.links, strict=True):
        assert layout.boxes[source][0] + shape.box_width < layout.boxes[target][0]
        assert len(points) >= 2
    for x, y in layout.boxes:
        assert -0.01 <= x <= layout.width - shape.box_width + 0.01
        assert -0.01 <= y <= layout.height - BOX_HEIGHT + 0.01


def test_the_engine_draws_parents_left_of_children(engine: LayoutEngine) -> None:
    layout = engine.lay_out(DIAMOND)
    check(DIAMOND, layout)
    assert not layout.plain


def test_the_same_shape_is_drawn_the_same_way(engine: LayoutEngine) -> None:
    assert engine.lay_out(DIAMOND) == engine.lay_out(DIAMOND)


@settings(deadline=None)
@given(st.data())
def test_the_plain_layout_places_any_graph_without_overlap(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    links = {(min(a, b), max(a, b)) for a, b in data.draw(st.lists(pairs, max_size=60)) if a != b}
    shape = Shape(count, 180, tuple(sorted(links)))
    layout = lay_out_plainly(shape)
    check(shape, layout)
    assert layout.plain


def test_the_plain_layout_of_the_largest_graph_takes_no_time() -> None:
    links = tuple((n, m) for n in range(0, 150, 3) for m in range(n + 40, n + 52))
    shape = Shape(202, 180, links)
    began_at = time.process_time()
    check(shape, lay_out_plainly(shape))
    assert time.process_time() - began_at < 1


def test_past_the_deadline_the_plain_layout_is_drawn_and_the_engine_replaced() -> None:
    engine = started(LayoutEngine(deadline_seconds=0.3))
    layouts = Layouts(engine)
    try:
        asked_at = time.monotonic()
        layout = layouts.of(SLOW)
        assert time.monotonic() - asked_at < 2
        assert layout.plain
        assert engine.process_id is None
        assert layouts.of(SLOW) is layout
    finally:
        layouts.close()


def test_a_start_that_takes_too_long_is_not_held_against_the_shape() -> None:
    engine = LayoutEngine(deadline_seconds=0.001)
    layouts = Layouts(engine)
    try:
        assert layouts.of(DIAMOND).plain
        process_id = engine.process_id
        assert process_id is not None
        engine.deadline_seconds = 20
        assert not layouts.of(DIAMOND).plain
    finally:
        layouts.close()


def test_an_engine_that_dies_is_started_again(engine: LayoutEngine) -> None:
    engine.lay_out(DIAMOND)
    child = engine.process_id
    assert child is not None
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not engine.lay_out(DIAMOND).plain
    assert engine.process_id != child
    assert not exists(child)


def test_a_failure_that_may_pass_is_not_kept(engine: LayoutEngine) -> None:
    class Failing(LayoutEngine):
        failures = 1

        def lay_out(self, shape: Shape) -> Layout:
            if self.failures:
                self.failures -= 1
                raise LayoutFailed("busy", final=False)
            return engine.lay_out(shape)

    layouts = Layouts(Failing())
    assert layouts.of(DIAMOND).plain
    assert not layouts.of(DIAMOND).plain


def test_a_layout_is_computed_once_per_shape(engine: LayoutEngine) -> None:
    layouts = Layouts(engine)
    first = layouts.of(DIAMOND)
    engine.close()
    assert layouts.of(DIAMOND) is first
    assert engine.process_id is None


def test_closing_leaves_no_process(engine: LayoutEngine) -> None:
    engine.lay_out(DIAMOND)
    child = engine.process_id
    assert child is not None
    assert exists(child)
    engine.close()
    assert not exists(child)


def test_the_engine_ends_with_the_process_that_uses_it() -> None:
    source = Path(latchwork_console.__file__).with_name("graph_layout_child.py")
    child = subprocess.Popen(
        [sys.executable, "-P", str(source), "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.communicate(b"", timeout=10)
    assert child.returncode == 0


def test_the_engine_ends_itself_when_nobody_could_stop_it() -> None:
    source = Path(latchwork_console.__file__).with_name("graph_layout_child.py")
    size = {"width": 180, "height": 46}
    request = (
        '{"preset": "layered", "options": {}, "graph": {"nodes": ['
        + ",".join([f'{{"size": {{"width": {size["width"]}, "height": 46}}}}'] * 602)
        + '], "edges": ['
        + ",".join(
            f'{{"source": 0, "target": {n}}},{{"source": {n}, "target": 601}}'
            for n in range(1, 601)
        )
        + "]}}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-P", str(source), "0.2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.communicate(request.encode(), timeout=20)
    assert child.returncode == -signal.SIGALRM
