"""Which queues the free slots go to (contract section 4, Dispatch).

A queue whose claim is under way keeps its turn: a slot that falls to it waits for the answer, which
is a moment away. Handed to the next queue instead, slots that become free one by one would be
shared by whose claim happens to be idle, whatever the order or the weights.
"""

from collections.abc import Collection, Mapping, Sequence


def strict(
    queues: Sequence[str], ready: Collection[str], slots: int, claiming: Collection[str] = ()
) -> dict[str, int]:
    """All slots to the first of ``queues`` that may have due work, none while it claims."""
    for queue in queues:
        if queue in claiming:
            return {}
        if queue in ready and slots > 0:
            return {queue: slots}
    return {}


def weighted(
    weights: Mapping[str, int],
    credits_left: Mapping[str, int],
    ready: Collection[str],
    slots: int,
    claiming: Collection[str] = (),
) -> tuple[dict[str, int], dict[str, int]]:
    """Smooth weighted round robin, one slot at a time, over the queues that may have due work.

    Each round every such queue, ``ready`` or ``claiming``, earns its weight; the richest, the first
    of equals, takes the slot and pays what all earned together. So shares follow the weights and no
    queue waits for long. A turn that falls to a queue that is ``claiming`` ends the sharing.

    Returns:
        The slots of each queue, and the credits to hand in next time.
    """
    rivals = [queue for queue in weights if queue in ready or queue in claiming]
    total = sum(weights[queue] for queue in rivals)
    balance = {queue: credits_left.get(queue, 0) for queue in weights}
    shares: dict[str, int] = {}
    for _ in range(slots if rivals else 0):
        richest = max(rivals, key=lambda queue: balance[queue] + weights[queue])
        if richest in claiming:
            break
        for queue in rivals:
            balance[queue] += weights[queue]
        balance[richest] -= total
        shares[richest] = shares.get(richest, 0) + 1
    return shares, balance
