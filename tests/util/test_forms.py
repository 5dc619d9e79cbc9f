"""A repair turn says in plain words what is wrong, with key, value and limit, and shows the form."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.agents.decisions import numbers_form, read_decision
from labmates.agents.prompts import render
from labmates.mechanisms.play import mixture
from labmates.models.objects import NoAnswerError, UnusableAnswerError, read_object
from labmates.tasks.findings import read_findings
from labmates.tasks.registry import TASKS
from labmates.tasks.schema import findings_example
from labmates.util.forms import form_words
from labmates.workflows.dilemmas.briefs import form_of
from labmates.workflows.play.playing import decision_of
from labmates.workflows.tournament.briefs import move_form
from tests.agents.test_decisions import reply

EFFORT = numbers_form({"effort": (0, 10)})
SPLIT = numbers_form({"keep": (0, 10), "group": (0, 10), "global": (0, 10)}, most=10)
MIX = form_of(mixture(("A0", "A1")))
TOKENS = numbers_form({"A2": (0, 5), "A3": (0, 5)}, most=5, not_keys={"A1": "is yourself: tokens go to others only"})
MOVE = move_form(("action_a", "action_b"), may_leave=True)

FAULTS: list[tuple[Any, str, str]] = [
    (EFFORT, '{"effort": 20}', '"effort" is 20, but the most is 10'),
    (EFFORT, '{"effort": -1}', '"effort" is -1, but the least is 0'),
    (EFFORT, '{"effort": 3.0}', '"effort" is 3.0; write a whole number without a decimal point'),
    (EFFORT, '{"effort": 2.7}', '"effort" is 2.7, but it has to be a whole number'),
    (EFFORT, '{"effort": "3"}', '"effort" is "3", a text; write a whole number without quotes'),
    (EFFORT, '{"effort": "high"}', '"effort" is "high", but it has to be a whole number'),
    (EFFORT, '{"Effort": 3}', 'the key has to be "effort", not "Effort"'),
    (EFFORT, '{"level": 3}', 'the key "effort" is missing; the key "level" is not part of the form; leave it out'),
    (SPLIT, '{"Keep": 3, "Group": 3, "Global": 4}', 'the key has to be "keep", not "Keep"; the key has to be "group", '
     'not "Group"; the key has to be "global", not "Global"'),
    (SPLIT, '{"keep": 3, "group": 4, "global": 5}',
     'the numbers may add up to 10 at the most, not 12 (3 + 4 + 5 is 2 too many); change one of them: "keep" to 1 at '
     'the most, or "group" to 2 at the most, or "global" to 3 at the most'),
    (TOKENS, '{"A2": 5, "A3": 2}', "the numbers may add up to 5 at the most, not 7 (5 + 2 is 2 too many); change one "
     'of them: "A2" to 3 at the most, or "A3" to 0 at the most'),
    (SPLIT, '{"keep": 10, "group": 10, "global": 10}',
     "the numbers may add up to 10 at the most, not 30 (10 + 10 + 10 is 20 too many); lower several of them"),
    (MIX, '{"A0": 30, "A1": 60}', "the numbers have to add up to 100, not 90 (30 + 60 is 10 too few); change one of "
     'them: "A0" to 40, or "A1" to 70'),
    (MIX, '{"A0": 5, "A1": 100}',
     "the numbers have to add up to 100, not 105 (5 + 100 is 5 too many); change one of them: "
     '"A0" to 0, or "A1" to 95'),
    (TOKENS, '{"A1": 1, "A2": 1, "A3": 0}', 'the key "A1" is yourself: tokens go to others only'),
    (MOVE, '{"move": "cooperate"}', '"move" is "cooperate", but it has to be "action_a", "action_b" or "leave"'),
    (EFFORT, '{"effort": 3} or {"effort": 4}',
     'it holds two answers that differ, {"effort": 3} and {"effort": 4}; give only one'),
    (EFFORT, "I would rather not take part.", "there is no whole JSON object in it"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "words"), FAULTS, ids=[words[:50] for _, _, words in FAULTS])
def test_the_fault_is_said_in_plain_words_and_the_form_is_repeated(form: Any, text: str, words: str) -> None:
    with pytest.raises(UnusableAnswerError) as raised:
        read_decision(reply(text), form)
    assert str(raised.value) == words
    assert raised.value.form.startswith(
        f"Answer with one JSON object and nothing else, in this form: {form_words(form)}"
    )


def test_the_form_says_what_has_to_add_up() -> None:
    with pytest.raises(UnusableAnswerError) as raised:
        read_decision(reply("{}"), SPLIT)
    whole = "<whole number from 0 to 10>"
    assert raised.value.form == (
        "Answer with one JSON object and nothing else, in this form: "
        f'{{"keep": {whole}, "group": {whole}, "global": {whole}}}\nThe numbers may add up to 10 at the most.'
    )
    assert (
        render("repair", problem="it has no text", form="Write.")
        == "Your answer can't be used: it has no text.\nWrite."
    )


def test_only_a_reply_without_an_answer_is_told_what_happens_without_one() -> None:
    otherwise = 'Without a valid answer, this is played for you: {"effort": 0}'
    for text, is_told in (("I can't help with that.", True), ("", True), ('{"effort": 11}', False)):
        with pytest.raises(UnusableAnswerError) as raised:
            decision_of(reply(text), EFFORT, otherwise=otherwise, reasoned=False)
        assert isinstance(raised.value, NoAnswerError) is is_told
        assert raised.value.form.endswith(otherwise) is is_told


@pytest.mark.parametrize(
    ("text", "effort"),
    [
        ('Perhaps {"effort": 3}. No: {"effort": 4}', 4),
        ('{"effort": 3} is low, {"effort": 12} too high. So:\n```json\n{"effort": 4}\n```', 4),
        ('{"effort": 4}\n{"note": "done"}', 4),
        ('Perhaps {effort: 1}. {"effort": 4,} // final', 4),
        ('First {"effort": 3}. No: {"effort": 12}', None),
        ('First {"effort": 3}. No: {"effort": 4', None),
    ],
)
def test_the_last_object_counts_where_the_model_was_to_reason_first(text: str, effort: int | None) -> None:
    if effort is None:
        with pytest.raises(UnusableAnswerError) as raised:
            read_object(text, EFFORT, reasoned=True)
        assert raised.value.form.startswith("End your answer with one JSON object, in this form:")
    else:
        assert read_object(text, EFFORT, reasoned=True).values == {"effort": effort}


@pytest.mark.parametrize("name", ["anomaly", "biomarker", "ecology", "geospatial"])
def test_the_form_of_findings_can_not_be_stated_as_it_is(name: str) -> None:
    task = TASKS.get(name)()
    example = findings_example(task)
    assert all(f'"{field}": ' in example for field in task.findings.model_fields)
    assert read_findings(example, task.findings).findings is None
