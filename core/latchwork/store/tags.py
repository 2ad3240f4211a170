"""Tags: the whole set on the job's row, and one row per tag to find jobs by."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Text, update

from latchwork.store.dialects import BIG, BatchWrite, insert_ignoring
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
        connection.execute(
            insert_ignoring(connection.dialect.name, job_tags).on_conflict_do_nothing(), rows
        )


@cache
def _replace_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        return update(jobs).where(jobs.c.sequence == row.sequence).values(tags=row.tags)

    return BatchWrite(dialect, {"sequence": BIG, "tags": Text()}, build)


def replace_tags(connection: Connection, tags: Mapping[int, tuple[Tag, ...]]) -> None:
    """Store the whole tag sets of jobs whose handlers added some."""
    if not tags:
        return
    texts = [encode_tags(of_job) for of_job in tags.values()]
    _replace_statement(connection.dialect.name).execute(connection, [list(tags), texts])
    index_tags(connection, tags)
