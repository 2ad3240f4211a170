"""``latchwork manifest``: write down what jobs an application has, and check that it still has."""

from pathlib import Path
from typing import Annotated

import typer

from latchwork.cli.applications import load_application
from latchwork.cli.options import AppName, AsJson
from latchwork.cli.printing import complain, print_json
from latchwork.manifest import ManifestChanged, check_manifest, write_manifest

DEFAULT_FILE = Path("latchwork-manifest.json")

File = Annotated[Path, typer.Option("--file", help="Where the manifest is.")]

command = typer.Typer()
manifest = typer.Typer(help="Write or check the manifest of an application's jobs.")
command.add_typer(manifest, name="manifest")


@manifest.command()
def write(app_name: AppName, *, file: File = DEFAULT_FILE) -> None:
    """Write wire names and payload schemas to a file, to be committed."""
    app = load_application(app_name)
    write_manifest(app, file)
    typer.echo(f"{file}: {len(app.job_types)} job types")


@manifest.command()
def check(app_name: AppName, *, file: File = DEFAULT_FILE, json: AsJson = False) -> None:
    """Say what has changed since the manifest was written; exit code 1 if anything has."""
    changes: tuple[str, ...] = ()
    try:
        check_manifest(load_application(app_name), file)
    except ManifestChanged as changed:
        changes = changed.changes
    if json:
        print_json({"file": str(file), "changes": list(changes)})
    elif not changes:
        typer.echo(f"the jobs are those of {file}")
    for change in () if json else changes:
        complain(change)
    if changes:
        raise typer.Exit(1)
