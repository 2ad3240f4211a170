"""Latchwork on PostgreSQL, for the shared benchmark harness: see ../README.md."""

import common
from adapters._latchwork_common import Bench

bench = Bench(
    database_url=common.PG_DSN,
    reset=common.pg_reset,
    slots=common.tune(1000),
)
META = {
    "storage": "postgres",
    "bulk_batch": 1000,
    "single_n": 2000,
    "bulk_n": 60000,
    "drain_n": 80000,
    "sleep_n": 20000,
    "settings": bench.settings + "; psycopg 3; LISTEN/NOTIFY with polling every 1 s",
}
reset, open_client = bench.reset, bench.open_client
enqueue_one, enqueue_bulk = bench.enqueue_one, bench.enqueue_bulk
remaining, run_worker = bench.remaining, bench.run_worker
