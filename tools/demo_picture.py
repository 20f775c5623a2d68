"""Draw what ``graphret demo`` prints as the picture of the docs: ``make picture``."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from graphret.demo import run
from graphret.demo.display import draw

PICTURE = Path(__file__).parents[1] / "docs/assets/demo.svg"
# Fonts from elsewhere are not fetched: any monospaced one does, as every text has its
# length.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    """Draw a question that the graph helps, one that it does not, and recall of all."""
    console = Console(
        record=True, width=104, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(draw(run(), 1))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(
        str(PICTURE), title="graphret demo", code_format=FORMAT, unique_id="demo"
    )


if __name__ == "__main__":
    main()
