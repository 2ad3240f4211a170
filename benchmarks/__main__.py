"""``python -m benchmarks``: the page times at a million jobs, on SQLite or a database you name."""

import argparse

from benchmarks import pages


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--database", help="an empty database's address; SQLite if left out")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=40, help="requests per page")
    given = parser.parse_args()
    pages.main(given.database, given.jobs, given.requests)


if __name__ == "__main__":
    main()
