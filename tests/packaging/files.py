"""The files of the checkout that the tidiness tests look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = ("core", "app", "templates", "static", "tests", "benchmarks")
NOT_OURS = {"vendor", "__pycache__"}


def files(*patterns: str, below: tuple[str, ...] = SOURCE_FOLDERS) -> list[Path]:
    """Our own files whose names match one of ``patterns``."""
    return sorted(_matching(patterns, below))


def each(paths: list[Path]) -> pytest.MarkDecorator:
    """One test per path, named after it."""
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return pytest.mark.parametrize("path", paths, ids=names)


def _matching(patterns: tuple[str, ...], folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for pattern in patterns:
            for path in (ROOT / folder).rglob(pattern):
                if not NOT_OURS & set(path.parts):
                    yield path
