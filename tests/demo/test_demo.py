"""What one sees in the demo, and how it starts and ends."""

import hashlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from latchwork import JobFilter, JobState, Latchwork, Settings
from latchwork.decisions.workflows import WorkflowStatus
from latchwork.store.engines import make_engine, reading
from latchwork.views import LogFilter
from tests.audit import audit
from tests.demo.running import Demo, eventually, running_demo, runs

KILLED_SECONDS = 120
"""The first kill may find an idle node; the second one follows a minute later."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder to take stock of."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "good.py").write_text("answer = 42\n")
    (folder / "broken.py").write_text("answer = = 42\n")
    (folder / "copy.py").write_text("answer = 42\n")
    (folder / "empty").write_bytes(b"")
    (folder / "with a space and é.txt").write_text("hello")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "secret").write_text("not to be listed")
    return folder


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Demo]:
    """One demo that all tests look at; its database is audited in the end."""
    folder = tmp_path_factory.mktemp("demo")
    with running_demo(folder, "--database", "demo.db", "--directory", files) as demo:
        yield demo
        assert demo.end() == 0
    engine = make_engine(f"sqlite:///{folder / 'demo.db'}", Settings())
    with reading(engine) as connection:
        problems = audit(connection)
    engine.dispose()
    assert problems == []


@pytest.fixture(scope="module")
def app(demo: Demo) -> Iterator[Latchwork]:
    """The demo's database, seen from outside."""
    app = Latchwork(f"sqlite:///{demo.folder / 'demo.db'}")
    yield app
    app.database.dispose()


def test_all_seven_states_appear_within_a_minute(app: Latchwork) -> None:
    seen: set[JobState] = set()

    def all_seen() -> bool:
        seen.update(state for state, count in app.monitor.counts().by_state.items() if count)
        return seen == set(JobState)

    eventually(all_seen)


def test_a_killed_nodes_job_goes_on_after_its_lease(app: Latchwork) -> None:
    failures = LogFilter(states=(JobState.SCHEDULED,), failing=True)

    def lapsed() -> bool:
        killed = {
            node.worker_id
            for node in app.monitor.nodes()
            if not node.live and node.stopped_at is None
        }
        rows = app.monitor.transitions(failures, limit=200).transitions
        # Of an attempt that failed there is a detail; of a node that is no more there is none.
        return any(
            row.failure_detail is None
            for job_id in {row.job_id for row in rows if row.worker in killed}
            for row in app.monitor.history(job_id).transitions
            if row.failing and row.worker in killed
        )

    eventually(lapsed, KILLED_SECONDS)


def test_a_killed_node_is_replaced(app: Latchwork) -> None:
    eventually(lambda: len(app.monitor.nodes()) >= 3, KILLED_SECONDS)
    eventually(lambda: sum(node.live for node in app.monitor.nodes()) == 2)


def test_an_operator_cancels_and_what_waits_is_cancelled_with_it(app: Latchwork) -> None:
    cancelled = JobFilter(states=(JobState.CANCELLED,), wire_name="mail-export")
    eventually(lambda: app.monitor.jobs(cancelled).jobs)


def test_jobs_are_dead_lettered_for_several_causes(app: Latchwork) -> None:
    def causes() -> set[str]:
        page = app.monitor.jobs(JobFilter(states=(JobState.DEAD_LETTERED,)))
        return {str(job.cause.type) for job in page.jobs if job.cause}

    eventually(lambda: len(causes()) >= 3, KILLED_SECONDS)


def test_the_inventory_lists_every_file(app: Latchwork, demo: Demo, files: Path) -> None:
    reported = JobFilter(states=(JobState.SUCCEEDED,), wire_name="write-report")
    eventually(lambda: app.monitor.jobs(reported).jobs)
    folder = min((demo.folder / "demo.files").glob("inventory-*"))
    expected = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in files.iterdir()
        if path.is_file()
    )
    assert sorted((folder / "manifest.txt").read_text().splitlines()) == expected
    report = (folder / "report.txt").read_text()
    assert "5 of 5 files read" in report
    assert "1 files are copies of others" in report


def test_a_schedule_ticks(app: Latchwork) -> None:
    tallied = JobFilter(states=(JobState.SUCCEEDED,), wire_name="tally-jobs")
    eventually(lambda: app.monitor.jobs(tallied).jobs)


def test_the_observer_hears_of_what_is_given_up(app: Latchwork, demo: Demo) -> None:
    alarms = demo.folder / "demo.files" / "alarms.txt"
    eventually(lambda: alarms.exists() and "Dead-Lettered: " in alarms.read_text())


