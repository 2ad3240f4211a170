"""`python -m tests.torture`: one kind of torture by hand; `make prove` runs them all."""

import argparse
import signal
import sys


def main() -> int:
    """Run batches until the number is reached; the exit code says whether anything was found."""
    # Told to end, it takes its nodes and servers along, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kill = kinds.add_parser("kill", help="kill -9 and freeze nodes under load")
    kill.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    kill.add_argument("--cycles", type=int, default=20, dest="number")
    restart = kinds.add_parser("restart", help="stop PostgreSQL at once, in mid-operation")
    restart.add_argument("--stops", type=int, default=5, dest="number")
    backends = kinds.add_parser("backends", help="terminate back-ends in mid-operation")
    backends.add_argument("--count", type=int, default=20, dest="number")
    cuts = kinds.add_parser("cuts", help="lose the answers to COMMIT")
    cuts.add_argument("--count", type=int, default=20, dest="number")
    for one in (kill, restart, backends, cuts):
        one.add_argument("--seed", type=int, default=1)
    return torture(parser.parse_args())


def torture(chosen: argparse.Namespace) -> int:
    """Batch after batch, each with a database of its own."""
    # Imported late: the node processes import this module too.
    from tests.proof import instruments

    run = {
        "kill": lambda done, most: instruments.kill_nodes(chosen.database, done, most),
        "restart": instruments.stop_postgres,
        "backends": instruments.terminate_backends,
        "cuts": instruments.cut_after_commit,
    }[chosen.kind]
    done = failures = 0
    while done < chosen.number:
        step = run(chosen.seed + done, min(20, chosen.number - done))
        done += step.n
        failures += step.failures
        print(f"{done} of {chosen.number}: {step.detail}", flush=True)
        for finding in step.findings:
            print(f"  FOUND {finding}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
