"""Events are read as they were stored, whichever version stored them."""

from __future__ import annotations

from labmates.records.digests import Chain
from labmates.records.events import LLMCallEvent, body_numbers, event_data, make_event
from labmates.records.rows import event_rows
from labmates.records.steps import costs

OLD_CALL = {
    "judge": "rubric:openai:gpt", "version": "2.abc", "model": "openai:gpt", "messages": [3, 4], "reply": 5,
    "finish": "stop", "input_tokens": 100, "output_tokens": 20, "cost": 70, "seed": 9, "seconds": 0.25,
}  # fmt: skip
"""The data of a judge's call as it was stored when such calls were a class of events by themselves."""


def test_a_stored_call_of_a_judge_is_a_call_by_a_judge() -> None:
    event = make_event("judge_call", 1.0, "", "", "", OLD_CALL)
    assert isinstance(event, LLMCallEvent)
    assert (event.by, event.judge, event.cost) == ("judge", "rubric:openai:gpt", 70)
    assert [*body_numbers(event)] == [3, 4, 5]
    assert costs([(0, event)]) == 70


def test_a_stored_call_of_a_judge_keeps_its_link_of_the_hash_chain() -> None:
    stored = {"seq": 7, "type": "judge_call", "at": 1.0, "step": "", "team": "", "agent": "", "data": OLD_CALL}
    event = make_event("judge_call", 1.0, "", "", "", OLD_CALL)
    assert event_data(event) == OLD_CALL
    assert Chain().longer(event_rows("run", [(7, event)]), []) == Chain().longer([stored], [])


def test_a_call_of_an_agent_is_by_an_agent_and_costs_what_its_charge_says() -> None:
    call = {name: value for name, value in OLD_CALL.items() if name not in ("judge", "version", "cost")}
    event = make_event("llm_call", 1.0, "decide/0", "", "A1", call)
    assert isinstance(event, LLMCallEvent)
    assert event.by == "agent"
    assert costs([(0, event)]) == 0


def test_links_of_the_hash_chain_stay_as_old_stores_have_them() -> None:
    stored = {"seq": 7, "type": "judge_call", "at": 1.0, "step": "", "team": "", "agent": "", "data": OLD_CALL}
    chain = Chain().longer([stored], [(7, b"\1" * 32)])
    assert chain.body_head.hex() == "df211d059fdc99bd5defd4844eae48d3e5218583e9409332012764fd834da667"
    assert chain.event_head.hex() == "1647d0116b6c33607d9f7e24aa96094d288210cbb685784484aae124f9400166"
