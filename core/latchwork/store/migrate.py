"""Bring a database's schema to this version, once, however many processes try at the same time."""

import threading
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from latchwork.errors import SchemaOutdated
from latchwork.store.dialects import lock_name
from latchwork.store.engines import reading, writing

VERSION_TABLE = "latchwork_schema_version"

_UPGRADE_LOCK = "schema upgrade"

# Alembic's operations go through module globals: one upgrade at a time in a process.
_upgrading = threading.Lock()


@cache
def known_versions() -> tuple[str, ...]:
    """Every version of the schema this code knows, newest first."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return tuple(version.revision for version in scripts.walk_revisions())


def current_version(connection: Connection) -> str | None:
    """The version of the database's schema; None where there is none yet."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def check_version(connection: Connection) -> None:
    """Refuse a schema that is not this version's: ``SchemaOutdated`` says which way it differs."""
    version = current_version(connection)
    if version == known_versions()[0]:
        return
    if version is None:
        raise SchemaOutdated("the database has no Latchwork schema yet: run `latchwork migrate`")
    _refuse_newer(version)
    raise SchemaOutdated(
        f"the database's schema is version {version}, this Latchwork needs "
        f"{known_versions()[0]}: run `latchwork migrate`"
    )


def upgrade_schema(connection: Connection) -> None:
    """Bring the schema to this version; nothing happens if it is there.

    ``connection`` is in a writing transaction: on SQLite that alone keeps other upgrades out, on
    PostgreSQL a lock does, held to the end of the transaction. Raises ``SchemaOutdated`` if the
    schema belongs to a newer Latchwork.
    """
    with _upgrading:
        lock_name(connection, _UPGRADE_LOCK)
        version = current_version(connection)
        if version == known_versions()[0]:
            return
        if version is not None:
            _refuse_newer(version)
        command.upgrade(alembic_config(connection), "head")


def ensure_schema(engine: Engine, *, upgrade: bool) -> None:
    """Make the schema of an empty database; bring an older one up to date if ``upgrade``.

    Raises ``SchemaOutdated`` for an older schema otherwise, and for a newer one.
    """
    with reading(engine) as connection:
        version = current_version(connection)
        if version is not None and not upgrade:
            check_version(connection)
    if version != known_versions()[0]:
        with writing(engine) as connection:
            upgrade_schema(connection)


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, without a file: the versions lie in the package."""
    config = Config()
    config.set_main_option("script_location", "latchwork.store:migrations")
    config.attributes["connection"] = connection
    return config


def _refuse_newer(version: str) -> None:
    if version not in known_versions():
        raise SchemaOutdated(
            f"the database's schema is version {version}, newer than this Latchwork: upgrade it"
        )
