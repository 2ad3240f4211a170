"""Every difference between SQLite and PostgreSQL that statements meet, in one file.

Batches travel as arrays: one parameter per column, ``unnest`` on PostgreSQL and ``json_each`` on
SQLite, so that a statement's text does not depend on the number of rows and is compiled once.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    Select,
    Table,
    Text,
    UnaryExpression,
    bindparam,
    case,
    cast,
    column,
    func,
    null,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.sql import operators
from sqlalchemy.types import TypeEngine

DUE_CHANNEL = "latchwork_due"
"""The channel of PostgreSQL's wake-up hints; the payload is the queue's name."""

BIG = BigInteger()

Values = Sequence[Sequence[Any]]
"""The columns of a batch of rows: one sequence of equal length for each."""

_SQLITE = sqlite.dialect()
_LOCK_SPACE = 0x4C41  # one half of our advisory lock keys, so that they meet nobody else's


def is_sqlite(connection: Connection) -> bool:
    """Whether this is SQLite, where one writer at a time makes row locks needless."""
    return connection.dialect.name == "sqlite"


def commits_by_itself(connection: Connection) -> bool:
    """Whether there is no transaction on ``connection``: each statement is its own."""
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return True
    # SQLite's driver is told to keep out of it: our engine begins every transaction itself.
    if is_sqlite(connection):
        return False
    driver: Any = connection.connection.dbapi_connection
    return connection.dialect.detect_autocommit_setting(driver)


class Batch:
    """Rows as array parameters: a selectable ``rows`` and the ``parameters`` that fill it.

    ``columns`` maps a column's name to its type; build it once per statement and dialect.
    """

    def __init__(self, dialect: str, name: str, columns: Mapping[str, TypeEngine[Any]]) -> None:
        self.name = name
        self.columns = dict(columns)
        self._sqlite = dialect == "sqlite"
        self.rows: FromClause
        if self._sqlite:
            each = func.json_each(bindparam(name, type_=Text)).table_valued("key", "value")
            cells = [
                type_coerce(func.json_extract(each.c.value, f"$[{index}]"), kind).label(key)
                for index, (key, kind) in enumerate(self.columns.items())
            ]
            self.rows = select(*cells).select_from(each).subquery(name)
            self._encoders: list[Callable[[Any], Any] | None] = [
                _sqlite_processor(kind) for kind in self.columns.values()
            ]
        else:
            arrays = [_array_parameter(f"{name}_{key}", kind) for key, kind in columns.items()]
            names = [column(key, kind) for key, kind in columns.items()]
            self.rows = func.unnest(*arrays).table_valued(*names, name=name).render_derived()
            self._encoders = [_postgres_encoder(kind) for kind in columns.values()]

    def parameters(self, values: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The parameters for ``values``: one sequence of equal length per column, in order."""
        if not self._sqlite:
            return {
                f"{self.name}_{key}": _array_literal(cells, encode)
                for key, cells, encode in zip(self.columns, values, self._encoders, strict=True)
            }
        stored = [
            cells if encode is None else [encode(cell) for cell in cells]
            for encode, cells in zip(self._encoders, values, strict=True)
        ]
        return {self.name: json.dumps(list(zip(*stored, strict=True)), separators=(",", ":"))}


class BatchWrite:
    """A statement that writes once per row of a batch.

    ``build`` makes the statement from the row's columns (attributes named like ``columns``). On
    PostgreSQL they are arrays and the statement runs once; SQLite runs it row by row, which is
    faster there than unpacking JSON, in one call to the driver. ``name`` tells the batches of
    statements apart that are written together.
    """

    def __init__(
        self,
        dialect: str,
        columns: Mapping[str, TypeEngine[Any]],
        build: Callable[[Any], Any],
        name: str = "row",
    ) -> None:
        self._sqlite = dialect == "sqlite"
        if self._sqlite:
            self._encoders = [_sqlite_processor(kind) for kind in columns.values()]
            cells = {key: bindparam(f"row_{key}", type_=kind) for key, kind in columns.items()}
            compiled = build(SimpleNamespace(**cells)).compile(dialect=_SQLITE)
            self._text = str(compiled)
            places = {f"row_{key}": place for place, key in enumerate(columns)}
            self._order = [
                (places.get(name), compiled.params[name]) for name in compiled.positiontup
            ]
        else:
            self.batch = Batch(dialect, name, columns)
            self.statement = build(self.batch.rows.c)

    def execute(self, connection: Connection, values: Values) -> int:
        """Write ``values``, one sequence of equal length per column; how many rows were met."""
        if not self._sqlite:
            return write_together(connection, [(self, values)])
        stored = [
            cells if encode is None else _encoded(cells, encode)
            for encode, cells in zip(self._encoders, values, strict=True)
        ]
        arguments = [
            repeat(constant) if place is None else stored[place] for place, constant in self._order
        ]
        # The shortest decides: constants repeat without end.
        rows = list(zip(*arguments))  # noqa: B905
        return connection.exec_driver_sql(self._text, rows).rowcount


