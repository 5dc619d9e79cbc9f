"""Replies of models behind another protocol are passed on as they come, as far as nothing can change them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from labmates.budgets.tokens import Usage
from labmates.models.reply import LISTENER, Piece, Reply, ToolCall
from labmates_doors.protocols import PROTOCOLS
from labmates_doors.protocols.answering import Passage
from labmates_doors.protocols.base import Prompt, Protocol, RefusedRequestError
from labmates_doors.protocols.chat import CHAT
from labmates_doors.protocols.responses import RESPONSES

LOOK = ToolCall("c1", "look", {"where": "here"})
CALLED = [Piece('{"where"', "call", 0, "c1", "look"), Piece(': "here"}', "call", 0)]


def reply_of(text: str, *calls: ToolCall) -> Reply:
    return Reply(text, calls, (), AIMessage(""), "tool_calls" if calls else "stop", Usage(1, 1))


def passage(
    protocol: Protocol, *, stop: tuple[str, ...] = (), one_call: bool = False, namespaces: tuple[str, ...] = ()
) -> Passage:
    prompt = Prompt([], [], "", None, 0, None, stop, one_call, namespaces)
    return Passage(protocol, {"stream": True, "stream_options": {"include_usage": True}}, prompt, "m")


async def passed(
    protocol: Protocol, pieces: Sequence[Piece | None], end: Reply | Exception, **prompt: Any
) -> list[bytes]:
    """The parts that a program gets of a reply that comes in pieces."""

    async def asking() -> Reply:
        listener = LISTENER.get()
        assert listener is not None
        for piece in pieces:
            listener(piece)
            await asyncio.sleep(0)  # each is passed on before the next one comes
        if isinstance(end, Exception):
            raise end
        return end

    return [part async for part in passage(protocol, **prompt).parts(asking)]


def data_of(parts: Sequence[bytes]) -> list[Any]:
    """The data of the events in some parts."""
    lines = [line[6:] for line in b"".join(parts).decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def texts_of(parts: Sequence[bytes]) -> list[str]:
    """The texts in the chunks of chat completions, without the empty ones."""
    deltas = [choice["delta"] for part in data_of(parts) for choice in part.get("choices", ())]
    return [delta["content"] for delta in deltas if delta.get("content")]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
async def test_texts_and_calls_are_passed_on_before_the_reply_is_whole(protocol: Protocol) -> None:
    goes_on = asyncio.Event()

    async def asking() -> Reply:
        listener = LISTENER.get()
        assert listener is not None
        for piece in (None, Piece("hm", "reasoning"), Piece("Let me "), Piece("look."), *CALLED):
            listener(piece)
        await goes_on.wait()
        return reply_of("Let me look.", LOOK)

    parts = passage(protocol).parts(asking)
    early = await anext(parts)
    goes_on.set()
    late = [part async for part in parts]
    assert all(word in early.decode() for word in ("Let me", " look.", "where", "here"))
    said = protocol.said(data_of([early, *late]))
    assert said["content"] == "Let me look."
    [call] = said["tool_calls"]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("c1", {"where": "here"})


@pytest.mark.parametrize(
    ("pieces", "whole", "texts"),
    [
        (["  It", " is ", "here. \n"], "It is here.", ["It", " is", " here."]),
        (["One <", " 2, <thin"], "One < 2, <thin", ["One", " < 2,", " <thin"]),
        (["<think>hm", "</think>Yes"], "Yes", ["Yes"]),
        (["A <think>b</think>", " c"], "A  c", ["A", "  c"]),
        (["so hm</think>", "Yes"], "Yes", ["so hm", "\n\nYes"]),
        (["too long"], "too", ["too long"]),
        ([], "whole", ["whole"]),
    ],
)
async def test_reasoning_and_white_space_around_it_stay_out(pieces: list[str], whole: str, texts: list[str]) -> None:
    assert texts_of(await passed(CHAT, list(map(Piece, pieces)), reply_of(whole))) == texts


async def test_texts_that_come_together_are_one_event() -> None:
    async def asking() -> Reply:
        listener = LISTENER.get()
        assert listener is not None
        for piece in (Piece("It "), Piece("is"), *CALLED, Piece(" here. ")):
            listener(piece)
        return reply_of("It is here.", LOOK)

    assert texts_of([part async for part in passage(CHAT).parts(asking)]) == ["It is", " here."]


async def test_nothing_follows_a_text_that_ends_the_reply() -> None:
    pieces = [*map(Piece, ["Fine E", "ND and E", "ND"]), *CALLED]
    parts = await passed(CHAT, pieces, reply_of("Fine END and END", LOOK), stop=("END",))
    assert texts_of(parts) == ["Fine", " "]
    assert "look" not in b"".join(parts).decode()


async def test_one_call_at_once_is_the_first() -> None:
    second = Piece("{}", "call", 1, "c2", "look")
    for pieces in ([*CALLED, second], []):
        parts = await passed(CHAT, pieces, reply_of("", LOOK, ToolCall("c2", "look", {})), one_call=True)
        assert [call["id"] for call in CHAT.said(data_of(parts))["tool_calls"]] == ["c1"]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
async def test_a_reply_that_breaks_off_ends_in_an_error_of_the_protocol(protocol: Protocol) -> None:
    refusal = RefusedRequestError("the provider is gone", 502)
    with pytest.raises(RefusedRequestError):
        await passed(protocol, [None], refusal)
    for pieces, end in (([Piece("Half")], refusal), ([Piece("Half"), None, Piece("Whole")], reply_of("Whole"))):
        last = data_of(await passed(protocol, pieces, end))[-1]
        assert "error" in (last.get("type"), *last)
        assert "gone" in str(last) or "retry" in str(last)


async def test_another_attempt_before_the_first_part_does_no_harm() -> None:
    parts = await passed(CHAT, [None, Piece("<"), None, Piece("Good")], reply_of("Good"))
    assert texts_of(parts) == ["Good"]


async def test_a_call_of_a_tool_in_a_namespace_names_both() -> None:
    whole = reply_of("", replace(LOOK, name="mcp__lab__look"))
    for pieces in ([CALLED[0]._replace(name="mcp__lab__look"), CALLED[1]], []):
        events = data_of(await passed(RESPONSES, pieces, whole, namespaces=("mcp__lab",)))
        [item] = events[-1]["response"]["output"]
        assert (item["namespace"], item["name"]) == ("mcp__lab", "look")
        [call] = RESPONSES.said(events)["tool_calls"]
        assert call["function"]["name"] == "mcp__lab__look"
