"""The client side of the demo: what customers, clerks and an operator do, again and again."""

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import UUID

from latchwork import DependencyMode, LatchworkError
from latchwork.demo import earlier_version
from latchwork.demo.application import app
from latchwork.demo.inventory import inventory
from latchwork.demo.office import deliver_statement, month_close, send_newsletter
from latchwork.demo.shop import (
    Card,
    ask_opinion,
    charge_card,
    export_orders,
    mail_export,
    release_hold,
    remind_customer,
    send_receipt,
)

logger = logging.getLogger(__name__)

OPERATOR = "demo:operator"
REMINDER_SECONDS = 40
KEPT_INVENTORIES = 5
EXPORTS_AT_ONCE = 2

CARDS = {5: Card.EXPIRED, 13: Card.NO_FUNDS, 3: Card.SLOW_BANK, 9: Card.SLOW_BANK}
"""What is wrong with the card of every 24th order, by its number; others are good."""
WRONG_ADDRESS = 19
CYCLE = 24


@dataclass(slots=True)
class Routine:
    """Something that is done every so often."""

    act: Callable[[], object]
    every_seconds: float
    next_at: float
    """On the monotonic clock."""


@dataclass
class Traffic:
    """Everything that happens from outside.

    Args:
        directory: the folder whose files are taken stock of.
        results: where the inventories go.
    """

    directory: Path
    results: Path
    _orders: "count[int]" = field(default_factory=lambda: count(1))
    _inventories: "count[int]" = field(default_factory=count)
    _newsletters: "count[int]" = field(default_factory=lambda: count(1))
    _months: "count[int]" = field(default_factory=lambda: count(1))
    _statements: "count[int]" = field(default_factory=lambda: count(1))
    _exports: list[UUID] = field(default_factory=list)
    _reminders: list[UUID] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Go on until ``stop`` is set."""
        begin = time.monotonic()
        routines = [
            Routine(self.set_gates, math.inf, begin),
            Routine(self.take_stock, 45, begin),
            Routine(self.place_order, 2.5, begin),
            Routine(self.start_export, 40, begin + 1),
            Routine(self.plan_reminder, 10, begin + 2),
            Routine(self.cancel_export, 80, begin + 15),
            Routine(self.cancel_reminder, 60, begin + 20),
            Routine(self.use_the_earlier_version, 300, begin + 8),
            Routine(self.write_newsletter, 30, begin + 3),
            Routine(self.close_month, 120, begin + 5),
            Routine(self.receive_statement, 120, begin + 50),
        ]
        while True:
            routine = min(routines, key=lambda one: one.next_at)
            if stop.wait(max(0.0, routine.next_at - time.monotonic())):
                return
            routine.next_at = max(routine.next_at + routine.every_seconds, time.monotonic())
            try:
                routine.act()
            except (LatchworkError, OSError) as error:
                logger.warning("%s: %s", routine.act.__name__, error)

    def set_gates(self) -> None:
        """The operator holds the newsletters back and lets few exports run at once."""
        app.operator.pause_queue("newsletters", actor=OPERATOR)
        app.operator.set_limit("exports", EXPORTS_AT_ONCE, actor=OPERATOR)

    def take_stock(self) -> None:
        """Start an inventory; results of the oldest ones make room."""
        run = next(self._inventories)
        results = self.results / f"inventory-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        results.mkdir(parents=True, exist_ok=True)
        app.client.start_workflow(inventory(self.directory, results, run))
        for old in sorted(self.results.glob("inventory-*"))[:-KEPT_INVENTORIES]:
            shutil.rmtree(old, ignore_errors=True)

    def place_order(self) -> None:
        """A charge, a receipt if it succeeds, and a clean-up whatever happens."""
        order = next(self._orders)
        number, tags = order % CYCLE, [("order", str(order))]
        card = CARDS.get(number, Card.GOOD)
        address = "the red house" if number == WRONG_ADDRESS else f"customer-{order}@shop.example"
        charge = app.client.enqueue(
            charge_card.bind(order, amount_cents=1000 + order * 37 % 9000, card=card), tags=tags
        )
        app.client.enqueue_dependency(send_receipt.bind(order, address), parent=charge, tags=tags)
        app.client.enqueue_dependency(
            release_hold.bind(order), parent=charge, mode=DependencyMode.ON_ANY_TERMINAL, tags=tags
        )

    def start_export(self) -> None:
        """A long job, and one that waits for it."""
        month = f"{datetime.now(UTC):%Y-%m}"
        export = app.client.enqueue(export_orders.bind(month), tags=["bookkeeping"])
        app.client.enqueue_dependency(mail_export.bind(month), parent=export)
        self._exports.append(export)

    def plan_reminder(self) -> None:
        """A job that is due later, and one that follows it."""
        customer = f"customer-{next(self._orders)}"
        due_at = datetime.now(UTC) + timedelta(seconds=REMINDER_SECONDS)
        reminder = app.client.enqueue(remind_customer.bind(customer), due_at=due_at)
        app.client.enqueue_dependency(ask_opinion.bind(customer), parent=reminder)
        self._reminders.append(reminder)

    def cancel_export(self) -> None:
        """The operator stops a running job: it is asked, and ends when it notices."""
        _cancel_last(self._exports)

    def cancel_reminder(self) -> None:
        """The operator cancels a job that waits: it and those behind it end at once."""
        _cancel_last(self._reminders)

    def write_newsletter(self) -> None:
        """A job for a queue that is paused."""
        app.client.enqueue(send_newsletter.bind(next(self._newsletters)))

    def close_month(self) -> None:
        """A workflow that fails, for the bank is late."""
        app.client.start_workflow(month_close(next(self._months)))

    def receive_statement(self) -> None:
        """The bank's statement comes: the workflow can be retried."""
        deliver_statement(next(self._statements))

    def use_the_earlier_version(self) -> None:
        """Two jobs that no node can start."""
        client = earlier_version.app.client
        client.enqueue(earlier_version.print_coupon.bind("customer-1"))
        client.enqueue(earlier_version.send_receipt.bind("A-1"))


def _cancel_last(jobs: list[UUID]) -> None:
    if jobs:
        app.operator.cancel(jobs.pop(), actor=OPERATOR)
        jobs.clear()
