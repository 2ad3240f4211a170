"""``latchwork migrate`` and ``latchwork version``."""

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from latchwork.cli.applications import opened
from latchwork.cli.options import DatabaseUrl
from latchwork.store.database import translated
from latchwork.store.engines import reading
from latchwork.store.migrate import check_version

command = typer.Typer()


@command.command()
def migrate(
    database: DatabaseUrl,
    *,
    check: Annotated[bool, typer.Option("--check", help="Change nothing, only say.")] = False,
) -> None:
    """Bring the database's schema to this version; jobs may go on running."""
    with opened(database) as app:
        if check:
            with translated(app.database), reading(app.database.engine) as connection:
                check_version(connection)
        else:
            app.database.prepare(upgrade=True)
    typer.echo("the schema is up to date")


@command.command()
def version() -> None:
    """Print the version of Latchwork."""
    typer.echo(installed_version("latchwork"))
