"""The names in use: a queue and a wire name each get a row with their first job."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, Text, literal, select, union_all

from latchwork.store.dialects import array, in_array, insert_ignoring, try_lock
from latchwork.store.schema import queues, wire_names

TEXT = Text()


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


def introduce(connection: Connection, used: Mapping[Table, Iterable[str]], now: datetime) -> None:
    """Give every name in ``used`` (queues, wire names) its row.

    A name that another transaction introduces just now is left to it: an enqueue never waits for
    somebody's open transaction. Should that one roll back, the next job of the name does it.
    """
    wanted = {table: set(names) for table, names in used.items()}
    parameters = {table.name: array(connection, wanted[table], TEXT) for table in wanted}
    for table_name, name in connection.execute(
        _known_statement(connection.dialect.name), parameters
    ):
        wanted[queues if table_name == queues.name else wire_names].discard(name)
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
