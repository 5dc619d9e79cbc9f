"""Tool calls that a server left in the text of a reply, in the notations of open models.

A server turns its model's own notation into fields of its protocol if it has the right parser; without it, a call
stays where the model wrote it. Notations differ in the marks around calls, and in how a call is written: as JSON, as
tags, or as Python.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from labmates.models.marks import meant_tool
from labmates.util.python_text import statements

Written = tuple[str, str]
"""A call in a text: the name of an offered tool, and its arguments as JSON, which may be broken."""

Offered = Mapping[str, Mapping[str, Any]]
"""The offered tools: by name, the JSON schemas of their arguments in their order."""

_AROUND = re.compile(
    r"</?(?:\w{1,20}:)?(?:tool_calls?|function_calls)>"  # Hermes, Qwen, GLM, Seed, MiniMax, Hunyuan, OLMo, DeepSeek 3.2
    r"|<\|/?tool_calls?(?:_section)?(?:_(?:begin|start|end))?\|>"  # Kimi, Granite, Phi, LFM
    r"|<\|(?:python_(?:tag|start|end)|action_(?:start|end)|plugin|tools_(?:prefix|suffix)|(?:START|END)_ACTION)\|>"
    r"|<｜tool▁calls?▁(?:begin|end)｜>"  # DeepSeek
    r"|\[TOOL_CALLS\]"  # Mistral
    r'|(?=<function=|<invoke name=")'  # Qwen's coders and MiniMax, where the server took the marks around
)
"""Marks around calls: Llama's, InternLM's, Apertus's and Command's are those with several names."""
_INSIDE = re.compile(r"\bfunction<｜tool▁sep｜>|(?<=[</])｜{1,2}DSML｜{1,2}")
"""Marks of DeepSeek's without a meaning of their own."""
_ENDS = ("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<｜end▁of▁sentence｜>", "</s>")

