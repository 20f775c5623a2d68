"""Benchmarks of speed and memory: ratios to a peer or a physical limit, in one run;
`make bench` runs them.
"""
