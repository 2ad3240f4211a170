"""The console's pages at a million jobs: server time of every page, 95th percentile."""

import statistics
import tempfile
import time
from pathlib import Path

from starlette.testclient import TestClient

from benchmarks.seeding import analyse, seed
from latchwork.application import Latchwork
from latchwork.views import JobFilter
from latchwork_console.server import create_console

AIM_MILLISECONDS = 50


def paths(app: Latchwork) -> dict[str, str]:
    """A name and an address for every page and its usual filters."""
    newest = app.monitor.jobs(JobFilter()).jobs[0].id
    older = app.monitor.jobs(JobFilter(), limit=200).jobs[-1].sequence
    return {
        "overview": "/",
        "transition log": "/log",
        "log, one queue": "/log?queue=queue-3",
        "log, failing": "/log?failing=1",
        "jobs": "/jobs",
        "jobs, older": f"/jobs?before={older}",
        "jobs, dead-lettered": "/jobs?state=dead_lettered",
        "jobs, quarantined": "/jobs?state=quarantined",
        "jobs, one queue": "/jobs?queue=queue-3",
        "jobs, one wire name": "/jobs?wire_name=job-7",
        "jobs, state and queue": "/jobs?state=cancelled&queue=queue-3",
        "jobs, nothing matches": "/jobs?state=leased&queue=queue-3&wire_name=job-4",
        "job": f"/jobs/{newest}",
        "graph": f"/jobs/{newest}/graph",
        "queues": "/queues",
        "nodes": "/nodes",
        "workflows": "/workflows",
        "failures": "/failures",
        "operations": "/operations",
        "schedules": "/schedules",
        "observers": "/observers",
        "audit": "/audit",
    }


def measure(database_url: str, jobs: int, requests: int) -> list[dict[str, object]]:
    """Seed ``database_url`` (empty) and time ``requests`` requests of every page."""
    app = Latchwork(database_url)
    start = time.perf_counter()
    seed(app, jobs)
    analyse(app)
    print(f"seeded {jobs:,} jobs in {time.perf_counter() - start:.0f} s", flush=True)
    rows: list[dict[str, object]] = []
    with TestClient(create_console(app), base_url="http://127.0.0.1:8321") as client:
        for name, path in paths(app).items():
            taken = []
            for _ in range(requests + 1):
                before = time.perf_counter()
                answer = client.get(path)
                taken.append((time.perf_counter() - before) * 1000)
                assert answer.status_code == 200, (path, answer.status_code)
            warm = sorted(taken[1:])
            rows.append(
                {
                    "page": name,
                    "p50_ms": round(statistics.median(warm), 1),
                    "p95_ms": round(warm[int(len(warm) * 0.95) - 1], 1),
                    "first_ms": round(taken[0], 1),
                    "kilobytes": round(len(answer.content) / 1024, 1),
                }
            )
            print(rows[-1], flush=True)
    app.database.dispose()
    return rows


def main(database_url: str | None, jobs: int, requests: int) -> None:
    """Print a table; SQLite in a folder of its own unless a database is named."""
    with tempfile.TemporaryDirectory() as folder:
        url = database_url or f"sqlite:///{Path(folder) / 'pages.db'}"
        rows = measure(url, jobs, requests)
    print(f"\n| page | p50 ms | p95 ms | first ms | kB |  ({jobs:,} jobs)")
    print("|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
