"""Why a job is where it is, said in one sentence (pure: the facts come in, words go out).

``code`` names the reason for programs; the sentence is for the person who is woken at night. A
cause's text is sensitive and never part of a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from latchwork.decisions.leases import SUSPECT_LAPSES
from latchwork.decisions.states import JobState


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason in one sentence."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Gates:
    """What stands between due work of a queue and its claim.

    ``held`` counts the slots taken under ``limit``. ``serving`` live nodes serve the queue,
    ``knowing`` of them know the job's wire name.
    """

    paused_at: datetime | None
    paused_by: str | None
    limit: int | None
    held: int
    serving: int
    knowing: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease and what is known of its holder; ``seen_at`` is its last heartbeat."""

    owner: str
    expires_at: datetime
    seen_at: datetime | None
    cancel_asked_at: datetime | None
    cancel_asked_by: str | None
    cancel_delivered_at: datetime | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; ``parent`` and ``root`` are names of the jobs that a cascade came from."""

    state: JobState
    attempt: int
    max_attempts: int
    code: str | None
    type: str | None
    asked_by: str | None
    parent: str | None
    parent_state: JobState | None
    root: str | None


def why_not_due(due_at: datetime, attempt: int, max_attempts: int, now: datetime) -> Reason:
    """A Scheduled job whose time has not come."""
    wait = f"until {clock(due_at, now)}, in {span(due_at - now)}"
    if attempt:
        return Reason(
            "waiting_to_retry",
            f"Waiting to retry {wait}: attempt {attempt} of {max_attempts} did not succeed.",
        )
    return Reason("not_due", f"Not due {wait}.")


def why_not_claimed(
    queue: str, wire_name: str, gates: Gates, ahead: int, ahead_text: str, now: datetime
) -> Reason:
    """A Scheduled job that is due; ``ahead_text`` is ``ahead`` as shown, such as ``1,000+``."""
    if gates.paused_at is not None:
        since = clock(gates.paused_at, now)
        return Reason("paused", f"Queue {queue} is paused by {gates.paused_by} since {since}.")
    if not gates.serving:
        return Reason("not_served", f"No live node serves queue {queue}.")
    if not gates.knowing:
        return Reason(
            "unknown_wire_name",
            f"No live node that serves queue {queue} knows {wire_name}: "
            "the job will be quarantined when it is claimed.",
        )
    if gates.limit is not None and gates.held >= gates.limit:
        return Reason(
            "limit_full",
            f"Limit {gates.limit} of queue {queue} is full, held by {plural(gates.held, 'job')}.",
        )
    if ahead:
        verb = "is" if ahead == 1 else "are"
        jobs = "job" if ahead == 1 else "jobs"
        return Reason("behind_others", f"{ahead_text} {jobs} {verb} due before it in {queue}.")
    return Reason("next", f"Due, and the next that a free slot of queue {queue} takes.")


def why_waiting(parents: Sequence[tuple[str, JobState]], settled: int) -> Reason:
    """An Awaiting Parent job; ``parents`` are those still open, as name and state."""
    total = len(parents) + settled
    names = [f"{name} ({state.label})" for name, state in parents[:3]]
    if len(parents) > len(names):
        names.append(f"{len(parents) - len(names)} more")
    of = f"{len(parents)} of {plural(total, 'parent')}" if total > 1 else "its parent"
    return Reason("awaiting_parents", f"Waiting for {of}: {listed(names)}.")


def why_leased(lease: Lease, lapses: int, now: datetime) -> Reason:
    """A Leased job: who runs it, and what became of a cancel."""
    if lease.expires_at <= now:
        ago = span(now - lease.expires_at)
        return Reason(
            "lapsed",
            f"The lease of {lease.owner} lapsed {ago} ago{_heartbeat(lease, now)}; "
            "the next sweep takes the job back.",
        )
    if lease.cancel_asked_at is not None:
        asked = f"Cancel asked by {lease.cancel_asked_by} {span(now - lease.cancel_asked_at)} ago"
        if lease.cancel_delivered_at is None:
            return Reason(
                "cancel_asked",
                f"{asked}; {lease.owner} learns of it at its next heartbeat"
                f"{_heartbeat(lease, now)}.",
            )
        return Reason(
            "cancel_delivered",
            f"{asked} and delivered {span(now - lease.cancel_delivered_at)} ago; "
            f"the handler on {lease.owner} has not returned yet.",
        )
    suspect = ""
    if lapses >= SUSPECT_LAPSES:
        suspect = f" Its lease lapsed {lapses} times in a row before: it may be killing its node."
    return Reason(
        "leased",
        f"Leased by {lease.owner}{_heartbeat(lease, now)}; "
        f"the lease ends in {span(lease.expires_at - now)}.{suspect}",
    )


def why_ended(end: Ending) -> Reason:
    """A job that has settled."""
    tries = f"attempt {end.attempt} of {end.max_attempts}"
    kind = f": {end.type}" if end.type else ""
    match end.state:
        case JobState.SUCCEEDED:
            return Reason("succeeded", f"Succeeded at {tries}.")
        case JobState.QUARANTINED:
            why = _QUARANTINES.get(end.code or "", f"it could not be routed{kind}")
            return Reason("quarantined", f"Quarantined at {tries}: {why}.")
        case JobState.DEAD_LETTERED:
            why = _DEAD_LETTERS.get(end.code or "", "")
            return Reason("dead_lettered", f"Dead-Lettered at {tries}{why}{kind}.")
        case _:
            return Reason("cancelled", _cancelled(end))


_QUARANTINES = {
    "unknown_wire_name": "the node that claimed it does not know its wire name",
    "payload_refused": "its job type refuses the payload",
}
_DEAD_LETTERS = {
    "lease_lapsed": ", because its lease lapsed",
    "gave_up": ", because its handler gave up",
}


def _cancelled(end: Ending) -> str:
    if end.parent is not None:
        parent = end.parent_state.label if end.parent_state else "not Succeeded"
        root = f"; it began with {end.root}" if end.root not in (None, end.parent) else ""
        return f"Cancelled because its parent {end.parent} is {parent}{root}."
    if end.asked_by is not None:
        return f"Cancelled by {end.asked_by}."
    return f"Cancelled{f': {end.type or end.code}' if end.type or end.code else ''}."


def _heartbeat(lease: Lease, now: datetime) -> str:
    if lease.seen_at is None:
        return ""
    return f", heartbeat {span(max(timedelta(), now - lease.seen_at))} ago"


def clock(moment: datetime, now: datetime) -> str:
    """A time of day in UTC, with its date unless that is today's."""
    day = "" if moment.date() == now.date() else "%Y-%m-%d "
    return moment.strftime(f"{day}%H:%M:%S UTC")


def span(length: timedelta) -> str:
    """A length of time in its two largest units: ``40 s``, ``4 min``, ``2 h 5 min``, ``3 d``."""
    seconds = max(0, round(length.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 60:
        return f"{minutes} min"
    if hours < 24:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def plural(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``, ``1,000 jobs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
