"""Facts of an order travel beside its text, and never leave the process."""

from __future__ import annotations

import json

from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, message_to_dict
from langchain_openai import ChatOpenAI

from labmates.agents.transcript import append_line, compact, message_from_data, message_to_data, text_of, with_limit
from labmates.models.orders import Order, order_of, with_orders

ORDER = Order("game", {"secret": 4711}, "Say a number.")


def test_facts_are_in_nothing_that_is_sent_traced_or_recorded() -> None:
    for message in (ORDER.system(), ORDER.human()):
        sent = ChatOpenAI(model="m", api_key="none")._get_request_payload([message])
        for data in (sent, dumpd(message), message_to_dict(message), message.model_dump(), message_to_data(message)):
            assert "4711" not in json.dumps(data, default=str)
        assert "4711" not in repr(message)


def test_a_message_keeps_its_order_when_a_line_is_added_or_it_is_shortened() -> None:
    assert order_of(append_line(ORDER.human(), "more")) is ORDER
    assert order_of(with_limit([ORDER.human()], 100)[0]) is ORDER
    long = Order("game", {}, "word " * 5_000).human()
    [short] = compact([long], lambda messages: sum(len(text_of(message)) for message in messages), 2_000)
    assert len(text_of(short)) < 2_500
    assert order_of(short) is order_of(long)


def test_a_transcript_read_from_a_record_gets_its_orders_back() -> None:
    rules, first, second = (Order("game", {"n": n}, f"Order {n}: " + "word " * 900) for n in range(3))
    given: list[BaseMessage] = [rules.system(), first.human(), AIMessage("a"), second.human(), HumanMessage("Again.")]
    sent = with_limit(compact(given, lambda messages: sum(len(text_of(one)) for one in messages), 9_000), 64)
    recorded = with_orders([message_from_data(message_to_data(message)) for message in sent], given)
    assert [order_of(message) for message in recorded] == [order_of(message) for message in sent]
    assert [text_of(message) for message in recorded] == [text_of(message) for message in sent]
    assert any(text_of(message) != text_of(other) for message, other in zip(recorded, given, strict=False))


def test_a_transcript_that_lost_an_order_keeps_the_others() -> None:
    dropped, kept = Order("game", {"n": 1}, "The first."), Order("game", {"n": 2}, "The second.")
    given = [dropped.human(), AIMessage("a"), kept.human()]
    assert [order_of(message) for message in with_orders([HumanMessage("The second.")], given)] == [kept]
    assert order_of(with_orders([SystemMessage("The second.")], given)[0]) is None
