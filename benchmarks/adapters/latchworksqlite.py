"""Latchwork on SQLite, for the shared benchmark harness: see ../README.md."""

import common
from adapters._latchwork_common import Bench

bench = Bench(
    database_url=f"sqlite:///{common.SQLITE_PATH}",
    reset=common.sqlite_reset,
    slots=common.tune(1000),
)
META = {
    "storage": "sqlite",
    "bulk_batch": 1000,
    "single_n": 2000,
    "bulk_n": 40000,
    "drain_n": 60000,
    "sleep_n": 15000,
    "settings": bench.settings + "; WAL, synchronous=FULL",
}
reset, open_client = bench.reset, bench.open_client
enqueue_one, enqueue_bulk = bench.enqueue_one, bench.enqueue_bulk
remaining, run_worker = bench.remaining, bench.run_worker
