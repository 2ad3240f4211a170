"""The application under torture, and the process in which one of its nodes runs."""

import asyncio
import logging
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from latchwork import GiveUp, JobContext, JobState, Latchwork, RetryPolicy, application
from latchwork.maintenance.observer_dispatcher import ObserverDispatcher
from latchwork.observers import ObserverContext
from latchwork.views import TransitionView
from tests.torture.witness import Witness

QUEUES = ("a", "b", "c")
CANARY_QUEUE = "canary"
"""Served first: what is in it shows that work goes on, however long the other queues are."""
ENDS = [state for state in JobState if state.terminal]
QUICK = RetryPolicy(max_attempts=4, base_seconds=0.05, factor=2, cap_seconds=0.4, jitter=0.5)
NODE: dict[str, Any] = {
    "queues": (CANARY_QUEUE, *QUEUES),
    "slots": 6,
    "lease_seconds": 3,
    "sweep_seconds": 0.5,
    "poll_seconds": 0.2,
    "grace_seconds": 5,
}


SAMPLE = 1_000_000


class Refusal(Exception):
    """How a handler of this application fails."""


def make_app(database_url: str, witness: Witness | None) -> Latchwork:
    """The application: quick jobs, blocking ones, and some that fail or give up; an observer."""
    app = Latchwork(database_url)

    @app.job("work", queue="a", retry=QUICK)
    async def work(context: JobContext, milliseconds: int) -> None:
        begin(witness, context)
        await asyncio.sleep(milliseconds / 1000)
        context.set_output({"attempt": context.attempt})
        end(witness, context)

    @app.job("block", queue="b", retry=QUICK)
    def block(context: JobContext, milliseconds: int) -> None:
        begin(witness, context)
        time.sleep(milliseconds / 1000)
        context.cancellation.raise_if_requested()
        end(witness, context)

    @app.job("flaky", queue="b", retry=QUICK)
    async def flaky(context: JobContext, failures: int) -> None:
        begin(witness, context)
        if context.attempt <= failures:
            raise Refusal(f"attempt {context.attempt}")
        end(witness, context)

    @app.job("hopeless", queue="c", retry=QUICK)
    async def hopeless(context: JobContext) -> None:
        begin(witness, context)
        raise GiveUp("there is no way")

    @app.job("stubborn", queue="a", retry=QUICK)
    def stubborn(context: JobContext, seconds: float) -> None:
        begin(witness, context)
        time.sleep(seconds)  # whatever it is asked
        end(witness, context)

    @app.job("stall", queue="a", retry=QUICK)
    async def stall(context: JobContext, seconds: float, hold_interpreter: bool) -> None:
        begin(witness, context)
        if context.attempt == 1:
            hold_lock(seconds) if hold_interpreter else time.sleep(seconds)  # noqa: ASYNC251
        end(witness, context)

    @app.observer("witness", states=ENDS, start="beginning")
    def watch(transition: TransitionView, context: ObserverContext) -> None:
        assert witness is not None, "observers are called in a node"
        witness.told(transition)

    return app


def hold_lock(seconds: float) -> None:
    """Keep the interpreter's lock in one long call, in which no other thread runs."""
    began_at = time.monotonic()
    sum(range(SAMPLE))
    each = (time.monotonic() - began_at) / SAMPLE
    sum(range(int(seconds / each)))


def begin(witness: Witness | None, context: JobContext) -> None:
    assert witness is not None, "a handler runs in a node"
    witness.begin(context)


def end(witness: Witness | None, context: JobContext) -> None:
    assert witness is not None, "a handler runs in a node"
    witness.end(context)


def serve(database_url: str, witness_path: Path, log_path: Path, options: dict[str, Any]) -> None:
    """The life of one node: everything it says goes to ``log_path``."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    # Else a killed node would keep the observer waiting for half a minute in every batch.
    quick = partial(ObserverDispatcher, lease_seconds=NODE["lease_seconds"])
    setattr(application, "ObserverDispatcher", quick)  # noqa: B010 - the module does not offer it
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    make_app(database_url, Witness(witness_path)).worker(**{**NODE, **options}).run()
