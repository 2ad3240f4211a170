"""Several workers in one process, each with its own queues and slots, that end together."""

import threading
from collections.abc import Sequence
from typing import Protocol

from latchwork.worker.shutdown import stop_on_signals


class Group(Protocol):
    """A worker, as far as running it beside others goes."""

    @property
    def patience_seconds(self) -> float:
        """How long after it was told to stop it has ended at the latest."""

    def run(self) -> None:
        """Work until stopped."""

    def stop(self) -> None:
        """Drain and stop."""


def run_together(groups: Sequence[Group]) -> None:
    """Run every group in a thread of its own until SIGTERM or SIGINT, or until one fails.

    A signal drains them all, a second one hurries them. What one of them raised is raised here,
    once the others have drained.
    """
    failures: list[BaseException] = []

    def stop() -> None:
        for group in groups:
            group.stop()

    def run(group: Group) -> None:
        try:
            group.run()
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            failures.append(error)
            stop()

    patience = max((group.patience_seconds for group in groups), default=0.0)
    with stop_on_signals(stop, patience_seconds=patience):
        threads = [
            threading.Thread(target=run, args=(group,), name=f"latchwork-group-{n}", daemon=True)
            for n, group in enumerate(groups, start=1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
