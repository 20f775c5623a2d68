"""Write the results of benchmarks as a page of the docs, between the marks of what was generated.

``python tools/pages.py docs/benchmarks/quality.md RESULT.json…``
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from graphret.errors import InvalidInput
from graphret.evaluation.table import markdown


def updated(page: str, result: dict[str, object]) -> str:
    """Return a page with a result in place of what is between ``<!-- generated: NAME -->`` and ``<!-- end -->``.

    Raises
    ------
    InvalidInput
        When the page has no such place.
    """
    name = re.escape(str(result["name"]))
    place = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if place.search(page) is None:
        raise InvalidInput(f"the page has no place '<!-- generated: {result['name']} -->' … '<!-- end -->'")
    return place.sub(lambda found: f"{found[1]}\n{markdown(result)}\n\n{found[2]}", page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python tools/pages.py", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("results", type=Path, nargs="+", help="what graphret bench NAME --json wrote")
    chosen = parser.parse_args(arguments)
    page = chosen.page.read_text(encoding="utf-8")
    for path in chosen.results:
        page = updated(page, json.loads(path.read_text(encoding="utf-8")))
    chosen.page.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
