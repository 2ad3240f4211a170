"""What Alembic runs: the versions, on the connection and in the transaction it was handed."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from latchwork.store.column_types import BigId, Word
from latchwork.store.migrate import VERSION_TABLE
from latchwork.store.service_tables import metadata


def render_item(kind: str, item: Any, _: Any) -> str | Literal[False]:
    """Write our own column types by their names; a word is plain text to a database."""
    if kind == "type" and isinstance(item, Word):
        return "sa.Text()"
    if kind == "type" and item is BigId:
        return "column_types.BigId"
    return False


connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_item=render_item,
    user_module_prefix="column_types.",
)
with context.begin_transaction():
    context.run_migrations()
