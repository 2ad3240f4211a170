"""The documentation says what the code has, all of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import latchwork
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import EDGES
from latchwork.settings import Settings
from tests.packaging.files import ROOT, each
from tests.packaging.generated_pages import PAGES, edge_row

PROSE = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EVERYTHING = "\n".join(path.read_text() for path in PROSE)


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize("name", latchwork.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", EVERYTHING)
    assert getattr(latchwork, name).__doc__


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_is_documented(name: str) -> None:
    assert f"LATCHWORK_{name.upper()}" in EVERYTHING
    assert Settings.model_fields[name].description


def test_every_state_and_transition_is_documented() -> None:
    page = (ROOT / "docs/state-machine.md").read_text()
    assert [state for state in JobState if f"| {state.label} | `{state.value}` |" not in page] == []
    assert [edge for edge in EDGES if edge_row(edge) not in page] == []


@each(PROSE)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text())
    ours = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#", link)]
    assert [link for link in ours if not (path.parent / link).exists()] == []


def test_the_first_steps_work(tmp_path: Path) -> None:
    page = (ROOT / "docs/getting-started.md").read_text()
    shop, enqueueing = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "shop.py").write_text(shop)
    (tmp_path / "enqueueing.py").write_text(enqueueing)
    subprocess.run([sys.executable, "enqueueing.py"], cwd=tmp_path, check=True)
    database = f"sqlite:///{tmp_path / 'shop.db'}"
    listing = [sys.executable, "-m", "latchwork", "jobs", "list", "--database", database, "--json"]
    jobs = json.loads(subprocess.check_output(listing))["jobs"]
    assert [job["state"] for job in jobs] == ["awaiting_parent", "scheduled"]
