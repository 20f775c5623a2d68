"""The demo: a small corpus that comes with the package, and what the graph finds in it."""
