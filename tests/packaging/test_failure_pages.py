"""The examples of docs/failures.md and docs/metrics.md do what they say."""

import re
from pathlib import Path
from typing import Any

from latchwork.application import Latchwork
from latchwork.bulk_views import BulkState
from latchwork.decisions.states import JobState
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.maintenance.failure_grouper import FailureGrouper
from latchwork.metrics import metrics_text
from tests.packaging.files import ROOT
from tests.store.builders import Store


def examples(page: str) -> list[str]:
    """The Python of a page, block by block."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_the_examples_about_failures_work(tmp_path: Path) -> None:
    app = Latchwork(f"sqlite:///{tmp_path / 'shop.db'}")
    store = Store(app.database, now=app.database.now())
    for _ in range(2):
        store.end(store.enqueue(wire_name="charge-card"), JobState.DEAD_LETTERED)
    FailureGrouper(app.database).run_once()
    names: dict[str, Any] = {"app": app}
    reading, by_cause, by_filter = examples("failures.md")
    exec(reading, names)  # noqa: S102
    exec(by_cause, names)  # noqa: S102
    runner = BulkRunner(app.database)
    while runner.run_once():
        pass
    operation = app.monitor.bulk_operation(names["operation"].id)
    assert operation is not None
    assert (operation.state, operation.done) == (BulkState.FINISHED, 2)
    exec(by_filter, names)  # noqa: S102
    assert len(app.monitor.bulk_operations()) == 3
    app.database.dispose()


def test_the_example_about_metrics_works(tmp_path: Path) -> None:
    app = Latchwork(f"sqlite:///{tmp_path / 'shop.db'}")
    (printing,) = examples("metrics.md")
    exec(printing, {"app": app})  # noqa: S102
    app.database.dispose()


def test_every_metric_is_on_the_page(tmp_path: Path) -> None:
    app = Latchwork(f"sqlite:///{tmp_path / 'shop.db'}")
    page = (ROOT / "docs" / "metrics.md").read_text()
    told = re.findall(r"# TYPE (latchwork_\w+) ", metrics_text(app).decode())
    assert told
    assert [name for name in told if name.removesuffix("_created") not in page] == []
    app.database.dispose()
