"""The examples of the guides run as they stand, in Python and in the shell."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.files import ROOT

SAYS = {
    "queues": ["paused ann", "At most 1 of its jobs run at once", "set_limit"],
    "retention": [],
    "schedules": ["created", "hourly-check - ", "5 next ticks", "triggered"],
    "testing": ["both passed"],
    "workflows": ["running", "Every step runs again. 6", "retried 6", "restarted"],
    "tags": ["('tenant', 'acme') 1"],
}
"""What the Python of each guide prints, among other things."""


@pytest.mark.parametrize("name", SAYS)
def test_the_examples_of_a_guide_work(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    environment = {key: value for key, value in os.environ.items() if "LATCHWORK" not in key}
    # Imported, so that what runs only as a program, and stays up, does not.
    said = subprocess.check_output(
        [sys.executable, "-c", "import guide"], cwd=tmp_path, env=environment, text=True
    )
    assert [words for words in SAYS[name] if words not in said] == []
    environment["LATCHWORK_DATABASE_URL"] = f"sqlite:///{tmp_path / 'shop.db'}"
    for line in re.findall(r"^\$ latchwork (.*)$", page, re.MULTILINE):
        command = [sys.executable, "-m", "latchwork", *shlex.split(line)]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
