"""Transcripts of agents: new messages once, changed ones as differences, and agents side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import Event, LLMCallEvent
from labmates.records.store import Store
from labmates.viewer.pages.transcript import PER_PAGE
from tests.support.recorded import add
from tests.support.site import Site, served

Message = dict[str, Any]
HOSTILE = "</pre><script>alert(1)</script>"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A run of two agents: the first keeps its prompt, then gets another order and loses a message."""
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        bodies = Bodies()
        order: Message = {"role": "system", "content": "Be brief.\nBe polite."}
        user: Message = {"role": "user", "content": HOSTILE}
        answer: Message = {
            "role": "assistant",
            "content": "I run code.",
            "tool_calls": [{"name": "run_code", "args": {"code": "1+1"}}],
        }
        output: Message = {"role": "tool", "content": "two"}
        other_order: Message = {"role": "system", "content": "Be brief.\nBe rude."}
        prompts = [[order, user], [order, user, answer, output], [other_order, output]]
        replies: list[Message] = [answer, *({"role": "assistant", "content": said} for said in ("It is two.", "Go."))]
        events: list[Event] = [
            _call(bodies, "ada", prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)
        ]
        events.insert(1, _call(bodies, "bob", [order], {"role": "assistant", "content": "Bob is here."}))
        told: Message = {"role": "user", "content": "Add the numbers."}
        for prompt in ([order], [order, answer, output]):
            events += [
                _call(bodies, "eve", [told], answer, tokens=1234),
                _call(bodies, "eve", prompt, answer, model="seat:eve", tokens=0),
            ]
        add(store, "science", events, bodies, id="two")
        many = Bodies()
        add(
            store,
            "science",
            [_call(many, "ada", [order], answer) for _ in range(PER_PAGE + 1)],
            many,
            id="many",
            key="m",
        )
        add(store, "science", [], Bodies(), id="none", key="n")
        with served(store) as site:
            yield site


def _call(
    bodies: Bodies, agent: str, prompt: Sequence[Message], reply: Message, model: str = "m", tokens: int = 1
) -> LLMCallEvent:
    return LLMCallEvent(
        team="data",
        agent=agent,
        model=model,
        messages=[bodies.keep(message) for message in prompt],
        reply=bodies.keep(reply),
        finish="stop",
        input_tokens=tokens,
        output_tokens=tokens,
        seed=1,
    )


def test_an_agent_s_transcript_says_each_message_once(site: Site) -> None:
    page = site.get("/runs/two/transcript").text
    assert page.count("&lt;/pre&gt;&lt;script&gt;alert(1)") == 1
    assert HOSTILE not in page
    assert page.count("I run code.") == 1
    assert "1+1" in page
    assert page.count(">two</pre>") == 1
    assert "3 unchanged messages" in page
    assert "Bob is here." not in page


def test_a_changed_prompt_is_shown_as_a_difference(site: Site) -> None:
    page = site.get("/runs/two/transcript").text
    assert '<span class="del">-Be polite.' in page
    assert '<span class="add">+Be rude.' in page
    assert "changed system" in page
    assert "no longer sent" in page


def test_agents_stand_side_by_side_in_lanes(site: Site) -> None:
    page = site.get("/runs/two/transcript?agent=ada&agent=bob").text
    assert page.count('<li class="panel lane0"') == 3
    assert page.count('<li class="panel lane1"') == 1
    assert page.index("I run code.") < page.index("Bob is here.") < page.index("It is two.")


def test_an_own_agent_s_talk_with_the_lab_and_with_its_model_are_apart(site: Site) -> None:
    page = site.get("/runs/two/transcript?agent=eve").text
    assert not re.search("changed (system|user|assistant)", page)
    assert (page.count("Be polite."), page.count("Add the numbers.")) == (1, 1)
    assert [page.count(f'class="meta">{model} · ') for model in ("m", "seat:eve")] == [2, 2]
    story = site.get("/runs/two/story").text
    assert (story.count("1,234 + 1,234 tokens"), "0 + 0 tokens" in story) == (2, False)
    assert "seat:eve replied" in story


def test_wrong_agents_and_pages_are_refused_and_long_ones_paged(site: Site) -> None:
    unknown = site.get("/runs/two/transcript?agent=adda")
    assert (unknown.status, "unknown agent &#39;adda&#39;" in unknown.text) == (400, True)
    assert site.get("/runs/many/transcript").text.count('<li class="panel') == PER_PAGE
    assert site.get("/runs/many/transcript?page=2").text.count('<li class="panel') == 1
    assert site.get("/runs/many/transcript?page=3").status == 400
    assert "No agent has called a model." in site.get("/runs/none/transcript").text
