"""Random operations on random graphs by eight threads: no deadlock, and the audit finds nothing."""

from concurrent.futures import ThreadPoolExecutor

from latchwork.decisions.states import JobState
from tests.store.builders import Store
from tests.store.random_load import Load

THREADS = 8
OPERATIONS_EACH = {"postgresql": 250, "sqlite": 60}


def test_a_random_load_ends_without_a_deadlock_and_with_a_clean_audit(store: Store) -> None:
    load = Load(store)
    each = OPERATIONS_EACH[store.database.engine.dialect.name]
    with ThreadPoolExecutor(THREADS) as threads:
        for finished in [threads.submit(load.run, seed, each) for seed in range(THREADS)]:
            finished.result()
    assert all(store.count(state) for state in (JobState.SUCCEEDED, JobState.CANCELLED))
    assert store.database.retries["deadlock"] == 0
