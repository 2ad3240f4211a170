"""Rows an observer is to be called for: taken from the log, started, settled (section 7).

Each delivery keeps its own copy of the row. The deliveries of one job come due in the order of
their ordinals: when one is put off, so are the later ones behind it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import (
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    select,
    true,
    update,
)

from latchwork.decisions.observers import called_together, worn_out
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import (
    BIG,
    Batch,
    BatchWrite,
    array,
    greatest,
    in_array,
    insert_ignoring,
)
from latchwork.store.observer_leases import holds_lease
from latchwork.store.schema import transitions
from latchwork.store.service_tables import deliveries, observers
from latchwork.views import TransitionView

WORN_OUT = "its calls began and never ended: each time its process did"

_COPY: TypeAdapter[TransitionView] = TypeAdapter(TransitionView)


class Delivery(NamedTuple):
    """A delivery that was started: its row of the log, and how often it was tried before."""

    id: int
    job_sequence: int
    ordinal: int
    starts: int
    failures: int
    transition: str

    @property
    def row(self) -> TransitionView:
        """The copy of the log row."""
        return decode_copy(self.transition)


class Started(NamedTuple):
    """What a dispatcher may call now; ``more`` says that further deliveries are due."""

    deliveries: tuple[Delivery, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed; without ``next_try_at`` the delivery is dead."""

    delivery: Delivery
    error: str
    next_try_at: datetime | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of started deliveries; those not called count as never started."""

    delivered: tuple[Delivery, ...] = ()
    failed: tuple[Failure, ...] = ()
    not_called: tuple[Delivery, ...] = ()


def decode_copy(text: str) -> TransitionView:
    """The log row that a delivery keeps."""
    return _COPY.validate_json(text)


def add(
    connection: Connection, observer: str, rows: Sequence[TransitionView], *, now: datetime
) -> None:
    """Keep ``rows`` for an observer, due at once but for what waits behind a row of its job."""
    if not rows:
        return
    batch, statement = _add_statement(connection.dialect.name)
    copies = [_COPY.dump_json(row).decode() for row in rows]
    values: list[list[Any]] = [[row.position for row in rows], copies]
    parameters = {"of": observer, "now": now, **batch.parameters(values)}
    connection.execute(statement, parameters)


@cache
def _add_statement(dialect: str) -> tuple[Batch, Any]:
    batch = Batch(dialect, "taken", {"position": BIG, "transition": Text()})
    row = batch.rows.c
    of, now = bindparam("of", type_=Text()), bindparam("now", type_=UtcTime())
    ahead = deliveries.alias("ahead")
    # Those of a job come due in order, so its last one waits the longest. Asked for the greatest
    # time, PostgreSQL would walk all deliveries of the observer instead.
    waits_until = (
        select(ahead.c.next_try_at)
        .where(
            ahead.c.observer == of,
            ahead.c.job_sequence == transitions.c.job_sequence,
            ahead.c.dead_at.is_(None),
        )
        .order_by(ahead.c.ordinal.desc())
        .limit(1)
        .scalar_subquery()
    )
    values = {
        "observer": of,
        "position": row.position,
        "job_sequence": transitions.c.job_sequence,
        "ordinal": transitions.c.ordinal,
        "transition": row.transition,
        "taken_at": now,
        "next_try_at": greatest(dialect, now, func.coalesce(waits_until, now)),
    }
    source = (
        select(*values.values())
        .join_from(batch.rows, transitions, transitions.c.position == row.position)
        .where(true())
        .order_by(row.position)
    )
    statement = insert_ignoring(dialect, deliveries).from_select(
        list(values), source, include_defaults=False
    )
    # A place with very many gaps is stored as one before them, and rows come again.
    return batch, statement.on_conflict_do_nothing()


def any_due(connection: Connection, observer: str, *, now: datetime) -> bool:
    """Whether a delivery is due."""
    return connection.execute(_due(observer, now).limit(1)).first() is not None


def start(
    connection: Connection, observer: str, owner: str, *, limit: int, now: datetime
) -> Started | None:
    """Count a start of the deliveries that may be called now, oldest first.

    A delivery whose starts never ended is dead. None, and nothing written, if ``owner`` has lost
    the observer's lease.
    """
    if not holds_lease(connection, observer, owner, now=now):
        return None
    due = [Delivery(*row) for row in connection.execute(_due(observer, now).limit(limit))]
    worn = [one.id for one in due if worn_out(one)]
    if worn:
        connection.execute(
            update(deliveries).where(deliveries.c.id.in_(worn)).values(dead_at=now, error=WORN_OUT)
        )
    called = called_together([one for one in due if not worn_out(one)])
    if called:
        found = in_array(connection.dialect.name, deliveries.c.id, "ids", BIG)
        statement = update(deliveries).where(found).values(starts=deliveries.c.starts + 1)
        connection.execute(statement, {"ids": array(connection, [one.id for one in called], BIG)})
    return Started(tuple(called), len(called) < len(due) or len(due) == limit)


def settle(
    connection: Connection, observer: str, owner: str, settlement: Settlement, *, now: datetime
) -> bool:
    """Write what became of started deliveries. Repeated after a lost answer, it changes nothing.

    False, and nothing written, if ``owner`` has lost the observer's lease.
    """
    if not holds_lease(connection, observer, owner, now=now):
        return False
    dialect = connection.dialect.name
    if settlement.delivered:
        found = in_array(dialect, deliveries.c.id, "ids", BIG)
        ids = array(connection, [one.id for one in settlement.delivered], BIG)
        gone = connection.execute(delete(deliveries).where(found), {"ids": ids}).rowcount
        _note(connection, observer, delivered=observers.c.delivered + gone, last_delivered_at=now)
    if settlement.failed:
        _settle_failures(connection, observer, settlement.failed, now)
    if settlement.not_called:
        values = [[getattr(one, name) for one in settlement.not_called] for name in _UNCOUNTED]
        _uncount_statement(dialect).execute(connection, values)
    return True


def _settle_failures(
    connection: Connection, observer: str, failures: Sequence[Failure], now: datetime
) -> None:
    dialect = connection.dialect.name
    rows = [
        (
            one.delivery.id,
            one.delivery.failures + 1,
            one.error,
            one.next_try_at or now,
            now if one.next_try_at is None else None,
        )
        for one in failures
    ]
    _fail_statement(dialect).execute(connection, _columns(rows))
    put_off = [
        (observer, one.delivery.job_sequence, one.delivery.ordinal, one.next_try_at)
        for one in failures
        if one.next_try_at is not None
    ]
    if put_off:
        _put_off_statement(dialect).execute(connection, _columns(put_off))
    _note(connection, observer, last_error=failures[-1].error, last_error_at=now)


def _note(connection: Connection, observer: str, **values: Any) -> None:
    connection.execute(update(observers).where(observers.c.name == observer).values(values))


def _columns(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def _due(observer: str, now: datetime) -> Any:
    columns = [deliveries.c[name] for name in Delivery._fields]
    return (
        select(*columns)
        .where(
            deliveries.c.observer == observer,
            deliveries.c.dead_at.is_(None),
            deliveries.c.next_try_at <= now,
        )
        .order_by(deliveries.c.next_try_at, deliveries.c.id)
    )


_UNCOUNTED = ("id", "starts")


@cache
def _uncount_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        return update(deliveries).where(deliveries.c.id == row.id).values(starts=row.starts)

    return BatchWrite(dialect, {"id": BIG, "starts": Integer()}, build)


@cache
def _fail_statement(dialect: str) -> BatchWrite:
    columns: dict[str, Any] = {
        "id": BIG, "failures": Integer(), "error": Text(),
        "next_try_at": UtcTime(), "dead_at": UtcTime(),
    }  # fmt: skip

    def build(row: Any) -> Any:
        values = {name: getattr(row, name) for name in columns if name != "id"}
        return update(deliveries).where(deliveries.c.id == row.id).values(values)

    return BatchWrite(dialect, columns, build)


@cache
def _put_off_statement(dialect: str) -> BatchWrite:
    columns: dict[str, Any] = {
        "observer": Text(),
        "job_sequence": BIG,
        "ordinal": Integer(),
        "until": UtcTime(),
    }

    def build(row: Any) -> Any:
        return (
            update(deliveries)
            .where(
                deliveries.c.observer == row.observer,
                deliveries.c.job_sequence == row.job_sequence,
                deliveries.c.ordinal > row.ordinal,
                deliveries.c.dead_at.is_(None),
            )
            .values(next_try_at=greatest(dialect, deliveries.c.next_try_at, row.until))
        )

    return BatchWrite(dialect, columns, build)
