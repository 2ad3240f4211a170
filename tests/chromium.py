"""Find the Chromium of the browser tests; ``python -m tests.chromium`` installs one if need be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """LATCHWORK_CHROMIUM, then the PATH, then the one Playwright has installed."""
    named = os.environ.get("LATCHWORK_CHROMIUM")
    if named:
        return shutil.which(named)
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    return str(own) if own.exists() else None


def install_chromium() -> str | None:
    """Install one: with apt as root, else Playwright's build."""
    commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        apt = "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium"
        commands.insert(0, ["sh", "-c", apt])
    for command in commands:
        # What the installers print must not be taken for the answer.
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        found = find_chromium() if done.returncode == 0 else None
        if found:
            return found
    return None


def main() -> None:
    """Print the path of a Chromium, or say what to install."""
    found = find_chromium()
    if found is None and "LATCHWORK_CHROMIUM" not in os.environ:
        found = install_chromium()
    if found is None:
        sys.exit(
            "The browser tests need Chromium: install it (on Debian: apt install chromium), or set "
            "LATCHWORK_CHROMIUM to the path of a Chromium or Chrome."
        )
    print(found)


if __name__ == "__main__":
    main()
