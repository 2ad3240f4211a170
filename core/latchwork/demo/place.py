"""Where the demo keeps its files: a database, and a folder beside it, which marks it as its own."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from latchwork.errors import InvalidValue

DEFAULT_DATABASE = Path("demo-output", "latchwork-demo.db")
SQLITE_FILES = ("", "-wal", "-shm", "-turn")


@dataclass(frozen=True)
class Place:
    """The files of one demo."""

    database: Path

    @property
    def url(self) -> str:
        """The database's address."""
        return URL.create("sqlite", database=str(self.database)).render_as_string()

    @property
    def results(self) -> Path:
        """The folder that the jobs write to; it exists beside databases made by the demo."""
        return self.database.with_suffix(".files")

    @property
    def node_log(self) -> Path:
        """What the nodes have to say."""
        return self.results / "nodes.log"

    @contextmanager
    def taken(self, *, keep: bool) -> Iterator[None]:
        """Have the files for oneself: fresh ones, or with ``keep`` those of an earlier demo.

        Raises:
            InvalidValue: another demo uses them, or the database is none of the demo's and would
                be replaced.
        """
        if self.database.parts[0] in ("sqlite:", "postgresql:"):
            raise InvalidValue("--database", "of the demo is a file, not an address")
        if self.database.is_dir():
            raise InvalidValue("--database", f"{self.database} is a folder")
        if self.database.exists() and not self.results.is_dir() and not keep:
            raise InvalidValue(
                "--database",
                f"{self.database} was not made by the demo: give --keep to use it as it is, "
                "or another file",
            )
        self.results.mkdir(parents=True, exist_ok=True)
        with (self.results / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidValue("--database", f"another demo is using {self.database}") from None
            if not keep:
                for suffix in SQLITE_FILES:
                    self.database.with_name(self.database.name + suffix).unlink(missing_ok=True)
            yield
