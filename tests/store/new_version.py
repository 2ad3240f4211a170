"""Write the next version of the schema from what store/schema.py has and the versions have not.

Run by ``make migration NAME=what_it_adds``; the result is a draft to read and shorten.
"""

import sys

from alembic import command
from sqlalchemy import create_engine

from latchwork.store import migrate


def write_next_version(name: str) -> None:
    """Compare a database of the newest version with the schema and write the difference."""
    number = f"{len(migrate.known_versions()) + 1:04d}"
    with create_engine("sqlite://").begin() as connection:
        if migrate.known_versions():
            migrate.upgrade_schema(connection)
        config = migrate.alembic_config(connection)
        config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
        command.revision(config, message=name, autogenerate=True, rev_id=number)


if __name__ == "__main__":
    write_next_version(sys.argv[1])
