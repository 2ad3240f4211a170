"""Tags: the whole set on the job's row, and one row per tag to find jobs by."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Text, update

from latchwork.store.dialects import BIG, Batch, insert_ignoring
from latchwork.store.schema import job_tags, jobs
from latchwork.views import Tag


def split_tag(tag: Tag) -> tuple[str, str]:
    """A tag as key and value; a label has no value."""
    return (tag, "") if isinstance(tag, str) else tag


def encode_tags(tags: Iterable[Tag]) -> str:
    """Tags as the job's row keeps them."""
    return json.dumps(list(tags), ensure_ascii=False, separators=(",", ":"))


def decode_tags(text: str) -> tuple[Tag, ...]:
    """Tags back from the job's row."""
    if text == "[]":
        return ()
    return tuple(tag if isinstance(tag, str) else (tag[0], tag[1]) for tag in json.loads(text))


def index_tags(connection: Connection, tags: Mapping[int, Iterable[Tag]]) -> None:
    """Add the rows by which jobs (by enqueue number) are found by their tags."""
    rows = [
        {"job_sequence": sequence, "key": key, "value": value}
        for sequence, of_job in tags.items()
        for key, value in map(split_tag, of_job)
    ]
    if rows:
        connection.execute(insert_ignoring(connection, job_tags).on_conflict_do_nothing(), rows)


@cache
def _replace_statement(dialect: str) -> tuple[Batch, Any]:
    batch = Batch(dialect, "tagged", {"sequence": BIG, "tags": Text()})
    matched = update(jobs).where(jobs.c.sequence == batch.rows.c.sequence)
    return batch, matched.values(tags=batch.rows.c.tags)


def replace_tags(connection: Connection, tags: Mapping[int, tuple[Tag, ...]]) -> None:
    """Store the whole tag sets of jobs whose handlers added some."""
    if not tags:
        return
    batch, statement = _replace_statement(connection.dialect.name)
    texts = [encode_tags(of_job) for of_job in tags.values()]
    connection.execute(statement, batch.parameters([list(tags), texts]))
    index_tags(connection, tags)