def write_together(connection: Connection, writes: Sequence[tuple[BatchWrite, Values]]) -> int:
    """Carry out ``writes``, which touch different rows; how many rows the first one met.

    On PostgreSQL they are one statement and so one round trip.
    """
    if is_sqlite(connection):
        met = [write.execute(connection, values) for write, values in writes]
        return met[0]
    statement, constants = _joined(connection.dialect, *(write for write, _ in writes))
    parameters = dict(constants)
    for write, values in writes:
        parameters |= write.batch.parameters(values)
    return connection.exec_driver_sql(statement, parameters).rowcount


@cache
def _joined(
    dialect: Dialect, first: BatchWrite, *others: BatchWrite
) -> tuple[str, Mapping[str, Any]]:
    """One statement for all, as the driver takes it, and those of its values that never change.

    Compiled here, once: looking the compiled form up again costs as much as the rest of the call.
    """
    ctes = (other.statement.cte(other.batch.name) for other in others)
    compiled = first.statement.add_cte(*ctes).compile(dialect=dialect)
    constants = {}
    for name, bind in compiled.binds.items():
        if bind.value is not None:
            process = bind.type.dialect_impl(dialect).bind_processor(dialect)
            constants[name] = bind.value if process is None else process(bind.value)
    return str(compiled), constants


def _encoded(cells: Sequence[Any], encode: Callable[[Any], Any]) -> list[Any]:
    first = cells[0]
    if all(cell is first for cell in cells):  # most columns of a batch say the same of every row
        return [encode(first)] * len(cells)
    return list(map(encode, cells))


