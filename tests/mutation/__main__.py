"""``python -m tests.mutation``: change the decisions in every small way, and see who notices.

mutmut wants the package at the top of its folder, so it works on a copy. The score is the share of
the mutants that a test notices, by failing or by never ending; one without any test counts against
it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.packaging.files import ROOT

WORK = ROOT / "build" / "mutation"
LOWEST_SCORE = 0.9
SETTINGS = """
[tool.mutmut]
source_paths = ["latchwork/"]
only_mutate = ["latchwork/decisions/*"]
also_copy = ["latchwork", "latchwork_console", "tests", "pyproject.toml"]
pytest_add_cli_args_test_selection = ["tests/decisions"]
pytest_add_cli_args = ["-p", "no:xdist", "-q"]
"""
NOTICED = {1, 3, 36, -24, 24, 152, 255}
"""Exit codes that mutmut keeps for a mutant whose test failed or never ended."""


def main() -> int:
    """Run what has not been run yet; 1 if the score is too low."""
    stage()
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "run", "--max-children", str(os.cpu_count() or 1)], cwd=WORK)
    noticed, missed = results()
    total = noticed.total() + len(missed)
    score = noticed.total() / total
    for name in missed:
        print(f"survived: {name}")
    print(f"{noticed.total()} of {total} mutants were noticed: {score:.1%}")
    return 0 if score >= LOWEST_SCORE else 1


def stage() -> None:
    """Copy what is mutated and what tests it; results of an earlier run stay."""
    for source, name in (("core/latchwork", "latchwork"), ("app/latchwork_console",) * 2):
        target = WORK / Path(name).name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(WORK / "tests", ignore_errors=True)
    shutil.copytree(ROOT / "tests", WORK / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (WORK / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + SETTINGS)


def results() -> tuple[Counter[str], list[str]]:
    """Mutants that were noticed, by module, and the names of those that were not."""
    noticed: Counter[str] = Counter()
    missed = []
    for path in sorted((WORK / "mutants" / "latchwork" / "decisions").glob("*.meta")):
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items():
            if code in NOTICED:
                noticed[path.stem] += 1
            else:
                missed.append(name)
    return noticed, missed


if __name__ == "__main__":
    sys.exit(main())