_FENCE = re.compile(r"```\w*\s")
_FENCES = re.compile(r"^```\w*[ \t]*$", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_GAP = re.compile(r"[\s}]*")
"""What may follow an object: small models close more braces than they opened."""
_TRIPLE = re.compile(r'(?<=:)(\s*)"""(.*?)"""', re.DOTALL)
"""A text in Python's quotes, in which models like to write code."""
_BROKEN = re.compile(r'\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(\{.*)\Z', re.DOTALL)
_NAMES, _ARGUMENTS = ("name", "tool_name", "tool", "function"), ("arguments", "parameters", "args", "input")

_TAG = re.compile(r"<([\w.-]{1,99})>")
_CALLED = re.compile(r"([\w.-]+)[(:]\s*(\{.*\})\s*\)?", re.DOTALL)
"""A call as programs write it, with one object, or the tool's name as a title; small models forget to close it."""
_NAMED = re.compile(
    r"([\w.:/-]{1,99})(?:\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?\s*(?:```json\s+)?(\{.*)\Z", re.DOTALL
)
"""A name and its arguments between marks."""
_HEAD = re.compile(
    r'<(?:function=|invoke name=")([\w.:/-]{1,99})"?>|([\w.:/-]{1,99})\s*(?:<tool_sep>\s*)?(?=<arg_key>)'
)
_KEY = re.compile(
    r'\s*(?:<parameter(?:=| name=")([\w.-]{1,99})"?(?: string="\w{4,5}")?>'
    r"|<arg_key>([\w.-]{1,99})</arg_key>\s*<arg_value>)"
)
_PYTHON = re.compile(r"\[?\s*([\w.]{1,99})\(")


def written_calls(text: str, offered: Offered) -> tuple[str, list[Written]]:
    """The text without the tool calls in it, and these calls; the whole text if they are not unambiguous.

    Calls between a model's marks may follow other text, but no text follows them: it would make them examples. Without
    marks, the text must be nothing but calls: JSON objects, fenced or not, each with the name of an offered tool and
    its arguments, ``tool({…})``, ``tool: {…}``, or ``tool(key=value)``. A tag around one may have the tool's name.
    """
    whole = _INSIDE.sub("", text).strip()
    for end in _ENDS:
        whole = whole.removesuffix(end).rstrip()
    if calls := _calls(whole, offered):
        return "", calls
    if first := _AROUND.search(whole):
        between = (piece.strip() for piece in _AROUND.split(whole[first.start() :]))
        if calls := _all(_named(piece, offered) or _calls(piece, offered) for piece in between if piece):
            return whole[: first.start()].strip(), calls
    return text, []


def _all(pieces: Iterable[list[Written]]) -> list[Written]:
    """The calls of all pieces; empty if one has none."""
    found = list(pieces)
    return list(chain(*found)) if all(found) else []


def _calls(text: str, offered: Offered) -> list[Written]:
    """The calls of a text that is nothing else."""
    if fence := _FENCE.match(text):
        blocks = (block.strip() for block in _FENCES.split(text))
        return _form(text[fence.end() :].removesuffix("```").strip(), offered) or _all(
            _form(block, offered) for block in blocks if block
        )
    return _form(text, offered)


def _form(text: str, offered: Offered) -> list[Written]:
    if (tag := _TAG.match(text)) and tag[1] in offered and text.endswith(end := f"</{tag[1]}>"):
        text, offered = text[tag.end() :].removesuffix(end).strip(), {tag[1]: offered[tag[1]]}
    if (called := _CALLED.fullmatch(text)) and (tool := meant_tool(called[1], offered)):
        return _in_objects(called[2], [tool]) or [(tool, called[2])]
    return _in_objects(text, offered) or _in_tags(text, offered) or _in_python(text, offered)


def _named(text: str, offered: Offered) -> list[Written]:
    if text in offered:
        return [(text, "{}")]
    named = _NAMED.match(text)
    tool = meant_tool(named[1], offered) if named else None
    return [(tool, named[2].removesuffix("```"))] if named and tool else []


def _in_objects(text: str, offered: Collection[str]) -> list[Written]:
    """The calls in JSON objects or a list of them; empty if one is no call of an offered tool, or other text remains.

    Braces may be doubled, as small models repeat those of templates, and more be closed than were opened. Repetitions
    of a call are one call, also if the reply's limit cut the last one.
    """
    text, at = _TRIPLE.sub(lambda match: json.dumps(match[2]), text), 0
    calls: list[Written | None] = []
    while at < len(text):
        doubled = text.startswith("{{", at)
        try:
            value, at = _DECODER.raw_decode(text, at + doubled)
        except (ValueError, RecursionError):
            if calls and len(set(calls)) == 1 and text[:at].startswith(text[at:]):
                break
            broken = _BROKEN.match(text)
            tool = meant_tool(broken[1], offered) if broken and not calls else None
            return [(tool, broken[2])] if broken and tool else []
        gap = _GAP.match(text, at)
        assert gap is not None
        at = gap.end()
        calls += [_in_object(item, offered) for item in (value if isinstance(value, list) else [value])]
    return [call for call in dict.fromkeys(calls) if call is not None] if None not in calls else []


def _in_object(value: Any, offered: Collection[str]) -> Written | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if len(value) == 1 and isinstance(next(iter(value.values())), dict):
        [(name, arguments)] = value.items()
    tool = meant_tool(name, offered) if name else None
    if tool is None or not isinstance(arguments, dict | str):
        return None
    return tool, arguments if isinstance(arguments, str) else json.dumps(arguments)


def _in_tags(text: str, offered: Offered) -> list[Written]:
    """A call with a tag for itself and for each argument, or for the key and the value of each; the last may be cut."""
    head = _HEAD.match(text)
    tool = meant_tool(head[1] or head[2], offered) if head else None
    if head is None or tool is None:
        return []
    whole = text[head.end() :].strip()
    body = whole.removesuffix("</function>").removesuffix("</invoke>").rstrip()
    if body.startswith("{") or not whole:
        return [(tool, body)] if whole else []
    arguments, at = dict[str, Any](), 0
    while at < len(body):
        key = _KEY.match(body, at)
        if key is None:
            return []
        close, name = ("</parameter>", key[1]) if key[1] else ("</arg_value>", key[2])
        end = body.find(close, key.end())
        if end < 0:
            return [(tool, json.dumps({**arguments, name: body[key.end() :]})[:-2])]
        arguments[name] = _typed(body[key.end() : end], offered[tool].get(name, {}))
        at = end + len(close)
    return [(tool, json.dumps(arguments))]


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    """A value between tags: JSON unless it may be a text, whose line breaks beside the tags are not part of it."""
    types = {kind.get("type") for kind in schema.get("anyOf", [schema])}
    if not types & {"string", None}:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text.removeprefix("\n").removesuffix("\n")


def _in_python(text: str, offered: Offered) -> list[Written]:
    """Calls in Python, in a list or by themselves, with literals as arguments."""
    begun = _PYTHON.match(text)
    if begun is None or meant_tool(begun[1], offered) is None:
        return []
    values = [each.value if isinstance(each, ast.Expr) else each for each in statements(text) or ()]
    calls = chain(*(value.elts if isinstance(value, ast.List) else [value] for value in values))
    try:
        return [_in_call(call, offered) for call in calls]
    except (ValueError, TypeError, RecursionError, MemoryError):
        return []


def _in_call(call: ast.AST, offered: Offered) -> Written:
    """Raise `ValueError` or `TypeError` if it is not a call of an offered tool that JSON can say."""
    tool = meant_tool(ast.unparse(call.func), offered) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or tool is None or len(call.args) > len(offered[tool]):
        raise ValueError("no call of a tool")
    given = dict(zip(offered[tool], call.args, strict=False)) | {each.arg: each.value for each in call.keywords}
    return tool, json.dumps({name: ast.literal_eval(value) for name, value in given.items()})
