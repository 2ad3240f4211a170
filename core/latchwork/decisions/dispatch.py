"""Which queues the free slots go to (contract section 4, Dispatch)."""

from collections.abc import Mapping, Sequence, Set


def strict(queues: Sequence[str], ready: Set[str], slots: int) -> dict[str, int]:
    """All slots to the first of ``queues`` that may have due work."""
    for queue in queues:
        if queue in ready and slots > 0:
            return {queue: slots}
    return {}


def weighted(
    weights: Mapping[str, int], credits_left: Mapping[str, int], ready: Set[str], slots: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Smooth weighted round robin, one slot at a time, over the queues that may have due work.

    Each round every ready queue earns its weight; the richest, the first of equals, takes the slot
    and pays what all earned together. So shares follow the weights and no queue waits for long.

    Returns:
        The slots of each queue, and the credits to hand in next time.
    """
    rivals = [queue for queue in weights if queue in ready]
    total = sum(weights[queue] for queue in rivals)
    balance = {queue: credits_left.get(queue, 0) for queue in weights}
    shares: dict[str, int] = {}
    for _ in range(slots if rivals else 0):
        for queue in rivals:
            balance[queue] += weights[queue]
        richest = max(rivals, key=balance.__getitem__)
        balance[richest] -= total
        shares[richest] = shares.get(richest, 0) + 1
    return shares, balance
