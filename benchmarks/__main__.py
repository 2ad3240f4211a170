"""``python -m benchmarks``: the page times at a million jobs, and a large workflow enqueued.

On SQLite, or on a database you name.
"""

import argparse

from benchmarks import pages, workflows


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--database", help="an empty database's address; SQLite if left out")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("workflows", "pages"), help="measure this alone")
    parser.add_argument("--requests", type=int, default=40, help="requests per page")
    given = parser.parse_args()
    # Pages first: their seeding needs an empty database.
    if given.only != "workflows":
        pages.main(given.database, given.jobs, given.requests)
    if given.only != "pages":
        workflows.main(given.database)


if __name__ == "__main__":
    main()
