"""Tokens of a call: the server's report if plausible, else an estimate without the model's tokenizer.

The text is split where byte-pair tokenizers split it (words, numbers, punctuation, white space), and each piece is
counted by its length. The rates are fitted to two tokenizers at the ends of the range in use: Mistral's Tekken (131,000
entries, as efficient on English and code as those of OpenAI and Llama 3) and Mistral 7B's (32,000 entries, like
Llama 2's). Estimates divided by their true counts: English prose 1.00–1.12 and 0.90–1.04, Python code 1.07–1.14 and
0.90–0.96, JSON 1.2, tables of numbers 0.81–0.91. Estimates for other scripts lie between the two counts, which differ
by a factor of up to three.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from operator import mul
from typing import TYPE_CHECKING, Any, Final

from labmates.budgets.prices import Price

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


MESSAGE_TOKENS = 4
"""Tokens of a chat template per message: role and delimiters."""

PROMPT_TOKENS = 3
"""Tokens of a chat template that start the reply."""

ATTACHED: Final = "attached"
"""Key of LangChain's ``additional_kwargs`` for what a provider attached to a reply, which is sent beside its text."""
TEXT_BLOCKS: Final = ("text", "output_text")
CALL_BLOCKS: Final = ("tool_use", "tool_call", "function_call", "custom_tool_call", "invalid_tool_call")
"""Types of content blocks that repeat the text and the calls of a reply."""
OPAQUE_RATE: Final = 0.2
"""Tokens per character of encrypted reasoning: base64 of its text with some overhead."""
_LEAST_OPAQUE = 64
_NAMES: Final = ("type", "id", "source", "format", "model_provider", "status")
"""Members of what is attached that are no thoughts."""

_KNOWN: Final[dict[bytes, int]] = {}
"""Estimates by the digest of the text."""
_MOST_KNOWN: Final = 8_192
TEMPLATE_TOKENS = 2_048
"""Most tokens that a provider adds to a prompt: a system prompt, instructions on tools."""

PIECE = re.compile(
    r"[A-Za-z0-9]{32,}"  # hashes, base64
    r"|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]"
    r"| ?[0-9]+"
    r"|\s+"
    r"|[!-/:-@\[-`{-~]+"
    r"|[^\x00-\x7f\s]+"
    r"|[^\s]"
)

# Tokens per character: few if tokenizers know whole words of a script, many if they fall back on bytes.
LATIN_RATE = 0.5  # Latin letters with marks: each one tends to break a word.
ALPHABET_RATE = 0.4  # Greek, Cyrillic, Armenian, Hebrew, Arabic.
SYLLABLE_RATE = 0.75  # Indic scripts, Thai, Georgian, Ethiopic and others below the CJK blocks.
IDEOGRAPH_RATE = 0.95  # Chinese, Japanese, Korean.
OTHER_RATE = 3.0  # Emoji and rare symbols: several byte tokens.
RANDOM_RATE = 0.7  # Random letters and digits.
DIGIT_RATE = 0.75  # Some have a token per digit (Qwen, Gemma, Mistral), others per three digits (OpenAI, Llama 3).


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text, in linear time: 0 if it is empty, else at least 1.

    >>> estimate_tokens("The lead writes a plan of five points.")
    9
    """
    if not text:
        return 0
    # Conversations are estimated at every turn, and only their last messages are new. The texts are not kept.
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if (known := _KNOWN.get(digest)) is None:
        pieces = Counter(PIECE.findall(text))
        known = max(1, round(sum(map(mul, pieces.values(), map(_of_piece, pieces)), 0.0)))
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[digest] = known
    return known


def estimate_messages(messages: Sequence[BaseMessage], tools: Iterable[Mapping[str, Any]] = ()) -> int:
    """The estimated tokens of a prompt: messages, tool calls, the tools' OpenAI schemas, and the chat template."""
    total = PROMPT_TOKENS
    for message in messages:
        total += MESSAGE_TOKENS + estimate_tokens(text_of(message.content)) + _thought_tokens(message)
        for call in _tool_calls(message):
            total += MESSAGE_TOKENS + estimate_tokens(call["name"]) + estimate_tokens(_compact(call["args"]))
    return total + sum(MESSAGE_TOKENS + _measures(schema)[0] for schema in tools)


