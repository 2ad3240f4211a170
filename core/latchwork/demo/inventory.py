"""The inventory of a folder: list its files, hash them, check their syntax, and report.

Lists go to files; a job's output says where, and sums them up. A job may run more than once, so
each writes the same file for the same input, and puts it in place in one step.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latchwork import JobContext, Workflow
from latchwork.demo.application import IMPATIENT, app

PARTS = 16
"""The manifest waits for every part, and a job has at most 16 parents."""
CHECKS = 4
"""How many of the parts each run checks; the next run checks the next ones."""
MAX_FILES = 20_000
MAX_SOURCE_BYTES = 1_000_000
BLOCK_BYTES = 1 << 20
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "dist-packages"}


@dataclass(frozen=True)
class Listing:
    """What there is: the folder, how many files, and the list of each part."""

    directory: Path
    files: int
    lists: list[Path]


@dataclass(frozen=True)
class Hashes:
    """One part's digests, sizes and names, in a file."""

    hashes: Path
    files: int
    total_bytes: int
    unreadable: int


@dataclass(frozen=True)
class Manifest:
    """Every file of the folder with its digest."""

    manifest: Path
    files: int
    total_bytes: int
    duplicates: int


@dataclass(frozen=True)
class Check:
    """The sources of one part that do not compile."""

    sources: int
    problems: dict[str, str]


@app.job("list-files", queue="inventory", retry=IMPATIENT)
def list_files(context: JobContext, directory: Path, results: Path) -> None:
    """Deal the folder's files into parts, each part's names in a file of their own."""
    names = sorted(_files_below(directory, context))
    lists = [results / f"names-{part:02}.json" for part in range(1, PARTS + 1)]
    for part, path in enumerate(lists):
        _write(path, json.dumps(names[part::PARTS]))
    context.set_output(Listing(directory, len(names), lists))


@app.job("hash-files", queue="inventory", retry=IMPATIENT)
def hash_files(context: JobContext, part: int, results: Path) -> None:
    """Read every file of one part."""
    directory, names = _part_of(context, part)
    rows = []
    for name in names:
        context.cancellation.raise_if_requested()
        digest, size = _digest(directory / name)
        rows.append((digest, size, name))
    path = results / f"hashes-{part:02}.json"
    _write(path, json.dumps(rows))
    sizes = [size for digest, size, _ in rows if digest]
    context.set_output(Hashes(path, len(sizes), sum(sizes), len(rows) - len(sizes)))


@app.job("check-syntax", queue="inventory", retry=IMPATIENT)
def check_syntax(context: JobContext, part: int) -> None:
    """Compile the Python sources of one part, without running them."""
    directory, names = _part_of(context, part)
    sources = [name for name in names if name.endswith(".py")]
    problems = {}
    for name in sources:
        context.cancellation.raise_if_requested()
        problem = _syntax_problem(directory / name)
        if problem:
            problems[name] = problem
    context.set_output(Check(len(sources), problems))


@app.job("build-manifest", queue="inventory", retry=IMPATIENT)
def build_manifest(context: JobContext, results: Path) -> None:
    """Put the parts together: this job has one parent for each."""
    rows: list[tuple[str | None, int, str]] = []
    for part in range(1, PARTS + 1):
        rows += json.loads(_output(context, f"hash-{part:02}", Hashes).hashes.read_text())
    readable = sorted((name, digest, size) for digest, size, name in rows if digest)
    path = results / "manifest.txt"
    _write(path, "".join(f"{digest}  {name}\n" for name, digest, _ in readable))
    copies = Counter(digest for _, digest, size in readable if size)
    context.set_output(
        Manifest(
            path,
            files=len(readable),
            total_bytes=sum(size for _, _, size in readable),
            duplicates=sum(count - 1 for count in copies.values()),
        )
    )


@app.job("write-report", queue="inventory", retry=IMPATIENT)
def write_report(context: JobContext, parts: list[int], results: Path) -> None:
    """Say in a few lines what was found; ``list`` is a distant ancestor, read all the same."""
    listing = _output(context, "list", Listing)
    manifest = _output(context, "manifest", Manifest)
    checks = [_output(context, f"check-{part:02}", Check) for part in parts]
    problems = {name: text for check in checks for name, text in check.problems.items()}
    sources = sum(check.sources for check in checks)
    lines = [
        f"Inventory of {listing.directory}",
        f"{manifest.files:,} of {listing.files:,} files read, {manifest.total_bytes:,} bytes",
        f"{manifest.duplicates:,} files are copies of others",
        f"{sources:,} sources checked, {len(problems)} do not compile",
        *(f"  {name}: {text}" for name, text in sorted(problems.items())),
    ]
    path = results / "report.txt"
    _write(path, "\n".join(lines) + "\n")
    context.set_output({"report": path, "summary": lines[1:4]})


def inventory(directory: Path, results: Path, run: int) -> Workflow:
    """The whole inventory, declared before a single file is known.

    Args:
        directory: what to take stock of.
        results: an existing folder for the lists, the manifest and the report.
        run: which run this is, from 0: each checks the syntax of other parts.
    """
    workflow = Workflow("inventory").add("list", list_files.bind(directory, results))
    parts = range(1, PARTS + 1)
    for part in parts:
        workflow.add(f"hash-{part:02}", hash_files.bind(part, results), after=["list"])
    workflow.add(
        "manifest", build_manifest.bind(results), after=[f"hash-{part:02}" for part in parts]
    )
    checked = [(run * CHECKS + number) % PARTS + 1 for number in range(CHECKS)]
    checks = [f"check-{part:02}" for part in checked]
    for part, step in zip(checked, checks, strict=True):
        workflow.add(step, check_syntax.bind(part), after=["list"])
    return workflow.add("report", write_report.bind(checked, results), after=["manifest", *checks])


def _output(context: JobContext, step: str, kind: type[Any]) -> Any:
    """What an earlier step left; it did succeed, or this job would not run."""
    return context.dependency_output(step, kind).output


def _part_of(context: JobContext, part: int) -> tuple[Path, list[str]]:
    listing = _output(context, "list", Listing)
    return listing.directory, json.loads(listing.lists[part - 1].read_text())


def _files_below(directory: Path, context: JobContext) -> Iterator[str]:
    """Names of regular files, hidden folders and installed packages left out."""
    found = 0
    for folder, folders, names in os.walk(directory):
        context.cancellation.raise_if_requested()
        folders[:] = [one for one in folders if one[0] != "." and one not in SKIPPED_FOLDERS]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(directory).as_posix()
                found += 1
                if found == MAX_FILES:
                    return


def _digest(path: Path) -> tuple[str | None, int]:
    """A file's SHA-256 and size; no digest for what cannot be read, or has gone."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                size += len(block)
    except OSError:
        return None, 0
    return digest.hexdigest(), size


def _syntax_problem(path: Path) -> str | None:
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    except OSError:
        return None
    return None


def _write(path: Path, text: str) -> None:
    """Write in full or not at all, under a name that no other attempt uses meanwhile."""
    # Names that are not UTF-8 stay what they are in the file system.
    partial = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    partial.write_text(text, encoding="utf-8", errors="surrogateescape")
    partial.replace(path)
