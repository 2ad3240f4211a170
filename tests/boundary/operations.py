"""The operations of the walk: each acts on the scene's graph as its caller would."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from latchwork.decisions.leases import Hold
from latchwork.decisions.retention import Retention
from latchwork.decisions.workflows import RetryScope
from latchwork.store import expiry, heartbeats, operator_actions, purging
from latchwork.store.claiming import claim
from latchwork.store.database import Database
from latchwork.store.enqueueing import insert_jobs
from latchwork.store.expiry import LapseVerdict
from latchwork.store.outcomes import AnswerStatus, OutcomeKind, Report, report_outcomes
from latchwork.store.workflow_retry import retry_workflow
from tests.boundary.scenes import NAMES, NOW, QUEUE, WORKFLOW, Scene, named
from tests.store.builders import ACTOR, LEASE_SECONDS, ON_ANY_TERMINAL, START, WORKER, Store

RETENTION = Retention(done=timedelta(hours=24), failed=timedelta(days=14))
MUCH_LATER = START + timedelta(days=30)
LAPSED_AT = START + timedelta(seconds=LEASE_SECONDS)

Act = Callable[[Database, Scene], str]


@dataclass(frozen=True)
class Operation:
    """One operation; ``scene`` is where it has something to do.

    ``skips_locked``: on PostgreSQL it passes over rows that somebody else holds, so that its
    answer may be one that no order of two whole operations gives.
    """

    name: str
    scene: str
    act: Act
    skips_locked: bool = False


def enqueue(database: Database, _scene: Scene) -> str:
    store = Store(database)
    new = [
        store.new_job(named("P"), named("C"), id=named("X"), queue=QUEUE, due_at=START),
        store.new_job(named("P"), id=named("Y"), queue=QUEUE, due_at=START, mode=ON_ANY_TERMINAL),
    ]
    database.write(insert_jobs, new, now=NOW)
    return "enqueued"


def claim_one(database: Database, _scene: Scene) -> str:
    jobs = database.write(
        claim, worker_id="node-2", queue=QUEUE, limit=1, lease_seconds=LEASE_SECONDS, now=NOW
    ).jobs
    return f"claimed {[NAMES[job.id] for job in jobs]}"


def heartbeat(database: Database, scene: Scene) -> str:
    answers = database.write(
        heartbeats.renew, WORKER, [*scene.holds.values()], lease_seconds=LEASE_SECONDS, now=NOW
    )
    return ", ".join(f"{answer.status} {answer.cancel_requested}" for answer in answers)


def report(database: Database, hold: Hold, kind: OutcomeKind) -> str:
    """Report as a node does: at once with others, then alone if the row was held by somebody."""
    answer = None
    for wait in (False, True):
        [answer] = database.write(report_outcomes, WORKER, [Report(hold, kind)], now=NOW, wait=wait)
        if answer.status is not AnswerStatus.BUSY:
            break
    assert answer is not None
    assert answer.status is not AnswerStatus.BUSY, "a report that waits is never busy"
    return f"{answer.status} {answer.state}"


def complete(database: Database, scene: Scene) -> str:
    return report(database, scene.holds["P"], OutcomeKind.SUCCESS)


def complete_other_parent(database: Database, scene: Scene) -> str:
    return report(database, scene.holds["Q"], OutcomeKind.SUCCESS)


def fail(database: Database, scene: Scene) -> str:
    return report(database, scene.holds["P"], OutcomeKind.FAILURE)


def expire(database: Database, scene: Scene) -> str:
    """A sweep: P is at its ceiling, others are due again."""
    lapsed = database.read(expiry.read_lapsed, now=LAPSED_AT, limit=100)
    at_ceiling = scene.holds["P"].sequence
    verdicts = [
        LapseVerdict(job, None if job.sequence == at_ceiling else LAPSED_AT) for job in lapsed
    ]
    return f"expired {database.write(expiry.expire, verdicts, now=LAPSED_AT)}"


def cancel(database: Database, _scene: Scene) -> str:
    answer = database.write(operator_actions.cancel, named("P"), actor=ACTOR, now=NOW)
    return f"{answer.outcome} {answer.state}"


def requeue(database: Database, _scene: Scene) -> str:
    answer = database.write(operator_actions.requeue, named("P"), actor=ACTOR, now=NOW)
    return f"{answer.outcome} {answer.state}"


def retry(database: Database, _scene: Scene) -> str:
    answer = database.write(
        retry_workflow, WORKFLOW, scope=RetryScope.UNFINISHED, actor=ACTOR, now=NOW
    )
    return f"{answer.outcome} {answer.moved}"


def purge(database: Database, _scene: Scene) -> str:
    """The purge long after everything has ended, pass after pass while there is something new.

    What is found may be gone, or be needed again, when it is locked: the next pass looks again.
    """
    purged, before = 0, None
    while True:
        groups = database.read(purging.find, RETENTION, now=MUCH_LATER).groups
        if not groups or groups == before:
            return f"purged {purged}"
        purged += database.write(purging.purge, groups, RETENTION, now=MUCH_LATER)
        before = groups


OPERATIONS = (
    Operation("enqueue with parent", "running", enqueue),
    Operation("claim", "waiting", claim_one, skips_locked=True),
    Operation("heartbeat", "running", heartbeat, skips_locked=True),
    Operation("complete", "running", complete),
    Operation("complete other parent", "running", complete_other_parent),
    Operation("fail", "running", fail),
    Operation("expire", "running", expire),
    Operation("cancel", "waiting", cancel),
    Operation("requeue", "ended", requeue),
    Operation("workflow retry", "ended", retry),
    Operation("purge", "ended", purge, skips_locked=True),
)
