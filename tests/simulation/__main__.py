"""``python -m tests.simulation``: run worlds, replay one, say what was reached."""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.simulation import plan, running
from tests.simulation.reach import unreached

PROGRESS_SEEDS = 50


def main() -> int:
    """1 if an oracle found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many worlds")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--replay", help="a seed, or the file of a plan")
    parser.add_argument("--coverage", action="store_true", help="say what was reached")
    chosen = parser.parse_args()
    if chosen.replay is not None:
        return replay(chosen.replay)
    summary = running.Summary()
    deadline = time.monotonic() + 60 * (chosen.minutes or 10**6)
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        verdict = running.run(plan.draw(seed))
        summary.add(seed, verdict)
        if verdict.findings:
            tell(seed)
        if summary.worlds % PROGRESS_SEEDS == 0:
            print(f"{summary.worlds} worlds, {summary.steps:,} steps", flush=True)
        if time.monotonic() > deadline:
            print(f"time is up; go on with --from {seed + 1}")
            break
    print(
        json.dumps({"n": summary.worlds, "failures": len(summary.failures), "steps": summary.steps})
    )
    if chosen.coverage:
        tell_coverage(summary)
    return 1 if summary.failures else 0


def replay(what: str) -> int:
    """Run one world again and say everything that was found."""
    world = plan.draw(int(what)) if what.isdigit() else plan.load(Path(what))
    verdict = running.run(world)
    print(f"{verdict.steps} steps, fingerprint {verdict.fingerprint}")
    for finding in verdict.findings:
        print(f"FOUND {finding}")
    return 1 if verdict.findings else 0


def tell(seed: int) -> None:
    """Shrink the plan of a world while the same oracle speaks, keep it, say how to replay it."""
    drawn = plan.draw(seed)
    kind = running.kind_of(running.run(drawn))
    small = running.shrink(drawn, lambda one: running.kind_of(running.run(one)) == kind)
    path = running.PLANS / f"seed-{seed}.json"
    small.save(path)
    print(f"seed {seed}: python -m tests.simulation --replay {path}")
    for finding in running.run(small).findings:
        print(f"  FOUND {finding}")


def tell_coverage(summary: running.Summary) -> None:
    """What was reached how often, and what never."""
    for name, count in sorted(summary.reached.items()):
        print(f"{count:9,} {name}")
    for name in unreached(summary.reached):
        print(f"    never {name}")


if __name__ == "__main__":
    sys.exit(main())
