"""Column types that mean the same on SQLite and PostgreSQL."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, Integer, Text, Uuid
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

E = TypeVar("E", bound=StrEnum)

BigId = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit integer that is SQLite's rowid when it is the primary key."""


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time to the microsecond: timestamptz, or whole microseconds on SQLite.

    Integers compare exactly and quickly, where text would depend on its number of digits.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Pick the stored type."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any]:
        """Store an aware time; a naive one is refused."""
        return _to_microseconds if dialect.name == "sqlite" else _aware

    def result_processor(
        self, dialect: Dialect, coltype: Any
    ) -> Callable[[int | None], datetime | None] | None:
        """Read it back in UTC; PostgreSQL's sessions are set to UTC and need no conversion."""
        del coltype
        return from_microseconds if dialect.name == "sqlite" else None

    @property
    def python_type(self) -> type[datetime]:
        """What a program sees."""
        return datetime


def _to_microseconds(value: datetime | None) -> int | None:
    # Subtracting refuses a naive time by itself.
    return None if value is None else (value - EPOCH) // _MICROSECOND


def _aware(value: datetime | None) -> datetime | None:
    if value is not None and value.tzinfo is None:
        raise TypeError("a stored time must carry a zone")
    return value


def from_microseconds(value: int | None) -> datetime | None:
    """A time as SQLite stores it."""
    return None if value is None else EPOCH + timedelta(microseconds=value)


class Word(TypeDecorator[E], Generic[E]):
    """A StrEnum stored as its value."""

    impl = Text
    cache_ok = True

    def __init__(self, words: type[E]) -> None:
        super().__init__()
        self.words = words
        self._members: dict[str | None, E | None] = {None: None}
        self._members |= {member.value: member for member in words}

    @property
    def python_type(self) -> type[E]:
        """What a program sees."""
        return self.words

    def bind_processor(self, dialect: Dialect) -> Callable[[E | None], str | None]:
        """Store the value."""
        del dialect
        return _spelled

    def result_processor(self, dialect: Dialect, coltype: Any) -> Callable[[str | None], E | None]:
        """Read the member back."""
        del dialect, coltype
        return self._members.__getitem__


def _spelled(value: StrEnum | None) -> str | None:
    return None if value is None else str(value)


class IdNumber(TypeDecorator[int]):
    """A UUID seen as the number it is, so that a listing can be paged by it."""

    impl = Uuid
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> UUID | None:
        """Store the id."""
        del dialect
        return None if value is None else UUID(int=value)

    def process_result_value(self, value: UUID | None, dialect: Dialect) -> int | None:
        """Read the number back."""
        del dialect
        return None if value is None else value.int
