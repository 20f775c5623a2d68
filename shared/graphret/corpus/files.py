"""Read the texts of files in any encoding, and other markup formats as Markdown."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphret.errors import InvalidInput, MissingDependency

_log = logging.getLogger(__name__)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
#: How many bytes of a longer file's lines that tell its encoding are examined.
_SAMPLE = 200_000
# A role of Sphinx, such as :class:`Graph`, is its text, which may end in an address.
_ROLE = re.compile(r"(?<![\w:]):[a-z][\w:+.-]{0,40}:`([^`<>]+?)\s*(?:<[^`<>]*>)?`")
_NO_TEXT = ["script", "style", "template", "noscript", "nav", "svg"]


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How files are read: encoding, quotes and strictness; see `graphret.read`."""

    encoding: str | None = None
    literal_quotes: bool = False
    strict: bool = False


def text_of(path: Path, options: FileOptions) -> str:
    """Return the text of a file, with Python's line ends.

    Without an encoding it is UTF-8, or else one that charset-normalizer detects, which
    is logged.
    """
    data = path.read_bytes()
    if options.encoding is not None:
        try:
            text = data.decode(options.encoding)
        except LookupError:
            raise InvalidInput(
                f"encoding: expected one that Python knows, got {options.encoding!r}"
            ) from None
    else:
        text = _decoded(data, path)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def html_text(text: str) -> str:
    """Return HTML as Markdown, with its title as a heading."""
    soup = _required("bs4", "Reading HTML").BeautifulSoup(text, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    if soup.head:
        soup.head.decompose()
    for element in soup(_NO_TEXT):
        element.decompose()
    for element in soup("span", class_="literal"):  # code, as docutils has it
        element.name = "code"
    body = _required("markdownify", "Reading HTML").MarkdownConverter(
        heading_style="ATX",
        escape_asterisks=False,
        escape_underscores=False,
        strip=["img"],
    )
    written = str(body.convert_soup(soup.find("main") or soup)).strip()
    has_heading = re.search(r"^# ", written, re.MULTILINE) is not None
    return written if has_heading or not title else f"# {title}\n\n{written}"


def rst_text(text: str) -> str:
    """Return reStructuredText as Markdown, with the text of Sphinx's directives."""
    core = _required("docutils.core", "Reading reStructuredText")
    _keep_directives_of_sphinx()
    settings = {
        "report_level": 5,
        "halt_level": 5,
        "file_insertion_enabled": False,  # nothing but the file itself is read
        "raw_enabled": False,
        "syntax_highlight": "none",
        "math_output": "latex",
        "_disable_config": True,
    }
    parts = core.publish_parts(
        _ROLE.sub(r"\1", text), writer="html5", settings_overrides=settings
    )
    return html_text(f"<main>{parts['html_body']}</main>")


def notebook_text(text: str) -> str:
    """Return the cells of a Jupyter notebook: text as it is, code between fences."""
    notebook: Any = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise InvalidInput("expected a notebook with 'cells' (nbformat 4)")
    parts = []
    for number, cell in enumerate(cells, 1):
        source = cell.get("source") if isinstance(cell, dict) else None
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise InvalidInput(f"cell {number}: expected a 'source' of text")
        code = cell.get("cell_type") == "code"
        parts.append(f"```\n{source}\n```" if code and source.strip() else source)
    return "\n\n".join(part for part in parts if part.strip())


#: The converters to Markdown, by suffix.
TO_MARKDOWN: dict[str, Callable[[str], str]] = {
    ".html": html_text,
    ".htm": html_text,
    ".rst": rst_text,
    ".ipynb": notebook_text,
}


def _decoded(data: bytes, path: Path) -> str:
    try:
        text = data.decode("utf-8-sig")
        if "\0" not in text:
            return text
    except UnicodeDecodeError:
        pass
    encoding = _encoding_of(_sample_of(data))
    if encoding is None or "\0" in (text := data.decode(encoding)):
        raise InvalidInput(
            "expected text, got bytes of no encoding that can be detected; name it"
            " (encoding=, --encoding)"
        )
    _log.warning(f"{path}: is not UTF-8; read as {encoding}, which was found")
    return text


def _encoding_of(data: bytes) -> str | None:
    """Return the encoding of a text that is not UTF-8, `None` if it is not a text.

    A text with few bytes beyond ASCII is in Latin script; of two encodings that fit
    equally well the Western European one is chosen.
    """
    from charset_normalizer import from_bytes

    if b"\0" not in data and 3 * len(_NOT_ASCII.findall(data)) < len(data):
        fitting = from_bytes(data, cp_isolation=["cp1252", "cp1250"])
        best = fitting.best()
        for match in fitting:
            equal = best is not None and (match.chaos, match.coherence) == (
                best.chaos,
                best.coherence,
            )
            if equal and "cp1252" in match.could_be_from_charset:
                return "cp1252"
        if best is not None:
            return best.encoding
    best_match = from_bytes(data).best()
    return best_match.encoding if best_match is not None else None


def _sample_of(data: bytes) -> bytes:
    """Return a file's sample for detection: of a long one, its non-ASCII lines."""
    if len(data) <= _SAMPLE or b"\0" in data:
        return data[: 5 * _SAMPLE]
    lines = [line for line in data.splitlines(True) if _NOT_ASCII.search(line)]
    return b"".join(lines)[:_SAMPLE]


def _keep_directives_of_sphinx() -> None:
    """Make docutils keep the text of Sphinx's directives."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives

    class Passage(Directive):
        """A directive as its argument and its content."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[Any]:
            passage = nodes.container()
            if self.arguments:
                passage += nodes.paragraph("", self.arguments[0])
            self.state.nested_parse(self.content, self.content_offset, passage)
            return [passage]

    names = (
        *("seealso", "versionadded", "versionchanged", "deprecated", "glossary"),
        *("function", "class", "method", "attribute", "data", "exception", "option"),
        *("py:function", "py:class", "py:method", "py:attribute", "tab-item", "tab"),
        *("rubric", "centered", "hlist", "dropdown", "card"),
    )
    for name in names:
        directives.register_directive(name, Passage)


def _required(module: str, purpose: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        package = {"bs4": "beautifulsoup4"}.get(module, module.partition(".")[0])
        raise MissingDependency(package, "files", purpose) from error
