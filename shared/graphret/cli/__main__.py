"""``python -m graphret.cli``."""

from graphret.cli import main

main()
