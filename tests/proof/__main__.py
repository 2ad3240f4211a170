"""`python -m tests.proof`: work towards the figures of the release, as far as time allows."""

import argparse
import signal
import sys
import time

MINUTES = 480.0


def main() -> int:
    """Run steps, the instrument that is furthest behind first, until all is done or time is up."""
    # Told to end, it takes its nodes and servers along, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="stop after so long")
    parser.add_argument("--only", default="", help="instruments whose name holds this")
    parser.add_argument("--most", type=int, help="of each instrument no more than this")
    return prove(parser.parse_args())


def prove(chosen: argparse.Namespace) -> int:
    """Each step is written to the ledger at once, so a run that was cut off goes on later.

    Returns 1 if anything was found.
    """
    # Imported late: the torture's node processes import this module too.
    from tests.proof import ledger
    from tests.proof.instruments import INSTRUMENTS

    found = 0
    deadline = time.monotonic() + chosen.minutes * 60
    while time.monotonic() < deadline:
        entries = ledger.read()
        behind = []
        for place, one in enumerate(INSTRUMENTS):
            done = ledger.total(entries, one.figure, one.what)
            wanted = min(one.per_release, chosen.most or one.per_release)
            if done < wanted and chosen.only in f"{one.figure} {one.what}":
                behind.append((done / wanted, place, done, wanted, one))
        if not behind:
            print("Every figure is reached.")
            return found
        _, _, done, wanted, one = min(behind, key=lambda entry: entry[:2])
        print(f"{one.figure} {one.what}: {done:,} of {wanted:,}", flush=True)
        began_at = time.monotonic()
        step = one.run(done, min(one.step, wanted - done))
        seconds = time.monotonic() - began_at
        entry = ledger.append(
            one.figure, one.what, step.n, step.failures, seconds=seconds, detail=step.detail
        )
        print(
            f"  {entry.n:,} in {seconds:.0f} s, {entry.failures} failures {entry.detail}",
            flush=True,
        )
        found = 1 if step.findings else found
        for finding in step.findings[:20]:
            print(f"  FOUND {finding[:4000]}", flush=True)
    print("Time is up; the next run goes on from here.")
    return found


if __name__ == "__main__":
    sys.exit(main())
