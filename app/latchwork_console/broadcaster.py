"""One reader of the transition log per process, fanned out to every open page.

A row is rendered once for all viewers who see it alike. Each viewer has a bounded queue; one who
does not keep up is cut, and comes back with the place it had reached.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from starlette.concurrency import run_in_threadpool

from latchwork.decisions.states import JobState
from latchwork.errors import LatchworkError
from latchwork.log_tail import LogTail, PlacedRows
from latchwork.views import LogFilter, TransitionView
from latchwork_console.console import Console, Permission
from latchwork_console.contexts import FrameContext
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings

MAX_STREAMS = 200
MAX_STREAMS_PER_ADDRESS = 50
"""Without sign-in one address may be several people, so this bounds a fault, not a person."""
MAX_WAITING_ROWS = 2_000
POLL_SECONDS = 0.1
REFRESH_SECONDS = 1.0
IDLE_REFRESH_SECONDS = 5.0
"""Ages, forecasts and heartbeats change though nothing happens."""
TROUBLE_PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Channel:
    """Viewers of one channel see the same regions, and their rows rendered alike."""

    view: str
    subject: str
    prefix: str
    permissions: frozenset[Permission]


@dataclass(frozen=True, slots=True)
class Wish:
    """What one stream was asked for."""

    channel: Channel
    log_filter: LogFilter
    after: str | None
    address: str


@dataclass(slots=True)
class Rows:
    """New rows of the log; each is rendered when it is first looked at."""

    placed: PlacedRows
    _rendered: dict[tuple[Channel, int], str] = field(default_factory=dict)

    def html(self, channel: Channel, transition: TransitionView, render: Callable[[], str]) -> str:
        """The row as viewers of ``channel`` see it."""
        key = (channel, transition.position)
        if key not in self._rendered:
            self._rendered[key] = render()
        return self._rendered[key]


@dataclass(frozen=True, slots=True)
class Regions:
    """New content of a page's regions."""

    html: str


