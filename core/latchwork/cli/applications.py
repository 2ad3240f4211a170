"""From what the command line names to a Latchwork application."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latchwork.application import Latchwork
from latchwork.errors import AppNotFound


def load_application(name: str) -> Latchwork:
    """The application that ``MODULE:APP`` names; the working directory is on the path.

    Raises:
        AppNotFound: there is no such module or name, it cannot be imported, or is something else.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise AppNotFound(
            f"{name!r} does not name an application: write MODULE:APP, as in shop:app"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise AppNotFound(
            f"cannot import {module_name!r}: {type(error).__name__}: {error}"
        ) from error
    app = getattr(module, attribute, None)
    if not isinstance(app, Latchwork):
        found = "nothing" if app is None else f"a {type(app).__name__}"
        raise AppNotFound(f"{name!r} must be a Latchwork application, but is {found}")
    return app


@contextmanager
def opened(database_url: str) -> Iterator[Latchwork]:
    """An application without job types on a database, to read it and to act on its jobs."""
    app = Latchwork(database_url)
    try:
        yield app
    finally:
        app.database.dispose()