def token_bound(messages: Sequence[BaseMessage], tools: Iterable[Mapping[str, Any]] = ()) -> int:
    """An upper bound of a prompt's tokens with any tokenizer and chat template: one per byte, and some."""
    total = TEMPLATE_TOKENS
    for message in messages:
        content = message.content if isinstance(message.content, str) else _compact(message.content)
        calls: list[object] = [(call["name"], call["args"]) for call in _tool_calls(message)]
        calls += filter(None, [message.additional_kwargs.get(ATTACHED)])
        total += 4 * MESSAGE_TOKENS + _bytes(content) + (_bytes(_compact(calls)) if calls else 2)
    return total + sum(4 * MESSAGE_TOKENS + _measures(schema)[1] for schema in tools)


def beginning(text: str, tokens: int) -> str:
    """The beginning of a text, up to an estimated number of tokens."""
    left = float(tokens)
    for piece in PIECE.finditer(text):
        left -= _of_piece(piece[0])
        if left < 0:
            return text[: piece.start()]
    return text


def text_of(content: object) -> str:
    """The text of a message's content (text, or a list of blocks)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") if isinstance(block, dict) else block for block in content)
    return "".join(text for text in texts if isinstance(text, str))


@lru_cache(maxsize=8192)
def _of_piece(piece: str) -> float:
    length, first = len(piece), piece[0]
    if first.isspace() and not piece[-1].isdigit():
        return 0.0 if piece == " " else 1 + length / 24  # One space belongs to the word after it.
    if not first.isascii():
        return 0.3 + sum(map(_rate, piece))
    if piece.isalnum() and length >= 32:
        return RANDOM_RATE * length
    if piece[-1].isdigit():
        return 0.25 + DIGIT_RATE * length
    if first.isalpha():
        whole = 4 if piece.isupper() else 7
        return 1.05 + max(0, length - whole) / 4
    if length == 1:
        return 0.85  # A symbol before a word often belongs to the word's token.
    return 1 + length / 8 if piece.count(first) == length else 0.9 + length / 4


def _rate(char: str) -> float:
    code = ord(char)
    if code < 0x370:
        return LATIN_RATE
    if code < 0x780:
        return ALPHABET_RATE
    if code < 0x1E00:
        return SYLLABLE_RATE
    if 0x3040 <= code < 0xD7B0:
        return IDEOGRAPH_RATE
    return LATIN_RATE if code < 0x2070 else OTHER_RATE


def _thought_tokens(message: BaseMessage) -> int:
    """The estimated tokens of the thoughts that a reply is sent back with; encrypted ones count if no others do."""
    attached = message.additional_kwargs.get(ATTACHED)
    blocks = message.content if message.type == "ai" and isinstance(message.content, list) else ()
    if not attached and not blocks:
        return 0
    texts = set(_strings([attached, blocks]))
    opaque = {text for text in texts if len(text) >= _LEAST_OPAQUE and not re.search(r"\s", text)}
    if readable := texts - opaque:
        return sum(map(estimate_tokens, readable))
    return sum(round(OPAQUE_RATE * len(text)) for text in opaque)


def _strings(value: object, name: str = "") -> Iterator[str]:
    """The texts in what is attached to a reply, without those of the reply itself."""
    if isinstance(value, str):
        if name not in _NAMES:
            yield value
    elif isinstance(value, Mapping):
        if value.get("type") not in (*TEXT_BLOCKS, *CALL_BLOCKS) or name == "thinking":
            for key, inner in value.items():
                yield from _strings(inner, key)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner, name)


def _tool_calls(message: BaseMessage) -> Sequence[Mapping[str, Any]]:
    """The tool calls of a message; pydantic's lookup of a missing field would be much slower."""
    return vars(message).get("tool_calls") or ()


class FixedSchema(dict[str, Any]):
    """A tool's schema that nobody changes; it is measured once, though each call of a run is."""

    @cached_property
    def measures(self) -> tuple[int, int]:
        """Its estimated tokens and its bytes."""
        return _measured(self)


def _measures(schema: Mapping[str, Any]) -> tuple[int, int]:
    return schema.measures if isinstance(schema, FixedSchema) else _measured(schema)


def _measured(schema: Mapping[str, Any]) -> tuple[int, int]:
    text = _compact(schema)
    return estimate_tokens(text), _bytes(text)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


