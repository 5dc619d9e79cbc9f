from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.agents.transcript import (
    SHORT_MESSAGE_CHARS,
    append_line,
    compact,
    message_from_data,
    message_to_data,
    said_in,
    shorten,
    text_of,
    with_limit,
)
from labmates.models.attached import attached_to, with_attachment
from labmates.models.prefix import mark_continued


def conversation(sizes: list[int]) -> list[BaseMessage]:
    """Return a transcript with one tool call and one result of each size."""
    messages: list[BaseMessage] = [SystemMessage("who you are"), HumanMessage("your task")]
    for i, size in enumerate(sizes):
        messages.append(AIMessage("", tool_calls=[{"id": f"c{i}", "name": "run_code", "args": {"code": f"x{i}"}}]))
        messages.append(ToolMessage("r" * size, tool_call_id=f"c{i}"))
    return messages


def length(messages: Sequence[BaseMessage]) -> int:
    return sum(len(text_of(message)) for message in messages)


@given(st.lists(st.integers(0, 20_000), max_size=12), st.integers(0, 30_000))
def test_shortening_goes_on_to_an_end_and_never_parts_a_call_from_its_result(sizes: list[int], task: int) -> None:
    messages = conversation(sizes)
    messages[1] = HumanMessage("t" * task)
    for _ in range(60):
        shorter = shorten(messages)
        if shorter is None:
            break
        assert len(shorter) < len(messages) or length(shorter) < length(messages)
        assert [m.type for m in shorter[:2]] == ["system", "human"]
        calls = [call["id"] for m in shorter if isinstance(m, AIMessage) for call in m.tool_calls]
        assert calls == [m.tool_call_id for m in shorter if isinstance(m, ToolMessage)]
        messages = shorter
    assert shorter is None
    assert all(len(text_of(m)) <= SHORT_MESSAGE_CHARS for m in messages)


def test_old_results_go_first_then_old_replies_then_the_longest_text() -> None:
    messages = conversation([5000, 5000, 5000, 5000])
    first = shorten(messages)
    assert first is not None
    assert [len(text_of(m)) < 300 for m in first if m.type == "tool"] == [True, True, False, False]
    second = shorten(first)
    assert second is not None
    assert sum(m.type == "ai" for m in second) == 2
    assert "2 replies were left out" in text_of(second[1])
    assert second[-1] == messages[-1]


messages_ = st.one_of(
    st.builds(SystemMessage, st.text()),
    st.builds(HumanMessage, st.text()),
    st.builds(lambda text: ToolMessage(text, tool_call_id="c1"), st.text()),
    st.builds(
        lambda text, name: AIMessage(text, tool_calls=[{"id": "c", "name": name, "args": {"a": 1}}]),
        st.text(),
        st.text(),
    ),
    st.builds(AIMessage, st.text()),
)


@given(messages_)
def test_a_message_survives_being_kept(message: BaseMessage) -> None:
    again = message_from_data(message_to_data(message))
    assert message_to_data(again) == message_to_data(message)
    assert again.type == message.type


def test_a_line_is_added_only_if_there_is_one() -> None:
    message = HumanMessage("a")
    assert append_line(message, "") is message
    assert text_of(append_line(message, "b")) == "a\n\nb"


def test_the_limit_is_stated_once_and_after_what_else_was_added() -> None:
    messages = [SystemMessage("who"), HumanMessage("write")]
    first = with_limit(messages, 4096)
    again = with_limit([*first[:-1], append_line(first[-1], "it was empty.")], 512)
    assert text_of(again[-1]) == (
        "write\n\nit was empty.\n\nLength limit: at most 512 tokens in this reply, reasoning included."
    )
    assert again[0] == messages[0]


@given(st.lists(st.integers(0, 20_000), max_size=12), st.integers(100, 60_000))
def test_a_transcript_is_compacted_only_if_it_does_not_fit_and_leaves_room(sizes: list[int], room: int) -> None:
    messages = conversation(sizes)
    compacted = compact(messages, length, room)
    if length(messages) <= room:
        assert compacted == messages
    else:
        assert length(compacted) <= room * 3 // 4 or shorten(compacted) is None
        assert [m.type for m in compacted[:2]] == ["system", "human"]


def test_what_a_message_says_is_the_same_with_and_without_its_mark() -> None:
    assert said_in(message_to_data(mark_continued(HumanMessage("Go on.")))) == message_to_data(HumanMessage("Go on."))


def test_attachments_are_kept_in_the_store_and_in_compacted_transcripts() -> None:
    attached = {"source": "openai:m", "message": {"reasoning_content": "hm"}}
    messages = [
        with_attachment(message, attached) if isinstance(message, AIMessage) else message
        for message in conversation([5_000] * 6)
    ]
    again = [message_from_data(message_to_data(message)) for message in messages]
    assert list(map(attached_to, again)) == list(map(attached_to, messages))
    compacted = compact(again, length, 9_000)
    assert len(compacted) < len(messages)
    assert {attached_to(message) == attached for message in compacted if isinstance(message, AIMessage)} == {True}
