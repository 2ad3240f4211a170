"""One page's stream: first what it missed, then what happens, each message with its place."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from latchwork.log_tail import LogTail, Place
from latchwork.views import TransitionView
from latchwork_console.broadcaster import Broadcaster, Regions, Rows, Viewer, Wish
from latchwork_console.formatting import rfc3339

KEEP_ALIVE_SECONDS = 15
SEND_TIMEOUT_SECONDS = 30
MAX_AGE_SECONDS = 900.0
"""A stream ends itself after about this long, and its page comes back: nothing leaks for ever."""
PLACE_SECONDS = 2.0
"""How often a viewer whose filter lets nothing through is told how far the log was read."""
RECONNECT_MILLISECONDS = 500


class LogStream(EventSourceResponse):
    """The answer that stays open; its slot is held exactly as long as it is being sent."""

    def __init__(self, broadcaster: Broadcaster, wish: Wish) -> None:
        self._broadcaster = broadcaster
        self._wish = wish
        super().__init__(
            self._events(),
            ping=KEEP_ALIVE_SECONDS,
            ping_message_factory=self._pulse,
            send_timeout=SEND_TIMEOUT_SECONDS,
            sep="\n",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold a slot while the stream is open, or refuse it with 503."""
        refusal = self._broadcaster.refusal(self._wish)
        if refusal is not None:
            await PlainTextResponse(f"{refusal}\n", 503)(scope, receive, send)
            return
        self._viewer = self._broadcaster.admit(self._wish)
        try:
            # A client that takes nothing for so long is gone; there is no one to tell.
            with contextlib.suppress(TimeoutError):
                await super().__call__(scope, receive, send)
        finally:
            self._broadcaster.dismiss(self._viewer)

    def _pulse(self) -> ServerSentEvent:
        now = self._broadcaster.console.now()
        return ServerSentEvent(rfc3339(now), event="pulse", sep="\n")

    async def _events(self) -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(
            rfc3339(self._broadcaster.console.now()), event="pulse", retry=RECONNECT_MILLISECONDS
        )
        async for event in follow(self._broadcaster, self._viewer):
            yield event


async def follow(broadcaster: Broadcaster, viewer: Viewer) -> AsyncIterator[ServerSentEvent]:
    """Every row from the wished place on, once each, and the regions as they change."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + MAX_AGE_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load
    place = Place(0)
    if viewer.wish.after is None:
        await broadcaster.start_following(viewer)
    else:
        tail = LogTail(broadcaster.console.app, after=viewer.wish.after)
        try:
            # Live rows are queued only once the log was read to its end. What became visible
            # before that moment is met by reading to the end again; what is met twice is dropped.
            async for event in _drain(broadcaster, viewer, tail):
                yield event
            await broadcaster.start_following(viewer)
            async for event in _drain(broadcaster, viewer, tail):
                yield event
            place = Place.parse(tail.token)
        finally:
            tail.close()
    told_at = loop.time()
    while not viewer.ended and loop.time() < ends_at:
        item = await viewer.next(PLACE_SECONDS)
        if isinstance(item, Regions):
            yield ServerSentEvent(item.html)
        elif isinstance(item, Rows):
            for transition, row_place in item.placed.rows:
                fresh = not place.holds(transition.position)
                place = place.joined(row_place)
                row = _row_event(broadcaster, viewer, item, transition, place) if fresh else None
                if row is not None:
                    told_at = loop.time()
                    yield row
            place = place.joined(item.placed.place)
            if loop.time() - told_at > PLACE_SECONDS:
                told_at = loop.time()
                yield ServerSentEvent(id=str(place))


async def _drain(
    broadcaster: Broadcaster, viewer: Viewer, tail: LogTail
) -> AsyncIterator[ServerSentEvent]:
    """What the log holds after the tail's place, up to its end."""
    while not viewer.ended:
        placed = await run_in_threadpool(tail.read_placed)
        if placed.gone_before is not None:
            yield ServerSentEvent(str(placed.gone_before), event="gone")
        if not placed.rows:
            return
        rows = Rows(placed)
        for transition, place in placed.rows:
            row = _row_event(broadcaster, viewer, rows, transition, place)
            if row is not None:
                yield row


def _row_event(
    broadcaster: Broadcaster, viewer: Viewer, rows: Rows, transition: TransitionView, place: Place
) -> ServerSentEvent | None:
    """A row's message, whose id says what was delivered with it; None if it is not wished for."""
    if not viewer.wish.log_filter.matches(transition):
        return None
    html = broadcaster.row(rows, viewer.wish.channel, transition)
    return ServerSentEvent(html, id=str(place)) if html else None
