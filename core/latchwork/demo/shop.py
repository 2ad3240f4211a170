"""A small shop: orders are charged and receipted, orders are exported, customers are reminded.

Some of it goes wrong, as it does: see ``charge_card`` and ``send_receipt``.
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from latchwork import GiveUp, JobContext
from latchwork.demo.application import IMPATIENT, app

EXPORT_SECONDS = 60
EXPORT_STEP_SECONDS = 0.25


class Card(StrEnum):
    """The cards that customers pay with."""

    GOOD = "good"
    SLOW_BANK = "slow-bank"
    NO_FUNDS = "no-funds"
    EXPIRED = "expired"


class InsufficientFunds(Exception):
    """The bank refuses; it may think better of it."""


@dataclass(frozen=True)
class Charge:
    """What a receipt needs to know of a charge."""

    transaction: str
    amount_cents: int


@app.job("charge-card", queue="payments", retry=IMPATIENT)
async def charge_card(context: JobContext, order: int, amount_cents: int, card: Card) -> None:
    """Charge the order's amount. Some banks answer at the second attempt, some cards never work."""
    await asyncio.sleep(0.2 + order % 7 / 5)  # the bank takes its time
    if card is Card.SLOW_BANK and context.attempt == 1:
        raise TimeoutError("the bank did not answer in time")
    if card is Card.NO_FUNDS:
        raise InsufficientFunds(f"{amount_cents} cents are not covered")
    if card is Card.EXPIRED:
        raise GiveUp("the card has expired: trying again is of no use")
    context.set_output(Charge(f"t-{order}", amount_cents))


@app.job("send-receipt", queue="mail", retry=IMPATIENT)
def send_receipt(context: JobContext, order: int, address: str) -> None:
    """Runs once the charge has succeeded, and finds its output."""
    charge = context.dependency_output(charge_card, Charge).output
    if "@" not in address:
        raise ValueError(f"order {order}: {address!r} is no mail address")
    if charge is not None:
        euros = charge.amount_cents / 100
        context.set_output(f"To {address}: {euros:.2f} EUR, transaction {charge.transaction}")


@app.job("release-hold", queue="payments", retry=IMPATIENT)
def release_hold(context: JobContext, order: int) -> None:
    """Runs however the charge has ended: what was put aside for the order is free again."""
    charge = context.dependency_output(charge_card)
    context.set_output({"order": order, "sold": charge.has_output})


@app.job("export-orders", queue="exports", retry=IMPATIENT)
def export_orders(context: JobContext, month: str) -> None:
    """Takes a minute, and can be cancelled: it looks at its token between two steps."""
    steps = round(EXPORT_SECONDS / EXPORT_STEP_SECONDS)
    for _ in range(steps):
        context.cancellation.wait_blocking(EXPORT_STEP_SECONDS)
        context.cancellation.raise_if_requested()
    context.set_output({"month": month, "steps": steps})


@app.job("mail-export", queue="mail", retry=IMPATIENT)
def mail_export(context: JobContext, month: str) -> None:
    """Waits for the export; is cancelled with it."""
    context.set_output(f"To the bookkeeper: orders of {month}")


@app.job("remind-customer", queue="mail", retry=IMPATIENT)
def remind_customer(context: JobContext, customer: str) -> None:
    """Due some time after it was enqueued."""
    context.set_output(f"To {customer}: there is something in your basket")


@app.job("ask-opinion", queue="mail", retry=IMPATIENT)
def ask_opinion(context: JobContext, customer: str) -> None:
    """Follows a reminder."""
    context.set_output(f"To {customer}: how do you like our shop?")
