"""What a model answers, without its reasoning and the marks of its chat format."""

from __future__ import annotations

import html
import re

_THOUGHT = (
    "(?i:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad"
    "|inner_monologue|chain_of_thought|cot)"
)
_ANSWER = "(?i:(?:final_)?answer|response|solution|output)"
# How models mark where their reasoning begins and ends, and where their answer does:
# in tags (DeepSeek, Qwen, Cohere, Kimi and many others), in brackets (Mistral), in
# channels (gpt-oss, Gemma; gpt-oss also without the tokens, where a server drops
# them), in words (Granite). Other tokens of a chat format end an answer.
_MARK = re.compile(
    rf"""
    (?P<opens>
        [<◁]\|?(?:begin_of_|start_|START_|\w+:)?{_THOUGHT}(?:\s+\w+=[^<>]*)?\|?[>▷]
      | \[THINK\] | <\|inner_prefix\|>
      | <\|channel\|?>\s*(?!final)\w+ | \A\s*analysis(?=[A-Z])
    )
  | (?P<closes>
        [<◁](?:/(?:\w+:)?|\|end_of_|\|end_|\|END_|\|/){_THOUGHT}\|?[>▷]
      | \[/THINK\] | <\|inner_suffix\|> | <channel\|>
      | <\|channel\|>\s*final\b
        (?:[^<{{]{{0,40}}<\|constrain\|>)?[^<{{]{{0,40}}(?:<\|message\|>)?
      | assistantfinal | (?i:here\ is\ my\ response:)
    )
  | (?P<answers> [<◁]\|?(?:begin_of_|start_|START_)?{_ANSWER}\|?[>▷] )
  | (?P<ends>
        [<◁](?:/|\|end_of_|\|end_|\|END_){_ANSWER}\|?[>▷]
      | <\|(?:im_start|start_header_id|start)\|>\s*assistant\s*
        (?:<\|\w+\|>(?<!channel\|>))?
      | <[|｜][^|｜<>\n]{{1,40}}[|｜]> | </?s> | <eos> | <bos>
      | <(?:start|end)_of_turn>(?:model)? | \[/?INST\]
    )
    """,
    re.VERBOSE,
)
# Where reasoning without marks comes to its answer.
_HEADING = re.compile(
    r"^[*#>_ \t]{0,8}(?:(?:the|my) )?(?:final )?answer(?: is)?[*_ ]{0,4}:",
    re.IGNORECASE | re.MULTILINE,
)
_ESCAPED_QUOTE = re.compile(r"&(?:quot|#34|#x22);")


def answer_text(reply: str) -> str:
    """Return what a reply says after its reasoning, up to the end of its turn.

    Reasoning may have begun before the reply; a thought that never ends is no answer.

    Examples
    --------
    >>> answer_text("Is it 3?</think>\\nIt is 9.<|im_end|>")
    'It is 9.'
    """
    parts = list[str]()
    start, thinking = 0, False
    for mark in _MARK.finditer(reply):
        kind = mark.lastgroup
        if thinking and kind != "closes":
            continue
        before = "" if thinking else reply[start : mark.start()]
        if kind == "ends" and "".join([*parts, before]).strip("\ufeff \t\r\n"):
            return _trimmed("".join([*parts, before]))
        if kind == "opens":
            parts.append(before)
        elif not thinking:  # what came before was reasoning, or nothing
            parts.clear()
        start, thinking = mark.end(), kind == "opens"
    return _trimmed("".join([*parts, "" if thinking else reply[start:]]))


def answer_candidates(reply: str) -> list[str]:
    """Return what may be the answer in a reply, the likeliest first.

    That is what stands behind the last heading "Answer:", then the whole answer, then
    the answer with its HTML escapes read.
    """
    answer = answer_text(reply)
    headings = list(_HEADING.finditer(answer))
    candidates = [answer[headings[-1].end() :].strip()] if headings else []
    candidates.append(answer)
    if _ESCAPED_QUOTE.search(answer):
        candidates.append(html.unescape(answer))
    return candidates


def _trimmed(text: str) -> str:
    return text.strip("\ufeff\u200b \t\r\n\v\f")
