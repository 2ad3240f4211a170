"""A workflow of 1,000 steps: how long it takes to enqueue, and in how many statements."""

import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import event

from latchwork.application import Latchwork
from latchwork.context import JobContext
from latchwork.workflows import Workflow

LEVELS, FAN_IN = 10, 16
AIM_SECONDS = 1.0


def layered(app: Latchwork, width: int) -> Workflow:
    """One step, then levels of ``width`` steps: fan-in 16, and at width 100 fan-out 50."""

    @app.job(f"step-{width}")
    def step(context: JobContext, number: int) -> None:
        """Never run: only enqueued."""

    workflow = Workflow(f"{LEVELS} levels of {width}").add("first", step.bind(0))
    above = ["first"]
    for level in range(LEVELS):
        names = [f"{level}-{number}" for number in range(width)]
        for number, name in enumerate(names):
            # Of the level above a third has children, so that fan-out is threefold fan-in.
            parents = {above[(number + offset) % min(len(above), 32)] for offset in range(FAN_IN)}
            workflow.add(name, step.bind(number), after=sorted(parents))
        above = names
    return workflow


def measure(database_url: str) -> list[dict[str, object]]:
    """Enqueue workflows of two sizes on ``database_url``; the names are in use before."""
    app = Latchwork(database_url)
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    rows: list[dict[str, object]] = []
    for width in (5, 100):
        workflow = layered(app, width)
        app.client.start_workflow(workflow)
        event.listen(app.engine, "before_cursor_execute", note)
        statements.clear()
        before = time.perf_counter()
        app.client.start_workflow(workflow)
        taken = time.perf_counter() - before
        event.remove(app.engine, "before_cursor_execute", note)
        rows.append(
            {
                "steps": len(workflow.steps),
                "edges": sum(len(one.after) for one in workflow.steps.values()),
                "milliseconds": round(taken * 1000),
                "statements": len(statements),
            }
        )
    app.database.dispose()
    return rows


def main(database_url: str | None) -> None:
    """Print a table; SQLite in a folder of its own unless a database is named."""
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(database_url or f"sqlite:///{Path(folder) / 'workflows.db'}")
    print("\n| steps | edges | ms | statements |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(f"{value:,}" for value in row.values()) + " |")
    print(f"\nThe aim is {AIM_SECONDS:g} s for a thousand steps.")
