"""One loop asks models: it counts unusable replies, sends them back with what is wrong, and gives up in the end."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from labmates.budgets.tokens import Usage
from labmates.models.conversation import Conversation, Exchange
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Fault, Reply


def reply(text: str, *faults: Fault) -> Reply:
    return Reply(text, (), faults, AIMessage(text), "stop", Usage(1, 1))


def number_in(answer: Reply, last: bool) -> int:
    if answer.text.isdigit() or (last and answer.text == "seven"):
        return 7 if answer.text == "seven" else int(answer.text)
    raise UnusableAnswerError(f"'{answer.text}' is no number", remark="Digits!" if answer.text == "many" else "")


class Model:
    """Gives its replies one after the other, and keeps what it heard."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.heard: list[tuple[int, list[str]]] = []
        self.failed: list[tuple[int, str]] = []

    async def call(self, messages: list[BaseMessage], number: int) -> Exchange:
        self.heard.append((number, [str(message.content) for message in messages]))
        return Exchange(self.replies.pop(0), messages)

    def talk(self, *, first: int = 0) -> Conversation:
        def fail(number: int, reason: str) -> None:
            self.failed.append((number, reason))

        return Conversation(self.call, [HumanMessage("How many?")], send_back=send_back, failed=fail, number=first)


def send_back(messages: list[BaseMessage], said: Reply, problem: UnusableAnswerError) -> list[BaseMessage]:
    return [*messages, AIMessage(said.text), HumanMessage(problem.remark or f"Again: {problem}")]


async def test_a_usable_reply_needs_one_call() -> None:
    model = Model(reply("3"))
    assert await model.talk().ask(number_in, repair_turns=2) == 3
    assert (len(model.heard), model.failed) == (1, [])


async def test_an_unusable_reply_goes_back_with_what_is_wrong_or_with_its_own_remark() -> None:
    model = Model(reply("some"), reply("many"), reply("4"))
    assert await model.talk(first=5).ask(number_in, repair_turns=2) == 4
    assert [number for number, _ in model.heard] == [5, 6, 7]
    assert model.heard[-1][1] == ["How many?", "some", "Again: 'some' is no number", "many", "Digits!"]
    assert model.failed == [(5, "'some' is no number"), (6, "'many' is no number")]


async def test_the_last_reply_is_read_as_the_last() -> None:
    assert await Model(reply("seven"), reply("seven")).talk().ask(number_in, repair_turns=1) == 7


async def test_after_the_last_repair_turn_the_question_is_given_up() -> None:
    model = Model(reply("some"), reply("none"), reply("5"))
    with pytest.raises(UnusableAnswerError, match="'none' is no number"):
        await model.talk().ask(number_in, repair_turns=1)
    assert (len(model.heard), len(model.failed)) == (2, 2)


async def test_faults_are_counted_even_where_the_reply_is_used() -> None:
    model = Model(reply("6", "cut"))
    assert await model.talk().ask(number_in, repair_turns=0) == 6
    assert model.failed == [(0, "cut")]
