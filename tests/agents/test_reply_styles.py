"""A corpus of the ways in which models write a decision: each is read as what it says, or refused with the cause.

The styles are those seen in replies of real models, in words of our own; each goes the way of a real reply, from the
message of a chat model to the values.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from labmates.agents.decisions import numbers_form, read_decision
from labmates.mechanisms.play import mixture
from labmates.models.normalise import normalise
from labmates.models.objects import UnusableAnswerError
from labmates.workflows.dilemmas.briefs import form_of

EFFORT = numbers_form({"effort": (0, 10)})
MIX = form_of(mixture(("A0", "A1")))
CONTRACT = numbers_form({"A0": (-1000, 1000), "A1": (-1000, 1000)})
LONG = "Let me go through the payoffs once more. " * 1_000
FORMULAS = r"Let $x_{i} \in \{0, 1\}$, so $\frac{1}{2} \sum_{i} {x}_{i}$ counts. "


def read(text: str, form: Any) -> list[int]:
    message = AIMessage(text, response_metadata={"finish_reason": "stop"})
    return list(read_decision(normalise(message, sent=[HumanMessage("?")]), form).values.values())


READ = {
    "alone": ('{"effort": 3}', [3]),
    "spaces and lines": ('\n\n {\n\t"effort"  :\n 3\n}\n\n', [3]),
    "carriage returns": ('{\r\n"effort": 3\r\n}\r\n', [3]),
    "no spaces": ('{"effort":3}', [3]),
    "no-break space": ('{\u00a0"effort": 3}', [3]),
    "byte order mark": ('\ufeff{"effort": 3}', [3]),
    "fence": ('```json\n{"effort": 3}\n```', [3]),
    "fence without a name": ('```\n{"effort": 3}\n```', [3]),
    "fence of tildes": ('~~~json\n{"effort": 3}\n~~~', [3]),
    "fence with another name": ('```python\n{"effort": 3}\n```', [3]),
    "fence that is not closed": ('```json\n{"effort": 3}', [3]),
    "back quotes in the line": ('My decision: `{"effort": 3}`', [3]),
    "bold": ('**Decision:** **{"effort": 3}**', [3]),
    "quotation": ('> {"effort": 3}', [3]),
    "table": ('| player | decision |\n|---|---|\n| me | {"effort": 3} |', [3]),
    "HTML": ('<answer>{"effort": 3}</answer>', [3]),
    "prose before": ('If all make 3, all get 8. So: {"effort": 3}', [3]),
    "prose behind": ('{"effort": 3}\nThis is a safe choice {for now}.', [3]),
    "long reasoning": (LONG + '{"effort": 3}', [3]),
    "long epilogue": ('{"effort": 3}\n' + LONG[:40_000], [3]),
    "thinking tags": ('<think>Perhaps {"effort": 9}?</think>{"effort": 3}', [3]),
    "closing thinking tag alone": ('Perhaps {"effort": 9}?\n</think>\n\n{"effort": 3}', [3]),
    "thinking in capitals": ('<THINKING>{"effort": 9}</THINKING>\n{"effort": 3}', [3]),
    "thinking in brackets": ('[THINK]{"effort": 9}[/THINK]{"effort": 3}', [3]),
    "two thoughts": ('<think>{"effort": 9}</think>Hm. <think>{"effort": 8}</think>{"effort": 3}', [3]),
    "box": (r'\boxed{{"effort": 3}}', [3]),
    "box with escaped braces": (r'$$\boxed{\{ "effort": 3 \}}$$', [3]),
    "display formula": ('\\[\n\\{\n"effort": 3\n\\}\n\\]', [3]),
    "text in a box": (r'\boxed{\text{{"effort": 3}}}', [3]),
    "formulas before": (FORMULAS * 200 + '{"effort": 3}', [3]),
    "sets in braces": ('The choices are {0, 1, …, 10}. I take {"effort": 3}.', [3]),
    "line comment": ('{\n  "effort": 3 // as much as the others\n}', [3]),
    "line comment above": ('{\n  // the least of the group counts\n  "effort": 3\n}', [3]),
    "line comment below": ('{\n  "effort": 3\n  // done\n}', [3]),
    "hash comment": ('{\n  "effort": 3  # as much as the others\n}', [3]),
    "block comment": ('{"effort": /* of 10 */ 3}', [3]),
    "block comment over lines": ('{\n/* first\n   second */\n"effort": 3}', [3]),
    "comment with braces": ('{"effort": 3 // not {10}\n}', [3]),
    "comment with quotes": ('{"effort": 3 // "safe"\n}', [3]),
    "trailing comma": ('{"effort": 3,}', [3]),
    "trailing comma and comment": ('{\n  "effort": 3, // mine\n}', [3]),
    "comments on each of two": ('{\n  "A0": 30, // cooperate\n  "A1": 70, // defect\n}', [30, 70]),
    "same answer twice": ('{"effort": 3}\nFinal answer:\n```json\n{"effort": 3}\n```', [3]),
    "same answer with and without a comment": ('{"effort": 3 // mine\n}\n{"effort": 3}', [3]),
    "keys in another order": ('{"A1": 70, "A0": 30}', [30, 70]),
    "same answer in another order": ('{"A1": 70, "A0": 30} {"A0": 30, "A1": 70}', [30, 70]),
    "empty object behind": ('{"effort": 3}\n{}', [3]),
    "empty object before": ('{} {"effort": 3}', [3]),
    "other keys behind": ('{"effort": 3}\n{"confidence": "high"}', [3]),
    "other keys before": ('{"analysis": {"others": [2, 3]}}\n{"effort": 3}', [3]),
    "form repeated before": ('You asked for {"effort": <number>}. {"effort": 3}', [3]),
    "invalid draft before": ('{"effort": 12} is too much, so {"effort": 3}', [3]),
    "draft that does not add up": ('{"A0": 50, "A1": 60} adds up to 110: {"A0": 50, "A1": 50}', [50, 50]),
    "Python before": ("d = {'effort': 9}\nso {\"effort\": 3}", [3]),
    "negative": ('{"A0": -5, "A1": 5}', [-5, 5]),
    "on the bounds": ('{"A0": -1000, "A1": 1000}', [-1000, 1000]),
    "other alphabets around": ('我选择：{"effort": 3}。', [3]),
    "emoji": ('🤝 {"effort": 3} 🤝', [3]),
}


@pytest.mark.parametrize("style", READ)
def test_a_clear_decision_is_read(style: str) -> None:
    text, values = READ[style]
    assert read(text, CONTRACT if "-" in text and "A0" in text else MIX if "A0" in text else EFFORT) == values


REFUSED = {
    "nothing": ("", EFFORT, "no text"),
    "thought alone": ('<think>{"effort": 3}</think>', EFFORT, "no text"),
    "words alone": ("I make an effort of 3.", EFFORT, "no whole JSON object"),
    "a number": ("3", EFFORT, "no whole JSON object"),
    "a list": ("[3]", EFFORT, "no whole JSON object"),
    "key and value without braces": ('"effort": 3', EFFORT, "no whole JSON object"),
    "YAML": ("effort: 3", EFFORT, "no whole JSON object"),
    "hypothetical": (
        '{"effort": 3}\nIf the others defect I would play {"effort": 4}.',
        EFFORT,
        r'two answers that differ, {"effort": 3} and {"effort": 4}',
    ),
    "changed mind": ('First {"effort": 3}, but on reflection {"effort": 7}', EFFORT, "two answers that differ"),
    "plan by round": ('Round 1: {"effort": 3}\nRound 2: {"effort": 5}', EFFORT, "two answers that differ"),
    "other answer in a comment": ('{"effort": 3 // or {"effort": 4}\n}', EFFORT, "two answers that differ"),
    "other answer behind a comment": ('{"effort": 3, // mine\n}\n{"effort": 4}', EFFORT, "two answers that differ"),
    "key twice": ('{"effort": 3, "effort": 4}', EFFORT, "key 'effort' is given twice"),
    "key twice and a comment": ('{"effort": 3, // mine\n"effort": 4}', EFFORT, "key 'effort' is given twice"),
    "reasoning in the object": (
        '{"reasoning": "safe", "effort": 3}',
        EFFORT,
        'key "reasoning" is not part of the form',
    ),
    "object in an object": ('{"decision": {"effort": 3}}', EFFORT, 'the key "effort" is missing'),
    "empty object": ("{}", EFFORT, 'the key "effort" is missing'),
    "wrong answer and an empty object": ('{"effort": 12}\n{}', EFFORT, "the most is 10"),
    "single quotes": ("{'effort': 3}", EFFORT, r'quotes other than " \(line 1, column 2'),
    "curly quotes": ("So:\n{“effort”: 3}", EFFORT, r'quotes other than " \(line 2, column 2'),
    "no quotes": ("{effort: 3}", EFFORT, r"text without quotes \(line 1, column 2"),
    "no closing brace": ('So I choose:\n{"effort": 3', EFFORT, r"no closing brace \(line 2, column 1"),
    "comment hides the brace": (
        '{"effort": 3 // mine}',
        EFFORT,
        r"comment hides .* brace \(line 1, column 14",
    ),
    "comment is not closed": ('{"effort": 3 /* mine }', EFFORT, r"comment is not closed \(line 1, column 14"),
    "no comma": ('{"A0": 30 "A1": 70}', MIX, r"expected ',' or '}' \(line 1, column 11"),
    "no comma but a line": ('{"A0": 30\n"A1": 70}', MIX, r"missing comma \(line 2, column 1"),
    "no colon": ('{"effort" 3}', EFFORT, "expected ':'"),
    "placeholder": ('{"effort": <number>}', EFFORT, "text without quotes"),
    "word": ('{"effort": three}', EFFORT, "text without quotes"),
    "sum": ('{"effort": 1+2}', EFFORT, r"line 1, column 12"),
    "fraction": ('{"effort": 6/2}', EFFORT, r"line 1, column 13"),
    "percent": ('{"A0": 30%, "A1": 70%}', MIX, r"text without quotes \(line 1, column 8"),
    "leading zero": ('{"effort": 03}', EFFORT, r"line 1, column 12"),
    "decimal": ('{"effort": 3.0}', EFFORT, "whole number"),
    "number in quotes": ('{"effort": "3"}', EFFORT, "whole number"),
    "list of one": ('{"effort": [3]}', EFFORT, "whole number"),
    "null": ('{"effort": null}', EFFORT, "whole number"),
    "true": ('{"effort": true}', EFFORT, "whole number"),
    "beyond the bound": ('{"effort": 11}', EFFORT, '"effort" is 11, but the most is 10'),
    "contract beyond the bound": (
        '{"A0": -1000000, "A1": 0}',
        CONTRACT,
        '"A0" is -1000000, but the least is -1000',
    ),
    "wrong sum": ('{"A0": 30, "A1": 60}', MIX, "add up to 100, not 90"),
    "key in capitals": ('{"Effort": 3}', EFFORT, 'the key has to be "effort", not "Effort"'),
    "full-width digits": ('{"effort": ３}', EFFORT, "line 1, column 12"),
}


@pytest.mark.parametrize("style", REFUSED)
def test_what_is_unclear_is_refused_with_its_cause(style: str) -> None:
    text, form, cause = REFUSED[style]
    with pytest.raises(UnusableAnswerError, match=cause):
        read(text, form)
