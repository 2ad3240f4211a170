"""One worker node of the demo, in a process of its own: ``python -m latchwork.demo.node``."""

import argparse
import logging
import os
import signal
import sys
import threading
import warnings

from latchwork.demo import inventory, office, shop
from latchwork.demo.application import app

LEASE_SECONDS = 5
"""Short, so that one sees what becomes of the jobs of a node that was killed."""
GRACE_SECONDS = 1

JOBS = (inventory, office, shop)
"""Imported for their job types, schedules and observers: a node works for those registered."""


def main() -> None:
    """Work until told to stop, or until whoever started this process is gone."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--slots", type=int, default=8, help="jobs that run at the same time")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
    # Doubtful syntax in the files it takes stock of is not the node's business.
    warnings.simplefilter("ignore", SyntaxWarning)
    worker = app.worker(
        slots=options.slots, lease_seconds=LEASE_SECONDS, grace_seconds=GRACE_SECONDS
    )
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    worker.run()


def _end_with_parent() -> None:
    """Standard input is a pipe that nobody writes to: it ends when the parent does, however."""
    # Not by way of sys.stdin: its buffer would be locked when the interpreter ends.
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