def test_a_queue_is_paused_and_one_has_a_limit(app: Latchwork) -> None:
    def gates() -> dict[str, tuple[bool, int | None]]:
        return {
            one.name: (one.paused_at is not None, one.concurrency_limit)
            for one in app.monitor.queues()
        }

    def set_by_the_operator() -> bool:
        found = gates()
        return found.get("newsletters") == (True, None) and found.get("exports") == (False, 2)

    eventually(set_by_the_operator)


def test_the_closing_fails_and_succeeds_when_it_is_retried_with_its_statement(
    app: Latchwork, demo: Demo
) -> None:
    failed = eventually(
        lambda: app.monitor.workflows(status=WorkflowStatus.FAILED, name="month-close").workflows
    )
    eventually((demo.folder / "demo.files" / "statement-1.txt").exists)
    closing = failed[-1].id
    app.operator.retry_workflow(closing, actor="test")
    eventually(lambda: status_of(app, closing) is WorkflowStatus.SUCCEEDED)


def status_of(app: Latchwork, workflow_id: UUID) -> WorkflowStatus | None:
    found = app.monitor.workflow(workflow_id)
    return found.workflow.status if found else None


def test_every_page_answers(app: Latchwork, demo: Demo) -> None:
    job = eventually(lambda: app.monitor.jobs(JobFilter(wire_name="hash-files")).jobs)[0]
    names = ("log", "jobs", "workflows", "failures", "queues", "nodes", "schedules", "observers")
    pages = ["/", *(f"/{name}" for name in names), "/audit"]
    pages += [f"/jobs/{job.id}", f"/jobs/{job.id}/graph"]
    assert {page: demo.status(page) for page in pages} == dict.fromkeys(pages, 200)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_and_leaves_nothing_behind(
    tmp_path: Path, files: Path, number: signal.Signals
) -> None:
    with running_demo(tmp_path, "--database", "demo.db", "--directory", files) as demo:
        pids = _two_nodes(tmp_path / "demo.db")
        assert demo.end(number) == 0
    assert [pid for pid in pids if runs(pid)] == []


def test_its_nodes_end_when_it_is_killed(tmp_path: Path, files: Path) -> None:
    with running_demo(tmp_path, "--database", "demo.db", "--directory", files) as demo:
        pids = _two_nodes(tmp_path / "demo.db")
        demo.end(signal.SIGKILL)
        eventually(lambda: not any(runs(pid) for pid in pids))


def test_it_starts_afresh_unless_told_to_keep_its_file(tmp_path: Path, files: Path) -> None:
    arguments = ("--database", "demo.db", "--directory", files)
    with running_demo(tmp_path, *arguments):
        [first] = _oldest(tmp_path / "demo.db")
    with running_demo(tmp_path, *arguments, "--keep"):
        assert _oldest(tmp_path / "demo.db") == [first]
    with running_demo(tmp_path, *arguments):
        assert _oldest(tmp_path / "demo.db") != [first]


def test_a_database_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_text("precious")
    assert "was not made by the demo" in _refused(tmp_path, "--port", 0, "--database", "mine.db")
    assert (tmp_path / "mine.db").read_text() == "precious"


def test_two_demos_do_not_share_a_database(demo: Demo) -> None:
    said = _refused(demo.folder, "--port", 0, "--database", "demo.db")
    assert "another demo is using demo.db" in said


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"{port} cannot be used" in _refused(tmp_path, "--port", port)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["sqlite:///demo.db", "postgresql://localhost/demo"])
def test_an_address_is_no_file(tmp_path: Path, name: str) -> None:
    assert "not an address" in _refused(tmp_path, "--port", 0, "--database", name)


def _two_nodes(database: Path) -> list[int]:
    """Wait until both nodes are at work; their process ids."""
    app = Latchwork(f"sqlite:///{database}")
    nodes = eventually(lambda: nodes if len(nodes := app.monitor.nodes()) >= 2 else ())
    app.database.dispose()
    return [node.pid for node in nodes]


def _oldest(database: Path) -> list[object]:
    """The id of the first job ever enqueued, once there is one."""
    app = Latchwork(f"sqlite:///{database}")
    jobs = eventually(lambda: app.monitor.jobs(after=0, limit=1).jobs)
    app.database.dispose()
    return [job.id for job in jobs]


def _refused(folder: Path, *arguments: object) -> str:
    """Start a demo that cannot run; the one line that it says."""
    done = subprocess.run(
        [sys.executable, "-m", "latchwork", "demo", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    [line] = done.stderr.splitlines()
    return line
