"""Statements are made and compiled at their first use, which may be that of several threads."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sqlalchemy.dialects import postgresql

import latchwork.store
from tests.packaging.files import ROOT

THREADS = 6


def test_threads_that_use_statements_first_at_once_compile_them_all() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.store.test_first_use"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 10


def builders() -> Iterator[Callable[[], Any]]:
    """What makes each statement of the store that is made once for a kind of database."""
    for found in pkgutil.iter_modules(latchwork.store.__path__):
        module = importlib.import_module(f"latchwork.store.{found.name}")
        for name, function in vars(module).items():
            if name.endswith("_statement") and hasattr(function, "cache_clear"):
                parameters = inspect.signature(function).parameters.values()
                if all(one.name == "dialect" or one.kind is one.KEYWORD_ONLY for one in parameters):
                    switches = {one.name: False for one in parameters if one.name != "dialect"}
                    yield partial(function, "postgresql", **switches)


def compiled(made: Any) -> None:
    """Compile what a builder made: a statement, alone or with the batch that fills it."""
    statement = made[-1] if isinstance(made, tuple) else getattr(made, "statement", made)
    statement.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]


def main() -> None:
    """Let half of the threads make each statement while the others make the next one."""
    sys.setswitchinterval(1e-6)
    every, together = list(builders()), threading.Barrier(THREADS, timeout=30)

    def use(ahead: int) -> None:
        for place in range(len(every)):
            together.wait()
            compiled(every[(place + ahead) % len(every)]())

    threads = [threading.Thread(target=use, args=(number % 2,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{len(every)}\n")


if __name__ == "__main__":
    main()
