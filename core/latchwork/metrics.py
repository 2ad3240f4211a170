"""Figures for Prometheus, from the counter ledger: asking for them counts no jobs.

They describe the database, so one process of many is enough to ask; only the retries are its own.
Needs the extra ``metrics``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from latchwork.errors import MissingExtra
from latchwork.metrics_views import AttemptTimes, Figures

if TYPE_CHECKING:
    from latchwork.application import Latchwork

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKET_EXPONENTS = range(0, 23, 2)
"""Powers of two, in milliseconds, that bound the buckets of attempts: 1 ms to 70 minutes."""

NONE = "none"
"""Where a birth comes from and a purge leads to, as a label."""


def metrics_text(app: "Latchwork") -> bytes:
    """The figures of an application's database, in Prometheus' text format.

    Raises:
        MissingExtra: prometheus-client is not installed.
        StoreError: the database does not answer; a scrape fails rather than telling zeros.
    """
    client = _prometheus()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Collected(list(_families(app, client))))
    text: bytes = client.generate_latest(registry)
    return text


@contextmanager
def serving_metrics(app: "Latchwork", port: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Answer scrapes while the body runs, on a port of their own; the port is what is yielded.

    Raises:
        MissingExtra: prometheus-client is not installed.
        OSError: the port is taken.
    """
    client = _prometheus()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Live(app, client))
    server, thread = client.start_http_server(port, addr=host, registry=registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Collected:
    """Figures that were read already, so that a fault is raised where it can be answered."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        """What a registry asks for."""
        return self._families


class _Live:
    """Figures that are read at every scrape."""

    def __init__(self, app: "Latchwork", client: Any) -> None:
        self._app, self._client = app, client

    def describe(self) -> list[Any]:
        """Nothing: else the registry would read the database when it is set up."""
        return []

    def collect(self) -> Iterator[Any]:
        """What a registry asks for."""
        return _families(self._app, self._client)


def _families(app: "Latchwork", client: Any) -> Iterator[Any]:
    core = client.core
    figures = app.monitor.figures()
    yield _jobs(core, figures)
    yield _transitions(core, figures)
    yield _attempts(core, figures)
    oldest = core.GaugeMetricFamily(
        "latchwork_oldest_due_seconds", "How long the oldest due job has waited.", labels=["queue"]
    )
    for queue in figures.jobs:
        at = figures.oldest_due_at.get(queue)
        waited = 0.0 if at is None else (figures.as_of - at).total_seconds()
        oldest.add_metric([queue], max(0.0, waited))
    yield oldest
    for name, words, value in (
        ("lapsed_leases", "Leases that ran out and were not taken back.", figures.lapsed_leases),
        ("nodes", "Live nodes.", figures.live_nodes),
        ("slots", "Jobs that the live nodes can run at once.", figures.live_slots),
    ):
        yield core.GaugeMetricFamily(f"latchwork_{name}", words, value=value)
    lag = core.GaugeMetricFamily(
        "latchwork_observer_lag_seconds",
        "For how long the oldest row that an observer has not passed has waited.",
        labels=["observer"],
    )
    for observer in app.monitor.observers():
        lag.add_metric([observer.name], observer.behind(figures.as_of).total_seconds())
    yield lag
    retries = core.CounterMetricFamily(
        "latchwork_store_retries",
        "Transactions of this process that were run again, by cause.",
        labels=["cause"],
    )
    for cause, count in sorted(app.database.retries.items()):
        retries.add_metric([cause], count)
    yield retries


def _jobs(core: Any, figures: Figures) -> Any:
    family = core.GaugeMetricFamily(
        "latchwork_jobs", "Stored jobs by queue and state.", labels=["queue", "state"]
    )
    for queue, states in figures.jobs.items():
        for state, count in states.items():
            family.add_metric([queue, state.value], count)
    return family


def _transitions(core: Any, figures: Figures) -> Any:
    family = core.CounterMetricFamily(
        "latchwork_transitions",
        "Transitions since the schema has counted them.",
        labels=["wire_name", "from_state", "to_state"],
    )
    for one in figures.passages:
        source = NONE if one.from_state is None else one.from_state.value
        target = NONE if one.to_state is None else one.to_state.value
        family.add_metric([one.wire_name, source, target], one.count)
    return family


def _attempts(core: Any, figures: Figures) -> Any:
    family = core.HistogramMetricFamily(
        "latchwork_attempt_duration_seconds", "How long attempts ran.", labels=["wire_name"]
    )
    for one in figures.attempts:
        family.add_metric([one.wire_name], _buckets(one), one.seconds)
    return family


def _buckets(times: AttemptTimes) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus wants them."""
    highest = BUCKET_EXPONENTS[-1]
    up_to = list(accumulate(times.buckets.get(n, 0) for n in range(highest + 1)))
    bounds: list[tuple[str, float]] = [
        (str(2**n / 1000), float(up_to[n])) for n in BUCKET_EXPONENTS
    ]
    return [*bounds, ("+Inf", float(times.count))]


def _prometheus() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError as error:
        raise MissingExtra("metrics", "prometheus-client") from error
    return prometheus_client
