"""The names in use: a queue and a wire name each get a row with their first job."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Table, Text, literal, select, union_all

from latchwork.store.dialects import array, in_array, insert_ignoring, try_lock
from latchwork.store.schema import queues, wire_names

TEXT = Text()
KNOWN_NAMES = 1_000

Used = Mapping[Table, Collection[str]]
"""Names of queues and of job types, by their tables."""

_known: WeakKeyDictionary[Engine, set[tuple[str, str]]] = WeakKeyDictionary()
"""Names that this process has found stored: they are never taken away, so it need not look again.
One found in a transaction that rolls back is introduced by the next fold of the counters."""


@cache
def _known_statement(dialect: str) -> Any:
    return union_all(
        *(
            select(literal(table.name), table.c.name).where(
                in_array(dialect, table.c.name, table.name, TEXT)
            )
            for table in (queues, wire_names)
        )
    )


def unknown(connection: Connection, used: Used) -> Used:
    """The names in ``used`` that this process has not found stored yet."""
    known = _known.get(connection.engine, ())
    return {
        table: {name for name in names if (table.name, name) not in known}
        for table, names in used.items()
    }


def introduce(connection: Connection, used: Used, now: datetime) -> None:
    """Give every name in ``used`` (queues, wire names) its row.

    A name that another transaction introduces just now is left to it: an enqueue never waits for
    somebody's open transaction. Should that one roll back, the next fold of the counters does it.
    """
    wanted = {table: set(names) for table, names in used.items()}
    if not any(wanted.values()):
        return
    known = _known.setdefault(connection.engine, set())
    parameters = {table.name: array(connection, wanted[table], TEXT) for table in wanted}
    for table_name, name in connection.execute(
        _known_statement(connection.dialect.name), parameters
    ):
        wanted[queues if table_name == queues.name else wire_names].discard(name)
        if len(known) < KNOWN_NAMES:
            known.add((table_name, name))
    for table in (queues, wire_names):
        rows = [
            {"name": name, "created_at": now}
            for name in sorted(wanted[table])
            if try_lock(connection, f"{table.name} {name}")
        ]
        if rows:
            connection.execute(
                insert_ignoring(connection.dialect.name, table).on_conflict_do_nothing(), rows
            )
