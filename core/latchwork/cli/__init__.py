"""The ``latchwork`` command: start nodes and consoles, look at jobs, act on them.

One module per kind of command; this one puts them together. Every problem is one line on standard
error and an exit code: 1 for what was refused, unknown or not answered, 2 for a wrong command.
"""

import sys

import typer
from pydantic import ValidationError

from latchwork.cli import (
    acting,
    audit,
    bulk,
    database,
    demo,
    failures,
    following,
    history,
    manifest,
    observers,
    queues,
    reading,
    schedules,
    serving,
    workflows,
)
from latchwork.errors import AppNotFound, InvalidValue, LatchworkError

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

command = typer.Typer(
    name="latchwork",
    help="A job scheduler with leases, latches and a transition log.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for part in (
    demo, serving, reading, following, acting, database, queues, audit, observers, history,
    schedules, manifest,
    workflows, failures, bulk,
):  # fmt: skip
    command.add_typer(part.command)


def main() -> None:
    """Run the command that the process was started with, and end the process with its exit code."""
    try:
        code = command(prog_name="latchwork", standalone_mode=False)
    except typer.TyperException as error:
        code = _complain(error.format_message(), error.exit_code)
    except ValidationError as error:
        code = _complain(_wrong_setting(error), EXIT_BAD_INPUT)
    except (AppNotFound, InvalidValue) as error:
        code = _complain(str(error), EXIT_BAD_INPUT)
    except (LatchworkError, OSError) as error:
        code = _complain(str(error), EXIT_FAILED)
    sys.exit(code or 0)


def _wrong_setting(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = "_".join(str(part) for part in first["loc"])
    return f"LATCHWORK_{name.upper()}: {first['msg']}"


def _complain(sentence: str, code: int) -> int:
    line = " ".join(sentence.split())
    print(f"latchwork: {line}", file=sys.stderr)  # noqa: T201
    return code
