"""The shop's office: a tally on a schedule, an alarm for what is given up, the closing of a month.

The closing is a workflow that fails, because the bank's statement comes late. Retry it once the
statement is there, and it succeeds.
"""

from datetime import UTC, datetime
from pathlib import Path

from latchwork import (
    DependencyMode,
    GiveUp,
    JobContext,
    JobState,
    ObserverContext,
    TransitionView,
    Workflow,
)
from latchwork.demo.application import IMPATIENT, app

FOLDER = Path(app.engine.url.database or "latchwork-demo.db").with_suffix(".files")
"""Where the office keeps its papers: the demo's own folder."""


@app.job("tally-jobs", queue="office", retry=IMPATIENT)
def tally_jobs(context: JobContext) -> None:
    """Write down how many jobs there are in each state."""
    counts = {state.value: count for state, count in app.monitor.counts().by_state.items()}
    _note("tally.txt", " ".join(f"{state}={count}" for state, count in counts.items()))
    context.set_output(counts)


@app.job("close-the-books", queue="office", retry=IMPATIENT)
def close_the_books(context: JobContext) -> None:
    """Runs at night, in the shop's own zone."""
    _note("books.txt", "closed")
    context.set_output("closed")


app.schedule("tally", tally_jobs.bind(), cron="*/30 * * * * *")
app.schedule("close-the-books", close_the_books.bind(), cron="30 2 * * *", zone="Europe/Berlin")


@app.observer("alarm", states=[JobState.DEAD_LETTERED, JobState.QUARANTINED])
def raise_alarm(transition: TransitionView, context: ObserverContext) -> None:
    """Write a line for each job that is given up; every fifth needs a second call."""
    if context.attempt == 1 and transition.position % 5 == 0:
        raise ConnectionError("the pager did not answer")
    _note("alarms.txt", f"{transition.state.label}: {transition.wire_name} {transition.job_id}")


@app.job("send-newsletter", queue="newsletters", retry=IMPATIENT)
def send_newsletter(context: JobContext, issue: int) -> None:
    """Waits until somebody resumes its queue."""
    context.set_output(f"issue {issue} is out")


def month_close(run: int) -> Workflow:
    """Collect, reconcile with the bank's statement, publish; tidy up whatever happened."""
    return (
        Workflow("month-close")
        .add("collect", collect_orders.bind(run))
        .add("reconcile", reconcile.bind(run), after=["collect"])
        .add("publish", publish_figures.bind(run), after=["reconcile"])
        .add("tidy-up", tidy_up.bind(run), after=["publish"], mode=DependencyMode.ON_ANY_TERMINAL)
    )


@app.job("collect-orders", queue="office", retry=IMPATIENT)
def collect_orders(context: JobContext, run: int) -> None:
    """The first step: what was sold."""
    context.set_output({"run": run, "orders": run * 17})


@app.job("reconcile", queue="office", retry=IMPATIENT)
def reconcile(context: JobContext, run: int) -> None:
    """Needs the bank's statement; without it there is no point in trying again soon."""
    if not statement(run).exists():
        raise GiveUp(f"the bank's statement {statement(run).name} has not come yet")
    context.set_output({"balance_cents": len(statement(run).read_bytes())})


@app.job("publish-figures", queue="office", retry=IMPATIENT)
def publish_figures(context: JobContext, run: int) -> None:
    """Runs once the books agree, and reads what both steps before it left."""
    orders = context.dependency_output(collect_orders).output
    balance = context.dependency_output(reconcile).output
    context.set_output({"run": run, "orders": orders, "balance": balance})


@app.job("tidy-up", queue="office", retry=IMPATIENT)
def tidy_up(context: JobContext, run: int) -> None:
    """Runs whatever became of the closing."""
    published = context.dependency_output(publish_figures)
    context.set_output({"run": run, "published": published.has_output})


def deliver_statement(run: int) -> None:
    """The bank sends what the closing of ``run`` waits for."""
    statement(run).write_text(f"statement {run}\n")


def statement(run: int) -> Path:
    """Where the bank's statement for a closing arrives."""
    return FOLDER / f"statement-{run}.txt"


def _note(name: str, line: str) -> None:
    """Append one line to one of the office's papers."""
    with (FOLDER / name).open("a") as paper:
        paper.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {line}\n")
