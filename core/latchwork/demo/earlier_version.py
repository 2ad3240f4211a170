"""The shop as it was before its last release. A process that still runs it enqueues what today's
nodes do not know, or know otherwise: such jobs are quarantined, not lost.
"""

from latchwork import JobContext, Latchwork
from latchwork.demo.application import DATABASE_URL, IMPATIENT

app = Latchwork(DATABASE_URL)


@app.job("print-coupon", queue="mail", retry=IMPATIENT)
def print_coupon(context: JobContext, customer: str) -> None:
    """Today's shop has no coupons: the wire name is unknown."""
    context.set_output(f"10 % off for {customer}")


@app.job("send-receipt", queue="mail", retry=IMPATIENT)
def send_receipt(context: JobContext, order_number: str) -> None:
    """Today's receipts take ``order`` and ``address``: this payload is refused."""
    context.set_output(order_number)
