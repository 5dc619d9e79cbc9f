"""Reasoning that a model writes into its text, between tags."""

from __future__ import annotations

import re

OPEN = re.compile(r"<think(?:ing)?>|\[THINK\]", re.IGNORECASE)
CLOSE = re.compile(r"</think(?:ing)?>|\[/THINK\]", re.IGNORECASE)


def split_thinking(text: str, *, cut: bool) -> tuple[str, str]:
    """Split a reply into what it says and what it reasons.

    Closed blocks are taken out wherever they are. A block that is never closed is reasoning to its end if the
    reply begins with it or was cut; else the tag is taken for a word of the text. A closing tag alone ends
    reasoning whose opening tag was part of the prompt (as the templates of some models have it).

    Parameters
    ----------
    text
        The reply's text.
    cut
        Whether the reply was ended by the length limit.

    Returns
    -------
    tuple
        The text and the reasoning, both without white space around them.
    """
    if CLOSE.search(text) is None and OPEN.search(text) is None:
        return text.strip(), ""
    said: list[str] = []
    thought: list[str] = []
    opened, closed = OPEN.search(text), CLOSE.search(text)
    at = 0
    if closed and (opened is None or closed.start() < opened.start()):
        thought.append(text[: closed.start()])
        at = closed.end()
    while opened := OPEN.search(text, at):
        closed = CLOSE.search(text, opened.end())
        if closed is None:
            break
        said.append(text[at : opened.start()])
        thought.append(text[opened.end() : closed.start()])
        at = closed.end()
    if opened and (cut or not "".join([*said, text[at : opened.start()]]).strip()):
        said.append(text[at : opened.start()])
        thought.append(text[opened.end() :])
    else:
        said.append(text[at:])
    return "".join(said).strip(), "\n".join(part.strip() for part in thought if part.strip())
