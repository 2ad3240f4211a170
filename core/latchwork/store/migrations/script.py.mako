"""${message.replace("_", " ").capitalize()}."""

import sqlalchemy as sa
from alembic import op

from latchwork.store import column_types

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Only add: the previous version's nodes keep running on the new schema."""
    ${upgrades if upgrades else "pass"}
