"""Retry policies as the job's row keeps them."""

import json
from dataclasses import astuple
from functools import lru_cache

from latchwork.decisions.retries import RetryPolicy


@lru_cache(maxsize=256)
def encode_policy(policy: RetryPolicy) -> str:
    """A policy as compact JSON: [max_attempts, base, factor, cap, jitter]."""
    return json.dumps(astuple(policy), separators=(",", ":"))


@lru_cache(maxsize=256)
def decode_policy(text: str) -> RetryPolicy:
    """A policy back from its stored text."""
    return RetryPolicy(*json.loads(text))
