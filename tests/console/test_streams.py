"""The live stream over a real server: nothing missed, nothing twice, limits, and a clean end."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import UUID

import httpx2
import pytest
from starlette.testclient import TestClient

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import Event
from latchwork.log_tail import Place, PlacedRows
from latchwork.store.enqueueing import insert_jobs
from latchwork.views import LogFilter, TransitionView
from latchwork_console import broadcaster as broadcasting
from latchwork_console import streams
from latchwork_console.broadcaster import Channel, Rows, Viewer, Wish
from latchwork_console.server import create_console
from tests.console.served import WAIT_SECONDS, ServedConsole
from tests.console.worlds import ADDRESS
from tests.store.builders import Store


@dataclass
class Message:
    """One server-sent event."""

    id: str
    event: str
    data: str

    @property
    def positions(self) -> list[int]:
        """The positions of the rows it carries."""
        return [int(one) for one in re.findall(r'id="log-(\d+)"', self.data)]


@pytest.fixture
def served(app: Latchwork) -> Iterator[ServedConsole]:
    served = ServedConsole(app)
    yield served
    served.stop()


@pytest.fixture
def store(app: Latchwork) -> Store:
    return Store(app.database, now=app.database.clock.now())


@contextmanager
def stream(
    served: ServedConsole, query: str = "", last_event_id: str | None = None
) -> Iterator[Iterator[Message]]:
    """The messages of one stream, cut when the block ends."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    address = f"{served.address}/log/stream?{query}"
    with httpx2.stream("GET", address, headers=headers, timeout=WAIT_SECONDS) as answer:
        assert answer.status_code == 200, answer.read()
        yield messages(answer.iter_lines())


def messages(lines: Iterator[str]) -> Iterator[Message]:
    fields: dict[str, list[str]] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields.setdefault(name, []).append(value)
        elif fields:
            one = {name: "\n".join(values) for name, values in fields.items()}
            fields = {}
            yield Message(one.get("id", ""), one.get("event", ""), one.get("data", ""))


def rows_until(found: Iterator[Message], last: int) -> list[Message]:
    """Messages that carry rows, up to the one with position ``last``."""
    taken = []
    for message in found:
        if message.positions:
            taken.append(message)
            if last in message.positions:
                return taken
    raise AssertionError("the stream ended too early")


def positions(taken: list[Message]) -> list[int]:
    return [position for message in taken for position in message.positions]


def newest(app: Latchwork) -> int:
    return app.monitor.transitions(limit=1).transitions[0].position


def logged(app: Latchwork) -> list[int]:
    return sorted(one.position for one in app.monitor.transitions(limit=200).transitions)


