"""The manifest: every change of a job is named, and whether it breaks what is stored."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from latchwork import JobContext, Latchwork
from latchwork.errors import InvalidValue
from latchwork.manifest import write_manifest
from latchwork.testing import ManifestChanged, check_manifest


def app_with(**handlers: Callable[..., Any]) -> Latchwork:
    app = Latchwork("sqlite:////nowhere/at/all.db")
    for name, handler in handlers.items():
        app.job(name)(handler)
    return app


def mail(context: JobContext, to: str, copies: int = 1) -> None: ...


def mail_without_copies(context: JobContext, to: str) -> None: ...


def mail_with_subject(context: JobContext, to: str, subject: str, copies: int = 1) -> None: ...


def mail_with_tone(context: JobContext, to: str, copies: int = 1, tone: str = "kind") -> None: ...


def mail_to_number(context: JobContext, to: int, copies: int = 1) -> None: ...


def mail_to_anybody(context: JobContext, to: str | None, copies: int = 1) -> None: ...


def mail_copies_required(context: JobContext, to: str, copies: int) -> None: ...


def test_a_manifest_that_was_just_written_is_met(tmp_path: Path) -> None:
    write_manifest(app_with(mail=mail), tmp_path / "jobs.json")
    check_manifest(app_with(mail=mail), tmp_path / "jobs.json")


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ({}, "the job type is gone: breaks stored payloads (they end Quarantined)"),
        ({"mail": mail_without_copies},
         "parameter copies is gone: breaks stored payloads that have it"),
        ({"mail": mail_with_subject},
         "parameter subject is new, without a default: breaks stored payloads"),
        ({"mail": mail_with_tone},
         "parameter tone is new, with a default: stored payloads stay readable"),
        ({"mail": mail_to_number},
         'parameter to was {"type": "string"} and is {"type": "integer"}: '
         "breaks stored payloads"),
        ({"mail": mail_to_anybody},
         'parameter to was {"type": "string"} and is '
         '{"anyOf": [{"type": "string"}, {"type": "null"}]}: stored payloads stay readable'),
        ({"mail": mail_copies_required},
         "parameter copies has no default any more: breaks stored payloads without it"),
    ],
)  # fmt: skip
def test_each_change_is_named_with_what_it_breaks(
    tmp_path: Path, now: dict[str, Callable[..., Any]], change: str
) -> None:
    path = tmp_path / "jobs.json"
    write_manifest(app_with(mail=mail), path)
    with pytest.raises(ManifestChanged) as changed:
        check_manifest(app_with(**now), path)
    assert changed.value.changes == (f"mail: {change}",)
    assert change in str(changed.value)


def test_a_new_job_type_is_a_change_too(tmp_path: Path) -> None:
    write_manifest(app_with(mail=mail), tmp_path / "jobs.json")
    with pytest.raises(ManifestChanged, match="post: the job type is new"):
        check_manifest(app_with(mail=mail, post=mail), tmp_path / "jobs.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "jobs": {}}', '{"version": 1}'])
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(text)
    with pytest.raises(InvalidValue):
        check_manifest(app_with(mail=mail), path)
