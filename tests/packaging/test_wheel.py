"""What is built is whole: every module, template and static file, and it runs anywhere."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.demo.running import eventually, running_demo
from tests.packaging.files import ROOT

# Where the wheel holds what lies in a folder of the checkout.
HOLDS = {
    "core/latchwork": "latchwork",
    "app/latchwork_console": "latchwork_console",
    "templates": "latchwork_console/templates",
    "static": "latchwork_console/static",
}
BUILD_SECONDS = 300

pytestmark = pytest.mark.timeout(2 * BUILD_SECONDS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source distribution, so that both are looked at."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder away from the checkout, with the wheel alone installed in ``venv``."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run([sys.executable, "-m", "venv", str(folder / "venv")])
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "install"]
    run([*pip, "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel)])
    return folder


def run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_and_no_other(wheel: Path) -> None:
    expected = {
        f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, inside in HOLDS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_the_wheel_carries_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_installed_wheel_has_the_command(elsewhere: Path) -> None:
    assert run(["venv/bin/latchwork", "version"], cwd=elsewhere).strip()


def test_the_installed_wheel_needs_no_extra(elsewhere: Path) -> None:
    program = (
        "import latchwork, latchwork_console.server, pathlib; "
        "app = latchwork.Latchwork('sqlite:///here.db'); print(app.monitor.counts().total)"
    )
    assert run(["venv/bin/python", "-c", program], cwd=elsewhere).strip() == "0"


def test_the_installed_wheel_finds_its_templates(elsewhere: Path) -> None:
    program = (
        "from latchwork_console.assets import asset_dir; "
        "print((asset_dir('templates') / 'layout.html').exists(), asset_dir('templates'))"
    )
    found, folder = run(["venv/bin/python", "-c", program], cwd=elsewhere).split()
    assert found == "True"
    assert Path(folder).is_relative_to(elsewhere)


def test_the_installed_wheel_runs_the_demo(elsewhere: Path) -> None:
    with running_demo(elsewhere, python=elsewhere / "venv/bin/python") as demo:
        job = eventually(lambda: re.search(r"/jobs/[0-9a-f-]{36}", demo.get("/jobs").decode()))[0]
        pages = ["/", "/log", "/jobs", "/queues", "/nodes", job, f"{job}/graph"]
        assert {page: demo.status(page) for page in pages} == dict.fromkeys(pages, 200)
        texts = "".join(demo.get(page).decode() for page in pages)
        files = set(re.findall(r'(?:href|src)="(/static/[^"#]+)', texts))
        assert files
        assert {file: demo.status(file) for file in files} == dict.fromkeys(files, 200)
        assert demo.end() == 0
