"""Whether the text of an order renders its facts, so that a baseline knows nothing that a model is not told."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.models.orders import order_of


def check_rendered(
    messages: Sequence[BaseMessage], fields: Collection[str] = (), *, apart: Collection[str] = ()
) -> None:
    """Check that every message carries an order, and that its text renders all of its facts.

    Parameters
    ----------
    fields
        Keys that are not facts themselves, beside those of the outermost level.
    apart
        Keys of lists of lists whose items may stand in any order.
    """
    for message in messages:
        order = order_of(message)
        assert order is not None
        assert message.content == order.text
        assert json.loads(json.dumps(order.facts)) == order.facts
        for name, fact in order.facts.items():
            for leaves in _sequences(fact, fields, apart):
                missing = _missing(leaves, order.text)
                assert missing is None, f"{order.kind}, {name}: {missing!r} does not stand in:\n{order.text}"


def _sequences(fact: Any, fields: Collection[str], apart: Collection[str]) -> Iterator[list[str]]:
    """Yield what has to stand in the text in this order: the leaves of each list, and each other value by itself."""
    if isinstance(fact, dict):
        for name, value in fact.items():
            yield [] if name in fields else [name]
            if name in apart:
                yield from (list(_leaves(item, fields)) for items in value for item in items)
            else:
                yield from _sequences(value, fields, apart)
    else:
        yield list(_leaves(fact, fields))


def _leaves(fact: Any, fields: Collection[str]) -> Iterator[str]:
    if isinstance(fact, dict):
        for name, value in fact.items():
            yield from () if name in fields else [name]
            yield from _leaves(value, fields)
    elif isinstance(fact, list):
        for value in fact:
            yield from _leaves(value, fields)
    elif fact is not None and not isinstance(fact, bool):
        yield str(fact)


def _missing(leaves: Iterable[str], text: str) -> str | None:
    """The first of the leaves that does not stand in the text behind those before it."""
    start = 0
    for leaf in leaves:
        match = re.compile(rf"(?<![\w.-]){re.escape(leaf)}(?!\w|\.\d)").search(text, start)
        if match is None:
            return leaf
        start = match.end()
    return None