def test_rows_come_as_they_are_committed(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    with stream(served, f"after={app.monitor.log_token()}") as found:
        assert next(found).event == "pulse"
        job = store.enqueue()
        store.end(job, JobState.SUCCEEDED)
        taken = rows_until(found, newest(app))
    assert positions(taken) == logged(app)
    assert taken[-1].id == app.monitor.log_token()


def test_a_stream_begins_with_what_was_missed_since_its_page(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    store.enqueue()
    token = app.monitor.log_token()
    before = newest(app)
    store.enqueue()
    store.enqueue()
    with stream(served, f"after={token}") as found:
        taken = rows_until(found, newest(app))
    assert positions(taken) == [one for one in logged(app) if one > before]


def test_a_cut_stream_resumes_without_a_missing_or_doubled_row(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    start = app.monitor.log_token()
    seen: list[int] = []
    last_id: str | None = None
    with ThreadPoolExecutor(1) as pool:
        for _ in range(5):
            done = pool.submit(lambda: [store.enqueue() for _ in range(12)])
            with stream(served, f"after={start}", last_id) as found:
                for message in found:
                    seen += message.positions
                    last_id = message.id or last_id
                    if message.positions and len(seen) % 7 == 0:
                        break
            done.result()
        with stream(served, "after=0", last_id) as found:
            seen += positions(rows_until(found, newest(app)))
    assert seen == logged(app)


def test_the_last_event_id_wins_over_the_address(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    store.enqueue()
    token = app.monitor.log_token()
    store.enqueue()
    with stream(served, "after=0", token) as found:
        assert positions(rows_until(found, newest(app))) == [newest(app)]


def test_a_row_that_fills_an_old_gap_neither_moves_the_place_back_nor_comes_twice(
    postgres_url: str,
) -> None:
    app = Latchwork(postgres_url)
    store = Store(app.database, now=app.database.clock.now())
    served = ServedConsole(app)
    held_open = app.database.engine.connect()
    try:
        store.enqueue()
        with stream(served, "after=0") as found:
            rows_until(found, newest(app))
            insert_jobs(held_open, [store.new_job()], now=store.now)
            for _ in range(3):
                store.enqueue()
            taken = rows_until(found, newest(app))
            (gap,) = set(range(1, newest(app) + 1)) - set(logged(app))
            assert Place.parse(taken[-1].id).gaps == ((gap, gap),)
            held_open.commit()
            taken += rows_until(found, gap)
            store.enqueue()
            taken += rows_until(found, newest(app))
        places = [Place.parse(message.id) for message in taken]
        assert [place.position for place in places] == sorted(place.position for place in places)
        assert positions(taken).count(gap) == 1
        assert sorted(positions(taken)) == logged(app)[1:]
        assert places[-1] == Place(newest(app))
        with stream(served, "after=0", taken[1].id) as found:
            resumed = positions(rows_until(found, newest(app)))
        assert sorted([*positions(taken[:2]), *resumed]) == logged(app)[1:]
    finally:
        held_open.close()
        served.stop()
        app.database.dispose()


def test_the_rail_and_the_state_tabs_follow(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    with stream(served, f"after={app.monitor.log_token()}&view=jobs") as found:
        for _ in range(3):
            store.enqueue(queue="tabs")
        wanted = [f'hx-target="#{name}" hx-swap="textContent">3<' for name in
                  ("nav-jobs", "tab-all", "tab-scheduled")]  # fmt: skip
        for message in found:
            if all(one in message.data for one in wanted):
                break


def test_a_filtered_stream_carries_only_matching_rows_and_still_says_how_far_it_read(
    served: ServedConsole, app: Latchwork, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PLACE_SECONDS", 0.05)
    with stream(served, f"after={app.monitor.log_token()}&state=succeeded") as found:
        next(found)
        store.enqueue()
        for message in found:
            store.enqueue()
            if message.id:
                break
        assert not message.data
        store.end(store.enqueue(), JobState.SUCCEEDED)
        (only,) = rows_until(found, newest(app))
    assert "Succeeded" in only.data


def test_regions_are_pushed_when_something_changed(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    with stream(served, f"after={app.monitor.log_token()}&view=overview") as found:
        store.enqueue(queue="a-new-queue")
        for message in found:
            if 'hx-target="#queues"' in message.data and "a-new-queue" in message.data:
                break


def test_a_reader_older_than_the_log_is_told_what_is_gone(
    served: ServedConsole, app: Latchwork, store: Store
) -> None:
    job = store.enqueue()
    for _ in range(70):
        store.end(job, JobState.DEAD_LETTERED)
        store.requeue(job)
    with stream(served, "after=0") as found:
        told = next(message for message in found if message.event == "gone")
    assert int(told.data) > 1


def test_twenty_open_streams_end_with_the_server(app: Latchwork) -> None:
    served = ServedConsole(app)
    with ExitStack() as stack:
        for view in ("log", "overview", "jobs", "queues") * 5:
            found = stack.enter_context(stream(served, f"after=0&view={view}"))
            assert next(found).event == "pulse"
        served.stop(within_seconds=5)


def test_a_closed_stream_frees_its_slot(
    served: ServedConsole, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "MAX_STREAMS", 2)
    store.enqueue()
    with stream(served, "after=0") as first, stream(served, "after=0") as second:
        next(first), next(second)
        refused = httpx2.get(f"{served.address}/log/stream")
        assert refused.status_code == 503
        assert "live pages" in refused.text
    for _ in range(100):
        with httpx2.stream("GET", f"{served.address}/log/stream?after=0") as answer:
            if answer.status_code == 200:
                return
    raise AssertionError("the slots were not freed")


def test_a_stream_ends_at_its_greatest_age(
    served: ServedConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_AGE_SECONDS", 0.0)
    with stream(served, "after=0") as found:
        assert all(message.event == "pulse" for message in found)


def test_head_opens_no_stream(served: ServedConsole) -> None:
    assert httpx2.head(f"{served.address}/log/stream").status_code == 200


WISH = Wish(Channel("log", "", "", frozenset()), LogFilter(), None, "127.0.0.1")


def row(position: int) -> TransitionView:
    return TransitionView(
        position=position, job_id=UUID(int=1), ordinal=0, at=None, state=JobState.SCHEDULED,  # type: ignore[arg-type]
        previous_state=None, event=Event.ENQUEUE, attempt=0, queue="q", wire_name="w",
    )  # fmt: skip


def batch_of(*positions: int) -> Rows:
    placed = tuple((row(position), Place(position)) for position in positions)
    return Rows(PlacedRows(placed, placed[-1][1]))


async def test_a_viewer_who_does_not_keep_up_is_cut() -> None:
    batch = batch_of(*range(1, 501))
    prompt, slow = Viewer(WISH), Viewer(WISH)
    for _ in range(6):
        prompt.offer(batch)
        slow.offer(batch)
        assert await prompt.next(5) is batch
    assert slow.ended
    assert await slow.next(5) is None
    assert not prompt.ended


def test_a_row_is_rendered_once_for_all_who_see_it_alike() -> None:
    rendered: list[str] = []

    def render() -> str:
        rendered.append("row")
        return "row"

    batch = batch_of(1)
    for _ in range(3):
        batch.html(WISH.channel, batch.placed.rows[0][0], render)
    assert len(rendered) == 1


def test_a_console_without_viewers_reads_nothing(app: Latchwork) -> None:
    with TestClient(create_console(app), base_url=ADDRESS) as client:
        client.get("/log")
        assert client.app.state.console.broadcaster._tail is None  # type: ignore[attr-defined]
