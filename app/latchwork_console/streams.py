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
    caught_up = Place(0)
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
            caught_up = Place.parse(str(tail.token))
        finally:
            tail.close()
    told_at = loop.time()
    while not viewer.ended and loop.time() < ends_at:
        item = await viewer.next(PLACE_SECONDS)
        if isinstance(item, Regions):
            yield ServerSentEvent(item.html)
        elif isinstance(item, Rows):
            fresh = tuple(one for one in item.transitions if _unseen(caught_up, one.position))
            for event in _row_events(broadcaster, viewer, item, fresh):
                told_at = loop.time()
                yield event
            if fresh and loop.time() - told_at > PLACE_SECONDS:
                told_at = loop.time()
                yield ServerSentEvent(id=item.token)


async def _drain(
    broadcaster: Broadcaster, viewer: Viewer, tail: LogTail
) -> AsyncIterator[ServerSentEvent]:
    """What the log holds after the tail's place, up to its end."""
    while not viewer.ended:
        batch = await run_in_threadpool(tail.read)
        if batch.gone_before is not None:
            yield ServerSentEvent(str(batch.gone_before), event="gone")
        if not batch.transitions:
            return
        rows = Rows(tuple(batch.transitions), str(tail.token))
        for event in _row_events(broadcaster, viewer, rows, rows.transitions):
            yield event


def _unseen(place: Place, position: int) -> bool:
    return position > place.position or place.after(position) != place


def _row_events(
    broadcaster: Broadcaster,
    viewer: Viewer,
    rows: Rows,
    fresh: tuple[TransitionView, ...],
) -> list[ServerSentEvent]:
    """One message per matching row; the id says what had been delivered once it was."""
    end = Place.parse(rows.token)
    matching = [one for one in fresh if viewer.wish.log_filter.matches(one)]
    events = []
    for transition in matching:
        html = broadcaster.row(rows, viewer.wish.channel, transition)
        if html:
            token = rows.token if transition is fresh[-1] else _token_at(end, transition.position)
            events.append(ServerSentEvent(html, id=token))
    return events


def _token_at(end: Place, position: int) -> str:
    """The place within a batch, whose rows rise: up to ``position``, less the gaps still open."""
    if position >= end.position:
        return str(end)
    return str(Place(position, tuple(gap for gap in end.gaps if gap[1] < position)))