LIMIT_FIELDS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens", "num_predict")
"""Names of the reply limit in chat model classes."""
MOST_TOKENS = 100_000_000
"""Longer than any context: a larger figure is a server's mistake."""
_LEAST_READ, _FEW = 0.6, 1_000
"""A server that counts this share of an estimate has not read the whole prompt: no tokenizer is that dense."""
_WRITTEN = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""LangChain's fields for tokens written to a cache."""


@dataclass(frozen=True)
class Usage:
    """Tokens of a call; `estimated` if any figure is an estimate.

    `reasoning_tokens` are part of `output_tokens`. `cached_tokens` (read from the provider's prompt cache) and
    `cache_write_tokens` (written to it) are parts of `input_tokens`.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    estimated: bool = False
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def cost(self, price: Price) -> int:
        """The cost of the call at `price`, in micro-dollars."""
        return price.cost(
            self.input_tokens,
            self.output_tokens,
            cached=self.cached_tokens,
            cache_write=self.cache_write_tokens,
            reasoning=self.reasoning_tokens,
        )


def limited(chat: BaseChatModel, limit: int) -> BaseChatModel:
    """The chat model with a limit on its replies, in tokens; unchanged if its class has none."""
    fields: dict[str, Any] = {name: limit for name in LIMIT_FIELDS if name in type(chat).model_fields}
    return chat.model_copy(update=fields) if fields else chat


def read_count(value: object) -> int | None:
    """A reported number of tokens as an integer; None if it is invalid, negative or absurdly large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return math.ceil(value) if 0 <= value <= MOST_TOKENS else None


def read_usage(
    reported: Mapping[str, Any] | None,
    *,
    prompt: Callable[[], int],
    output: Callable[[], int],
    reasoning: int,
    most: tuple[int, int] = (MOST_TOKENS, MOST_TOKENS),
) -> tuple[Usage, tuple[str, ...]]:
    """The tokens of a call, and notes on implausible figures in the report.

    Parameters
    ----------
    reported
        LangChain's ``usage_metadata`` of the reply, or None.
    prompt, output
        Estimates, computed only if a figure is missing. Neither can be 0, so 0 counts as missing.
    reasoning
        Estimated tokens of the reasoning text, used if the server reports no count.
    most
        Upper bounds of the input and output tokens; they replace higher figures.

    Notes
    -----
    Some servers exclude reasoning from the output tokens: their total is the sum of all three. This is corrected.
    """
    counts: Mapping[str, Any] = reported or {}
    details = counts.get("output_token_details")
    thought = read_count(details.get("reasoning")) if isinstance(details, Mapping) else None
    parts = counts.get("input_token_details")
    parts = parts if isinstance(parts, Mapping) else {}
    cached = read_count(parts.get("cache_read")) or 0
    # LangChain gives either the total or its parts, and then a total of 0.
    written = sum(read_count(parts.get(name)) or 0 for name in _WRITTEN)
    input_tokens, output_tokens = read_count(counts.get("input_tokens")), read_count(counts.get("output_tokens"))
    if (
        thought
        and input_tokens
        and read_count(counts.get("total_tokens")) == input_tokens + (output_tokens or 0) + thought
    ):
        output_tokens = (output_tokens or 0) + thought
    estimated_output = 0 if output_tokens else output()
    total = output_tokens or estimated_output
    whole_input = input_tokens or prompt()
    notes = []
    if input_tokens and 6 * input_tokens < most[0] and input_tokens + _FEW < _LEAST_READ * (sent := prompt()):
        notes.append(
            f"the server counted {input_tokens:,} input tokens in a prompt of about {sent:,}: it may have cut it; "
            "see the context of the model's server"
        )
    doubts = [
        f"the server reported {figure:,} {name} tokens, of which there can't have been more than {bound:,}: "
        "these are charged"
        for name, figure, bound in zip(("input", "output"), (whole_input, total), most, strict=True)
        if figure > bound
    ]
    whole_input, total = min(whole_input, most[0]), min(total, most[1])
    cached = min(cached, whole_input)
    usage = Usage(
        input_tokens=whole_input,
        output_tokens=total,
        reasoning_tokens=min(total, thought or reasoning),
        estimated=bool(doubts) or not input_tokens or output_tokens is None or estimated_output > 0,
        cached_tokens=cached,
        cache_write_tokens=min(written, whole_input - cached),
    )
    return usage, (*notes, *doubts)
