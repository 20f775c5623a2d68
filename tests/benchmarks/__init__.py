"""Benchmarks of speed and memory, as ratios to a peer or a limit (``make bench``)."""
