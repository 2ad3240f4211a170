"""A large database made by bulk statements: jobs in all states, log rows, edges, counters."""

from sqlalchemy import Connection, text

from latchwork.application import Latchwork

QUEUES = 8
WIRE_NAMES = 40
# Of every 1,000 jobs: where each state begins. The rest is Succeeded.
SHARES = {"scheduled": 4, "awaiting_parent": 2, "cancelled": 20, "dead_lettered": 10}
SHARES["quarantined"] = 1

_NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :jobs)",
    "postgresql": "WITH n(i) AS (SELECT generate_series(1, :jobs))",
}
_ID = {
    "sqlite": "printf('0193a1c477e27c3b9f6d%012x', {i})",
    "postgresql": "('0193a1c477e27c3b9f6d' || lpad(to_hex({i}), 12, '0'))::uuid",
}
_AGO = {
    "sqlite": "(CAST(unixepoch() AS INTEGER) - {seconds}) * 1000000",
    "postgresql": "now() - make_interval(secs => {seconds})",
}


def seed(app: Latchwork, jobs: int) -> None:
    """Fill an empty database with ``jobs`` jobs and what belongs to them."""
    app.database.write(_seed, jobs)


def _seed(connection: Connection, count: int) -> None:
    dialect = connection.dialect.name
    numbers, identity = _NUMBERS[dialect], _ID[dialect]
    ago = _AGO[dialect]
    edge, bounds = 0, []
    for state, share in SHARES.items():
        edge += share
        bounds.append(f"WHEN i % 1000 < {edge} THEN '{state}'")
    state = f"CASE {' '.join(bounds)} ELSE 'succeeded' END"
    ended = "state IN ('succeeded', 'cancelled', 'dead_lettered', 'quarantined')"
    since = ago.format(seconds=f"(({count} - i) * 86400.0 / {count})")
    if dialect == "sqlite":
        since = f"CAST({since} AS INTEGER)"
    rows = (
        f"SELECT i, {state} AS state, 'queue-' || (i % {QUEUES}) AS queue, "
        f"'job-' || (i % {WIRE_NAMES}) AS wire_name, {since} AS since FROM n"
    )
    due = f"CASE WHEN state = 'scheduled' THEN {ago.format(seconds='-3600')} ELSE since END"
    cause = "CASE WHEN state IN ('cancelled', 'dead_lettered', 'quarantined') THEN 'seeded' END"
    connection.execute(
        text(
            f"{numbers}, r AS ({rows}) INSERT INTO latchwork_jobs (id, wire_name, queue, payload, "
            "retry_policy, state, state_since, enqueued_at, due_at, attempt, claim_number, "
            "terminal_at, parents_remaining, cause_code, cause_type) "
            f"SELECT {identity.format(i='i')}, wire_name, queue, '{{}}', '[10,2,2,300,0]', state, "
            f"since, since, {due}, 0, 0, CASE WHEN {ended} THEN since END, "
            "CASE WHEN state = 'awaiting_parent' THEN 1 ELSE 0 END, "
            f"{cause}, CASE WHEN state = 'dead_lettered' THEN 'OSError' END FROM r ORDER BY i"
        ),
        {"jobs": count},
    )
    connection.execute(
        text(
            "INSERT INTO latchwork_transitions (job_sequence, ordinal, job_id, at, state, event, "
            "attempt, queue, wire_name) SELECT sequence, 0, id, state_since, state, 'enqueue', 0, "
            "queue, wire_name FROM latchwork_jobs ORDER BY sequence"
        )
    )
    is_open = "(state = 'awaiting_parent')"
    connection.execute(
        text(
            "INSERT INTO latchwork_edges (child_sequence, parent_sequence, is_open) "
            f"SELECT sequence, sequence - 1, {is_open} FROM latchwork_jobs "
            f"WHERE sequence > 1 AND (sequence % 50 = 0 OR {is_open})"
        )
    )
    connection.execute(
        text(
            "INSERT INTO latchwork_counter_totals (queue, state, count) "
            "SELECT queue, state, count(*) FROM latchwork_jobs GROUP BY queue, state"
        )
    )
    for table, column in (("queues", "queue"), ("wire_names", "wire_name")):
        connection.execute(
            text(
                f"INSERT INTO latchwork_{table} (name, created_at) "
                f"SELECT {column}, min(enqueued_at) FROM latchwork_jobs GROUP BY {column}"
            )
        )


def analyse(app: Latchwork) -> None:
    """Let the planner know what was seeded."""
    app.database.write(lambda connection: connection.execute(text("ANALYZE")) and None)