def _sqlite_processor(kind: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    """How SQLite stores a value of ``kind``, so that JSON can carry it."""
    process: Callable[[Any], Any] | None = kind.dialect_impl(_SQLITE).bind_processor(_SQLITE)
    return process


def _array_parameter(name: str, kind: TypeEngine[Any]) -> ColumnElement[Any]:
    """A PostgreSQL array that arrives as its text form: the driver's own arrays cost ten times."""
    return cast(bindparam(name, type_=Text), ARRAY(kind))


def _postgres_encoder(kind: TypeEngine[Any]) -> Callable[[Any], str]:
    """How a value of ``kind`` is spelled inside an array's text form."""
    if kind.python_type in (int, bool, UUID):
        return str
    return _quoted


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _array_literal(values: Sequence[Any], encode: Callable[[Any], Any] | None) -> str:
    if encode is None:
        encode = str
    first = values[0] if values else None
    if all(value is first for value in values):
        spelled = ["NULL" if first is None else encode(first)] * len(values)
    else:
        spelled = ["NULL" if value is None else encode(value) for value in values]
    return "{" + ",".join(spelled) + "}"


def in_array(
    dialect: str, tested: ColumnElement[Any], name: str, kind: TypeEngine[Any]
) -> ColumnElement[bool]:
    """``tested`` is one of the values of the array parameter ``name``."""
    if dialect == "sqlite":
        each = func.json_each(bindparam(name, type_=Text)).table_valued("value")
        return tested.in_(select(type_coerce(each.c.value, kind)))
    return tested == func.any(_array_parameter(name, kind))


def array(connection: Connection, values: Iterable[Any], kind: TypeEngine[Any]) -> Any:
    """The parameter value that fills ``in_array``."""
    if not is_sqlite(connection):
        return _array_literal(list(values), _postgres_encoder(kind))
    process = _sqlite_processor(kind)
    return json.dumps([value if process is None else process(value) for value in values])


def guard(dialect: str, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """``column`` in a guard: SQLite's planner must not begin with an index on it."""
    if dialect != "sqlite":
        return column
    return UnaryExpression(column, operator=operators.custom_op("+"), type_=column.type)


def locking(connection: Connection, statement: Select[Any], table: Table, *, wait: bool) -> Any:
    """``statement`` with row locks on ``table``; without ``wait`` it passes over locked rows.

    SQLite needs none: a writing transaction is alone from its first statement.
    """
    if is_sqlite(connection):
        return statement
    return statement.with_for_update(of=table, skip_locked=not wait)


def locking_referable(connection: Connection, statement: Select[Any], table: Table) -> Any:
    """``statement`` with row locks that do not keep others from rows that refer to these.

    PostgreSQL checks a foreign key again when a transaction updates a row for the second time: a
    plain lock on the row referred to would make that wait, outside the order of locks.
    """
    if is_sqlite(connection):
        return statement
    return statement.with_for_update(of=table, key_share=True)


def locking_shared(connection: Connection, statement: Select[Any], table: Table) -> Any:
    """``statement`` with shared row locks: the rows stay as they are until the transaction ends."""
    if is_sqlite(connection):
        return statement
    return statement.with_for_update(of=table, read=True)


def greatest(dialect: str, *values: ColumnElement[Any]) -> ColumnElement[Any]:
    """The greatest or latest of ``values``."""
    return func.max(*values) if dialect == "sqlite" else func.greatest(*values)


def least(dialect: str, *values: ColumnElement[Any]) -> ColumnElement[Any]:
    """The least or earliest of ``values``."""
    return func.min(*values) if dialect == "sqlite" else func.least(*values)


def insert_ignoring(dialect: str, table: Table) -> Any:
    """An insert into ``table`` that knows ``on_conflict_do_nothing`` and ``_do_update``."""
    return sqlite_insert(table) if dialect == "sqlite" else postgres_insert(table)


def lock_name(connection: Connection, name: str, *, shared: bool = False) -> None:
    """Wait for the lock called ``name`` and keep it until the transaction ends."""
    if is_sqlite(connection):
        return
    take = _LOCK_SHARED if shared else _LOCK
    connection.execute(take, {"space": _LOCK_SPACE, "key": _lock_key(name)})


_LOCK = text("SELECT pg_advisory_xact_lock(:space, :key)")
_LOCK_SHARED = text("SELECT pg_advisory_xact_lock_shared(:space, :key)")


def try_lock(connection: Connection, name: str) -> bool:
    """Take the lock called ``name`` until the transaction ends, or answer False at once."""
    if is_sqlite(connection):
        return True
    taken = connection.scalar(select(func.pg_try_advisory_xact_lock(_LOCK_SPACE, _lock_key(name))))
    return bool(taken)


def _lock_key(name: str) -> int:
    return zlib.crc32(name.encode()) - 2**31


def log_writers(connection: Connection, table: Table) -> frozenset[str] | None:
    """The transactions that may hold positions of ``table`` that nobody sees yet.

    None on SQLite, where one writer at a time makes the order of positions that of commits.
    """
    if is_sqlite(connection):
        return None
    return frozenset(connection.scalars(_LOG_WRITERS, {"table": table.name}))


_LOG_WRITERS = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = CAST(:table AS regclass) AND mode = 'RowExclusiveLock' AND granted"
)


def notify_due(connection: Connection, queues: Iterable[str]) -> None:
    """Hint waiting nodes that ``queues`` may have due work once this transaction commits.

    SQLite's nodes see the commit itself (``PRAGMA data_version``).
    """
    if is_sqlite(connection):
        return
    for queue in sorted(set(queues)):
        connection.execute(_NOTIFY, {"channel": DUE_CHANNEL, "queue": queue})


_NOTIFY = text("SELECT pg_notify(:channel, :queue)")


def due_hint(dialect: str, queue: ColumnElement[str], due: ColumnElement[bool]) -> Any:
    """``notify_due`` as an expression, for the rows that a statement returns."""
    if dialect == "sqlite":
        return null()
    return case((due, func.pg_notify(DUE_CHANNEL, queue)))


def limit_statement_seconds(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL end any later statement of this transaction that takes longer."""
    if not is_sqlite(connection):
        milliseconds = str(int(seconds * 1000))
        connection.execute(select(func.set_config("statement_timeout", milliseconds, True)))  # noqa: FBT003


def limit_lock_seconds(connection: Connection, seconds: float) -> None:
    """Let PostgreSQL give up waiting for a row lock after ``seconds`` in this transaction."""
    if not is_sqlite(connection):
        milliseconds = str(int(seconds * 1000))
        connection.execute(select(func.set_config("lock_timeout", milliseconds, True)))  # noqa: FBT003
