"""Images of a SQLite database as a crash would leave it, taken while a load writes.

A crash cuts the write-ahead log anywhere: between two frames, inside one, or while a checkpoint has
moved only some of its pages into the file. Each such image must open, be sound, hold a legal state
and know every job whose enqueue was answered before. This says nothing about a disk that lies.
"""

import random
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import event, select, text

from latchwork.settings import Settings
from latchwork.store import migrate, schema
from latchwork.store.database import Database
from latchwork.store.engines import make_engine, reading
from tests.audit import audit
from tests.store.builders import Store
from tests.store.random_load import Load

WAL_HEADER = struct.Struct(">8I")
FRAME_HEADER = struct.Struct(">6I")
BACKFILLED = struct.Struct("=I")
BACKFILLED_AT = 96
"""Where the log's index says how far the last checkpoint came."""

CHECKPOINT_PAGES = 60
"""Small, so that checkpoints come in the middle of the load."""

OPERATIONS_EACH = 120
SHOT_CHANCE = 0.03
TORN_CHANCE = 0.25
"""How many of the frames are also cut inside; as many images have a half-done checkpoint."""


@dataclass(frozen=True)
class Image:
    """The bytes of both files, and the jobs that must be in them."""

    what: str
    database: bytes
    wal: bytes
    accepted: frozenset[UUID]


@dataclass(frozen=True)
class Frame:
    """One page in the log; ``commits`` ends a transaction."""

    start: int
    end: int
    page: int
    commits: bool


class Camera:
    """Copies the files at random moments between two statements of the only writer."""

    def __init__(self, path: Path, load: Load, chance: random.Random) -> None:
        self._path = path
        self._load = load
        self._chance = chance
        self._seen: tuple[bytes, int] = (b"", 0)
        self.images: list[Image] = []
        engine = load.store.database.engine
        event.listen(engine, "before_cursor_execute", self._maybe)
        event.listen(engine, "commit", self._maybe)

    def _maybe(self, *_: object) -> None:
        if self._chance.random() < SHOT_CHANCE:
            self.images += self._shoot()

    def _shoot(self) -> Iterator[Image]:
        database = self._path.read_bytes()
        wal_path = self._path.with_name(self._path.name + "-wal")
        wal = wal_path.read_bytes() if wal_path.exists() else b""
        frames = frames_of(wal)
        salts = wal[16:24]
        known = self._seen[1] if self._seen[0] == salts else 0
        # A checkpoint syncs the log before it moves pages: those frames are never cut off.
        known = max(known, self._frames_in_file())
        self._seen = (salts, len(frames))
        accepted = frozenset(self._load.ids)
        yield Image("whole", database, wal, accepted)
        for number, frame in enumerate(frames[known:], known):
            what = f"cut before frame {number + 1} of {len(frames)}"
            # Of a shorter log it is only sure that it holds a legal state.
            yield Image(what, database, wal[: frame.start], frozenset())
            if self._chance.random() < TORN_CHANCE:
                cut = self._chance.randrange(frame.start + 1, frame.end)
                yield Image(f"cut inside frame {number + 1}", database, wal[:cut], frozenset())
        if frames:
            moved = self._half_checkpointed(database, wal, frames)
            yield Image("half a checkpoint", moved, wal, accepted)

    def _frames_in_file(self) -> int:
        """How many frames of this generation a checkpoint has moved into the file."""
        index = self._path.with_name(self._path.name + "-shm").read_bytes()
        moved: int = BACKFILLED.unpack_from(index, BACKFILLED_AT)[0]
        return moved

    def _half_checkpointed(self, database: bytes, wal: bytes, frames: list[Frame]) -> bytes:
        """The file with a random part of the log's committed pages moved into it."""
        committed = max((n for n, frame in enumerate(frames) if frame.commits), default=-1)
        latest = {frame.page: frame for frame in frames[: committed + 1]}
        pages = bytearray(database)
        for page, frame in latest.items():
            if self._chance.random() < 0.5:
                content = wal[frame.start + FRAME_HEADER.size : frame.end]
                at = (page - 1) * len(content)
                pages.extend(bytes(max(0, at - len(pages))))
                pages[at : at + len(content)] = content
        return bytes(pages)


def frames_of(wal: bytes) -> list[Frame]:
    """The frames of the log's present generation; what follows is left over from an earlier one."""
    if len(wal) < WAL_HEADER.size:
        return []
    _, _, page_size, _, *salts, _, _ = WAL_HEADER.unpack_from(wal)
    frames = []
    size = FRAME_HEADER.size + page_size
    for start in range(WAL_HEADER.size, len(wal) - size + 1, size):
        page, pages_after_commit, *frame_salts, _, _ = FRAME_HEADER.unpack_from(wal, start)
        if frame_salts != salts:
            break
        frames.append(Frame(start, start + size, page, pages_after_commit > 0))
    return frames


def take_images(folder: Path, seed: int) -> list[Image]:
    """Run one load on a new file and take images all through it."""
    chance = random.Random(seed)  # noqa: S311 - a seeded load can be run again
    path = folder / f"load-{seed}.db"
    database = Database(f"sqlite:///{path}", Settings(sqlite_synchronous="NORMAL"))
    event.listen(database.engine, "connect", checkpoint_often)
    migrate.ensure_schema(database.engine, upgrade=True)
    load = Load(Store(database))
    camera = Camera(path, load, chance)
    load.run(seed, OPERATIONS_EACH)
    database.dispose()
    path.unlink()
    chance.shuffle(camera.images)
    return camera.images


def checkpoint_often(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def problems(image: Image, folder: Path) -> list[str]:
    """Open the image as a node would after the crash; one sentence for each thing wrong with it."""
    path = folder / "image.db"
    for left in folder.glob("image.db*"):
        left.unlink()
    path.write_bytes(image.database)
    path.with_name("image.db-wal").write_bytes(image.wal)
    engine = make_engine(f"sqlite:///{path}", Settings())
    try:
        with reading(engine) as connection:
            sound = connection.scalars(text("PRAGMA integrity_check")).all()
            broken = [f"integrity: {line}" for line in sound if line != "ok"]
            strays = connection.execute(text("PRAGMA foreign_key_check")).all()
            broken += [f"foreign key: {row}" for row in strays]
            broken += audit(connection)
            stored = set(connection.scalars(select(schema.jobs.c.id)))
            broken += [f"job {job} is lost" for job in image.accepted - stored]
    finally:
        engine.dispose()
    return [f"{image.what}: {sentence}" for sentence in broken]
