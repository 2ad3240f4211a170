"""What an action did, carried to the next page as a code: never as text that would be echoed.

``requeue:requeued=3,refused-succeeded=1`` means three jobs requeued and one refused because it was
Succeeded. The sentences are made here, from a fixed vocabulary and bounded figures.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from latchwork.decisions.states import JobState
from latchwork_console.formatting import plural

MAX_CHARACTERS = 400
_PART = re.compile(r"([a-z_]{1,20})(?:-([a-z_]{1,20}))?=([0-9]{1,6})")

_DONE = {
    "requeued": "requeued",
    "cancelled": "cancelled",
    "requested": "asked to stop; cancelled when the worker reports it",
}
_NOT_STORED = "no longer stored"
_NOT_LEGAL = {
    "requeue": "only Dead-Lettered and Quarantined jobs can be requeued",
    "cancel": "it had ended already",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job: an outcome's name, and the state that was met, if any."""

    name: str
    state: JobState | None


@dataclass(frozen=True, slots=True)
class Message:
    """The result of an action, told once on the page that follows it."""

    sentence: str
    worked: bool
    details: tuple[str, ...] = ()


_OF_OPERATIONS = {
    "continued": Message("The rest follows.", worked=True),
    "stopped": Message("Stopped: no further job is acted on.", worked=True),
    "refused": Message("Nothing was changed: it has ended, or nothing waits.", worked=False),
}


_OF_OBSERVERS = {
    "observer:retired": Message("The observer is retired.", worked=True),
    "observer:refused": Message("Nothing was changed: it was retired before.", worked=False),
    "delivery:replayed": Message("The delivery is tried again.", worked=True),
    "delivery:refused": Message("Nothing was changed: it is still being tried.", worked=False),
    "history:changed": Message("The history policy is set.", worked=True),
    "history:unchanged": Message("Nothing was changed: it was in force already.", worked=False),
    "history:refused": Message("Nothing was changed: active observers need the log.", worked=False),
}


_OF_QUEUES = {
    "paused": Message("Paused: none of its jobs is claimed any more.", worked=True),
    "resumed": Message("Resumed: its jobs are claimed again.", worked=True),
    "limited": Message("The limit holds from now on.", worked=True),
    "unlimited": Message("The limit is lifted.", worked=True),
    "unchanged": Message("Nothing was changed: it was so already.", worked=False),
    "unavailable": Message(
        "The database did not answer; whether it was done is shown below.", worked=False
    ),
}


_OF_WORKFLOWS = {
    "cancelled": Message("Cancelled: no step is left to run.", worked=True),
    "requested": Message("Cancelled, but for running steps: those are asked to stop.", worked=True),
    "retried": Message("The steps of the chosen scope run again.", worked=True),
    "restarted": Message("This is the new workflow; the old one stays as it is.", worked=True),
    "unchanged": Message("Nothing was changed: every step has succeeded.", worked=False),
    "retry-refused": Message(
        "Nothing was changed: a workflow is retried once all its steps have ended.", worked=False
    ),
    "cancel-refused": Message("Nothing was changed: every step had ended.", worked=False),
    "unavailable": Message(
        "The database did not answer; whether it was done is shown below.", worked=False
    ),
}


_OF_SCHEDULES = {
    "triggered": Message("Triggered: its job is enqueued, due now.", worked=True),
    "refused": Message("Nothing was changed: its last job has not ended.", worked=False),
    "unavailable": Message(
        "The database did not answer; whether it was done is shown below.", worked=False
    ),
}


_FIXED = {
    "schedule": _OF_SCHEDULES,
    "queue": _OF_QUEUES,
    "operation": _OF_OPERATIONS,
    "workflow": _OF_WORKFLOWS,
}
"""Actions on one thing, whose outcomes need no figures."""


def encode(action: str, outcomes: Iterable[Outcome]) -> str:
    """The code of what an action did to some jobs."""
    counts = Counter(
        f"{one.name}-{one.state.value}"
        if one.name == "refused" and one.state is not None
        else one.name
        for one in outcomes
    )
    return f"{action}:" + ",".join(f"{name}={count}" for name, count in sorted(counts.items()))


def decode(code: str | None) -> Message | None:
    """The message of a code; None for anything that is not one."""
    if not code or len(code) > MAX_CHARACTERS or code in _OF_OBSERVERS:
        return _OF_OBSERVERS.get(code or "")
    action, _, rest = code.partition(":")
    if action in _FIXED:
        return _FIXED[action].get(rest)
    parts = [_PART.fullmatch(part) for part in rest.split(",")] if rest else []
    if action not in _NOT_LEGAL or not all(parts):
        return None
    if not parts:
        return Message("No job was selected, so nothing was done.", worked=False)
    done, skipped = [], []
    for part in parts:
        if part is None:
            return None
        name, state, count = part[1], part[2], int(part[3])
        if name in _DONE:
            done.append(f"{plural(count, 'job')} {_DONE[name]}")
        elif (reason := _reason(action, name, state)) is not None:
            skipped.append(f"{plural(count, 'job')} skipped: {reason}")
    if not done and not skipped:
        return None
    sentence = f"{'; '.join(done)}." if done else "Nothing was changed."
    return Message(sentence, worked=bool(done), details=tuple(skipped))


def _reason(action: str, name: str, state: str | None) -> str | None:
    if name == "not_found":
        return _NOT_STORED
    if name == "unavailable":
        return "the database did not answer; whether it was done is shown by the job itself"
    if name != "refused":
        return None
    if state not in {one.value for one in JobState}:
        return _NOT_LEGAL[action]
    return skip_reason(action, JobState(state))


def skip_reason(action: str, state: JobState | None) -> str:
    """Why a job in this state is not acted on; None is a job that is no longer stored."""
    return _NOT_STORED if state is None else f"{state.label}; {_NOT_LEGAL[action]}"
