"""The demo's application object; its database is named by the environment, as the commands do."""

import os

from latchwork import Latchwork, RetryPolicy
from latchwork.demo.place import DEFAULT_DATABASE, Place

DATABASE_URL = os.environ.get("LATCHWORK_DATABASE_URL", Place(DEFAULT_DATABASE).url)

app = Latchwork(DATABASE_URL)

IMPATIENT = RetryPolicy(max_attempts=3, base_seconds=1)
"""Three attempts, soon after one another: a demo should not take long to show its failures."""
