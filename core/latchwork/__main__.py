"""``python -m latchwork`` is the ``latchwork`` command."""

from latchwork.cli import main

main()
