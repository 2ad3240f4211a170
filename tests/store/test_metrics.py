"""What a metrics endpoint tells: exact, bounded in number, and without counting jobs."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from latchwork import metrics
from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from latchwork.errors import MissingExtra
from latchwork.maintenance.counter_folder import CounterFolder
from latchwork.metrics import metrics_text, serving_metrics
from latchwork.store import metrics_queries
from tests.store.builders import Store
from tests.store.test_query_plans import faults, sent_by

S = JobState
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(app: Latchwork) -> Samples:
    """Every sample of a scrape, by name and labels."""
    text = metrics_text(app).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    """One sample."""
    return found.get((f"latchwork_{name}", frozenset(labels.items())))


def test_figures_are_those_of_the_database(app: Latchwork) -> None:
    store = Store(app.database, now=app.database.now())
    for _ in range(2):
        store.end(store.enqueue(queue="q", wire_name="pack"))
    store.enqueue(queue="q", wire_name="pack")
    for fold in (False, True):
        if fold:
            CounterFolder(app.database).run_once()
        found = samples(app)
        assert value(found, "jobs", queue="q", state="succeeded") == 2
        assert value(found, "jobs", queue="q", state="scheduled") == 1
        assert value(found, "jobs", queue="q", state="dead_lettered") == 0
        births = {"wire_name": "pack", "from_state": "none", "to_state": "scheduled"}
        assert value(found, "transitions_total", **births) == 3
        assert value(found, "attempt_duration_seconds_count", wire_name="pack") == 2
        assert value(found, "attempt_duration_seconds_bucket", wire_name="pack", le="+Inf") == 2
        assert value(found, "lapsed_leases") == 0


def test_totals_never_fall_however_long_ago_it_was(app: Latchwork) -> None:
    store = Store(app.database, now=app.database.now())
    store.end(store.enqueue(wire_name="pack"))
    CounterFolder(app.database).run_once()
    store.wait(20 * 24 * 3_600)
    store.enqueue(wire_name="pack")
    CounterFolder(app.database).run_once()
    births = {"wire_name": "pack", "from_state": "none", "to_state": "scheduled"}
    assert value(samples(app), "transitions_total", **births) == 2


def test_durations_fall_into_the_ledgers_buckets(app: Latchwork) -> None:
    store = Store(app.database, now=app.database.now())
    job_id = store.enqueue(wire_name="pack")
    hold = store.lease(job_id)
    store.wait(3)
    store.finish(hold)
    found = samples(app)

    def up_to(bound: str) -> float | None:
        return value(found, "attempt_duration_seconds_bucket", wire_name="pack", le=bound)

    assert (up_to("1.024"), up_to("4.096"), up_to("4194.304")) == (0, 1, 1)
    assert value(found, "attempt_duration_seconds_sum", wire_name="pack") == pytest.approx(3)


def test_names_beyond_the_first_share_one_series(
    app: Latchwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_queries, "MAX_NAMES", 2)
    store = Store(app.database, now=app.database.now())
    for letter in "abcd":
        store.enqueue(wire_name=letter, queue=letter)
        store.wait(1)
    found = samples(app)
    assert value(found, "jobs", queue="a", state="scheduled") == 1
    assert value(found, "jobs", queue="(other)", state="scheduled") == 2
    assert value(found, "jobs", queue="d", state="scheduled") is None
    births = {"wire_name": "(other)", "from_state": "none", "to_state": "scheduled"}
    assert value(found, "transitions_total", **births) == 2


def test_hostile_names_do_not_break_a_scrape(app: Latchwork) -> None:
    store = Store(app.database, now=app.database.now())
    name = 'a"} 1\\ # {x'
    store.enqueue(wire_name=name, queue=name)
    assert value(samples(app), "jobs", queue=name, state="scheduled") == 1


def test_a_scrape_walks_no_table_of_jobs(app: Latchwork) -> None:
    store = Store(app.database, now=app.database.now())
    for state in S:
        store.in_state(state)
    for statement, values in sent_by(app.database, lambda: metrics_text(app)):
        with app.database.engine.connect() as connection:
            if not app.database.is_sqlite:
                connection.exec_driver_sql("SET enable_seqscan = off")
            assert not faults(connection, statement, values), statement


def test_a_worker_answers_scrapes_on_a_port_of_its_own(sqlite_url: str) -> None:
    app = Latchwork(sqlite_url)
    app.database.prepare()
    app.database.retries["deadlock"] = 3
    with (
        serving_metrics(app, 0) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        text = answer.read().decode()
    assert 'latchwork_store_retries_total{cause="deadlock"} 3.0' in text
    app.database.dispose()


def test_without_the_extra_it_is_said_what_to_install(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    app = Latchwork(sqlite_url)
    with pytest.raises(MissingExtra, match=r"latchwork\[metrics\]"):
        metrics.metrics_text(app)
    app.database.dispose()