class Viewer:
    """One open stream: what it asked for, and what waits to be sent."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.following = False
        """Whether live rows are for this viewer; false until it begins its catching up."""
        self.ended = False
        self._waiting: deque[Rows | Regions] = deque()
        self._waiting_rows = 0
        self._news = asyncio.Event()

    def offer(self, item: Rows | Regions) -> None:
        """Queue something to be sent; a viewer whose queue is full is cut."""
        if isinstance(item, Regions):
            # Only the newest matters: what was not sent yet is out of date now.
            stale = next((one for one in self._waiting if isinstance(one, Regions)), None)
            if stale is not None:
                self._waiting.remove(stale)
        else:
            self._waiting_rows += len(item.placed.rows)
            if self._waiting_rows > MAX_WAITING_ROWS:
                self.end()
                return
        self._waiting.append(item)
        self._news.set()

    def end(self) -> None:
        """Let the stream end now; its page comes back with the place it had reached."""
        self.ended = True
        self._waiting.clear()
        self._news.set()

    async def next(self, timeout_seconds: float) -> Rows | Regions | None:
        """What to send next; None when nothing came in time or the stream is over."""
        if not self._waiting and not self.ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), timeout_seconds)
        self._news.clear()
        if not self._waiting:
            return None
        item = self._waiting.popleft()
        if isinstance(item, Rows):
            self._waiting_rows -= len(item.placed.rows)
        if self._waiting or self.ended:
            self._news.set()
        return item


class Broadcaster:
    """Reads the log and the regions once, for all viewers; idle while there are none."""

    def __init__(self, console: Console, views: Mapping[str, LiveView]) -> None:
        self.console = console
        self.views = views
        self._viewers: set[Viewer] = set()
        self._tail: LogTail | None = None
        self._tail_lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._regions: dict[Channel, str] = {}
        self._counted: dict[str, dict[JobState, int]] | None = None
        self._stopped = False

    def refusal(self, wish: Wish) -> str | None:
        """Why no further stream is opened for ``wish``, or None."""
        if self._stopped:
            return "The console is stopping."
        from_address = sum(one.wish.address == wish.address for one in self._viewers)
        if len(self._viewers) >= MAX_STREAMS or from_address >= MAX_STREAMS_PER_ADDRESS:
            return "Too many live pages are open; close some and reload."
        return None

    def admit(self, wish: Wish) -> Viewer:
        """Open a stream's slot; ``dismiss`` frees it."""
        viewer = Viewer(wish)
        self._viewers.add(viewer)
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._keep_going(self._read_log)),
                asyncio.create_task(self._keep_going(self._refresh_regions)),
                asyncio.create_task(self._keep_going(self._poll_counters)),
            ]
        return viewer

    def dismiss(self, viewer: Viewer) -> None:
        """Free a stream's slot; after the last one nothing is read any more."""
        self._viewers.discard(viewer)
        if not self._viewers:
            self._rest()

    async def start_following(self, viewer: Viewer) -> None:
        """Queue for ``viewer`` every row that becomes visible from now on."""
        viewer.following = True
        await self._open_tail()
        regions = self._regions.get(viewer.wish.channel)
        if regions is not None:
            viewer.offer(Regions(regions))

    async def stop(self) -> None:
        """End every stream and read no more."""
        self._stopped = True
        for viewer in self._viewers:
            viewer.end()
        self._rest()

    @property
    def open_streams(self) -> int:
        """How many streams are open."""
        return len(self._viewers)

    def surroundings(self, channel: Channel) -> Surroundings:
        """What templates rendered for a channel may use."""
        return Surroundings(
            prefix=channel.prefix,
            now=self.console.now(),
            permissions=channel.permissions,
            environment=self.console.environment,
            counts=None,
        )

    def row(self, rows: Rows, channel: Channel, transition: TransitionView) -> str:
        """One row's HTML for a channel; empty when its view shows no rows."""
        render = self.views[channel.view].row
        if render is None:
            return ""
        return rows.html(
            channel,
            transition,
            lambda: render(self.console, self.surroundings(channel), transition),
        )

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._regions.clear()
        tail, self._tail = self._tail, None
        if tail is not None:
            tail.close()

    async def _open_tail(self) -> LogTail:
        async with self._tail_lock:
            if self._tail is None:
                app = self.console.app
                token = await run_in_threadpool(app.monitor.log_token)
                self._tail = LogTail(app, after=token)
            return self._tail

    async def _keep_going(self, work: Callable[[], Awaitable[float]]) -> None:
        while True:
            try:
                pause = await work()
            except LatchworkError as trouble:
                log.warning("the live pages are behind: %s", trouble)
                pause = TROUBLE_PAUSE_SECONDS
            except Exception:
                log.exception("the live pages met a defect")
                pause = TROUBLE_PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def _read_log(self) -> float:
        tail = await self._open_tail()
        placed = await run_in_threadpool(tail.read_placed)
        if not placed.rows:
            return POLL_SECONDS
        rows = Rows(placed)
        for viewer in self._viewers:
            if viewer.following:
                viewer.offer(rows)
        self._changed.set()
        return 0.0

    async def _poll_counters(self) -> float:
        """While nothing is logged, the counters tell that something happened."""
        if await run_in_threadpool(self._counters_moved):
            self._changed.set()
        return REFRESH_SECONDS

    def _counters_moved(self) -> bool:
        monitor = self.console.app.monitor
        if monitor.history_policy().off_since is None:
            self._counted = None
            return False
        before, self._counted = self._counted, monitor.counts().by_queue
        return self._counted != before

    def _render_regions(self, channel: Channel) -> str:
        """The regions of a channel's page, and those of the frame around every page."""
        around = replace(self.surroundings(channel), counts=self.console.counts())
        render = self.views[channel.view].regions
        regions = "" if render is None else render(self.console, around, channel.subject)
        frame = self.console.renderer.render("partials/rail_badges.html", FrameContext(), around)
        return regions + frame

    async def _refresh_regions(self) -> float:
        self._changed.clear()
        channels = {viewer.wish.channel for viewer in self._viewers}
        for channel in [one for one in self._regions if one not in channels]:
            del self._regions[channel]
        for channel in channels:
            html = await run_in_threadpool(self._render_regions, channel)
            if html != self._regions.get(channel):
                self._regions[channel] = html
                for viewer in self._viewers:
                    if viewer.wish.channel == channel and viewer.following:
                        viewer.offer(Regions(html))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), IDLE_REFRESH_SECONDS)
        return REFRESH_SECONDS
