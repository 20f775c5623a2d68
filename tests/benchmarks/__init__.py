"""Benchmarks of speed and memory: ratios to a peer or a physical limit, in one run; `make bench` runs them."""

from __future__ import annotations

from pathlib import Path

#: Where a process that a benchmark starts finds this package.
TESTS = Path(__file__).parents[1]
