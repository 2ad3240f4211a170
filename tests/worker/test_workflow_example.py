"""The workflow of docs/workflows.md, run by a node as it stands there."""

import re
from typing import Any

import pytest

from latchwork import WorkflowStatus
from tests.packaging.files import ROOT
from tests.worker.conftest import Start, settled


def test_the_example_runs_to_its_end(
    database_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATCHWORK_DATABASE_URL", database_url)
    page = (ROOT / "docs/workflows.md").read_text()
    example: dict[str, Any] = {"__name__": "example"}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], example)  # noqa: S102 - our page
    app, started = example["app"], example["started"]
    settled(start(app), started.jobs["ship"])
    detail = app.monitor.workflow(started.id)
    assert detail.workflow.status is WorkflowStatus.SUCCEEDED
    assert app.monitor.output(started.jobs["ship"]).output == '{"label":"t-42","weight":6}'
