"""Which tags are in use: the most frequent among the newest jobs, or those that begin so."""

from typing import Any

from sqlalchemy import Connection, Select, case, func, literal_column, select

from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import job_tags
from latchwork.tag_views import TagFacet
from latchwork.values import MAX_TAG_CHARACTERS, checked_name

LOOKED_AT = 5_000
"""How many of the newest tags are looked at: no reading grows with what is stored."""
MAX_TAG_FACETS = 200


def read_tags(connection: Connection, *, prefix: str = "", limit: int) -> tuple[TagFacet, ...]:
    """The tags that begin with ``prefix``, whatever its case, most frequent of late first.

    A pair begins as it is written, ``key=value``. Counts are of all stored jobs, up to a bound.
    Raises InvalidValue for a prefix that no tag can have.
    """
    if prefix:
        checked_name("prefix", prefix, MAX_TAG_CHARACTERS)
    newest = (
        select(job_tags.c.key, job_tags.c.value)
        .order_by(job_tags.c.job_sequence.desc())
        .limit(LOOKED_AT)
        .subquery("newest")
    )
    key, value = newest.c.key, newest.c.value
    written = case((value == "", key), else_=key + "=" + value)
    found = select(key, value).group_by(key, value)
    if prefix:
        found = found.where(written.istartswith(prefix, autoescape=True))
    top = (
        found.order_by(func.count().desc(), key, value)
        .limit(min(limit, MAX_TAG_FACETS))
        .add_columns(func.count().label("recent"))
        .subquery("top")
    )
    first_thousand: Select[Any] = (
        select(literal_column("1").label("one"))
        .where(job_tags.c.key == top.c.key, job_tags.c.value == top.c.value)
        .limit(COUNT_BOUND + 1)
        .correlate(top)
    )
    number = select(func.count()).select_from(first_thousand.subquery("tagged")).scalar_subquery()
    rows = connection.execute(
        select(top.c.key, top.c.value, number).order_by(top.c.recent.desc(), top.c.key, top.c.value)
    )
    return tuple(
        TagFacet(key if value == "" else (key, value), bounded(count)) for key, value, count in rows
    )
