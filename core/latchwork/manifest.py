"""The manifest of an application's jobs: wire names and payload schemas, committed to a file.

Jobs outlive the program that enqueued them. A changed payload schema may make stored jobs
unreadable, which then end Quarantined: the check says so before it happens.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latchwork.application import Latchwork
from latchwork.errors import InvalidValue

Schema = dict[str, Any]
Manifest = dict[str, Schema]

VERSION = 1
BREAKS = "breaks stored payloads"
SAFE = "stored payloads stay readable"
UNSURE = "may break stored payloads"


class ManifestChanged(AssertionError):
    """An application's jobs are not as its manifest says; ``changes`` names each difference."""

    def __init__(self, path: Path, changes: tuple[str, ...]) -> None:
        listed = "".join(f"\n  {change}" for change in changes)
        super().__init__(
            f"the jobs are not those of {path}:{listed}\n"
            "If that is meant, write the manifest again: latchwork manifest write"
        )
        self.path = path
        self.changes = changes


def manifest_of(app: Latchwork) -> Manifest:
    """The payload schema of each registered job type, by wire name."""
    return {name: app.job_types[name].payload_schema() for name in sorted(app.job_types)}


def write_manifest(app: Latchwork, path: Path | str) -> None:
    """Write the manifest of ``app``, to be committed beside its code."""
    content = {"version": VERSION, "jobs": manifest_of(app)}
    Path(path).write_text(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def check_manifest(app: Latchwork, path: Path | str) -> None:
    """Compare the jobs of ``app`` with the manifest at ``path``.

    Raises:
        ManifestChanged: they differ; it says in what, and whether that breaks stored payloads.
        InvalidValue: the file is no manifest.
        OSError: the file cannot be read.
    """
    changes = tuple(changes_between(_read(Path(path)), manifest_of(app)))
    if changes:
        raise ManifestChanged(Path(path), changes)


def changes_between(old: Manifest, new: Manifest) -> Iterator[str]:
    """Each difference in a sentence."""
    for wire_name in sorted(old.keys() | new.keys()):
        if wire_name not in new:
            yield f"{wire_name}: the job type is gone: {BREAKS} (they end Quarantined)"
        elif wire_name not in old:
            yield f"{wire_name}: the job type is new"
        else:
            for change in _changes_of_payload(old[wire_name], new[wire_name]):
                yield f"{wire_name}: {change}"


def _changes_of_payload(old: Schema, new: Schema) -> Iterator[str]:
    before, after = _parameters(old), _parameters(new)
    required_before, required_after = set(old.get("required", ())), set(new.get("required", ()))
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"parameter {name} is gone: {BREAKS} that have it"
        elif name not in before:
            needed = name in required_after
            effect = f"without a default: {BREAKS}" if needed else f"with a default: {SAFE}"
            yield f"parameter {name} is new, {effect}"
        elif before[name] != after[name]:
            was, now = _spelled(before[name]), _spelled(after[name])
            yield f"parameter {name} was {was} and is {now}: {_effect(before[name], after[name])}"
    for name in sorted((required_before ^ required_after) & before.keys() & after.keys()):
        if name in required_after:
            yield f"parameter {name} has no default any more: {BREAKS} without it"
        else:
            yield f"parameter {name} has a default now: {SAFE}"
    if old.get("$defs", {}) != new.get("$defs", {}) and before == after:
        names = ", ".join(_changed_names(old.get("$defs", {}), new.get("$defs", {})))
        yield f"the types {names} inside the payload have changed: {UNSURE}"


def _effect(before: Schema, after: Schema) -> str:
    """What a parameter's new type means for the values of its old one."""
    if any(option not in _options(after) for option in _options(before)):
        kinds_before, kinds_after = _kinds(before), _kinds(after)
        known = None not in kinds_before and None not in kinds_after
        return BREAKS if known and not kinds_before <= kinds_after else UNSURE
    return SAFE


def _options(schema: Schema) -> list[Schema]:
    options: list[Schema] = schema.get("anyOf", [schema])
    return options


def _kinds(schema: Schema) -> set[str | None]:
    kinds = {option.get("type") for option in _options(schema)}
    # What is a whole number is a number, too.
    return kinds | {"integer"} if "number" in kinds else kinds


def _parameters(schema: Schema) -> dict[str, Schema]:
    """Each parameter's own schema, without titles, which are only its name in other words."""
    return {name: _untitled(one) for name, one in schema.get("properties", {}).items()}


def _untitled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _untitled(one) for name, one in value.items() if name != "title"}
    if isinstance(value, list):
        return [_untitled(one) for one in value]
    return value


def _spelled(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True, ensure_ascii=False)


def _changed_names(old: Schema, new: Schema) -> list[str]:
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _read(path: Path) -> Manifest:
    try:
        content = json.loads(path.read_text())
        jobs: Manifest = content["jobs"]
        if content["version"] != VERSION or not all(isinstance(one, dict) for one in jobs.values()):
            raise InvalidValue("manifest", f"{path} is of another version")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidValue("manifest", f"{path} cannot be read: {error}") from error
    return jobs
