"""Equal findings in every dress that models give them: all of them are worth the same, and none is made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.judges.base import Report
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.base import Dataset
from labmates.tasks.findings import read_findings
from labmates.tasks.registry import get_task

TASKS = ("ecology", "anomaly", "biomarker", "geospatial")
Values = dict[str, Any]


def quoted(value: Any, form: Callable[[float], str] = str) -> Any:
    """Return findings in which every number is a text."""
    if isinstance(value, dict):
        return {key: quoted(inner, form) for key, inner in value.items()}
    if isinstance(value, list):
        return [quoted(inner, form) for inner in value]
    return value if isinstance(value, str | bool | None) else form(value)


def commented(values: Values, mark: str) -> str:
    return json.dumps(values, indent=1).replace(",\n", f", {mark}\n")


def fence(body: str, mark: str = "```", info: str = "findings") -> str:
    return f"{mark}{info}\n{body}\n{mark}"


def trailing(values: Values) -> str:
    return json.dumps(values, indent=1).replace("\n]", ",\n]").replace("\n}", ",\n}")


DRESSES: dict[str, Callable[[Values], str]] = {
    "findings fence": lambda v: fence(json.dumps(v)),
    "tildes": lambda v: fence(json.dumps(v), "~~~"),
    "json findings": lambda v: fence(json.dumps(v), info="json findings"),
    "four marks": lambda v: fence(json.dumps(v), "````", "Findings"),
    "indented": lambda v: "\n".join(f"    {line}" for line in fence(json.dumps(v, indent=2)).split("\n")),
    "unclosed": lambda v: f"```findings\n{json.dumps(v)}",
    "within markdown": lambda v: f"```markdown\n# Paper\n{fence(json.dumps(v))}\n```",
    "after code that is not closed": lambda v: f"```python\nprint(1)\n{fence(json.dumps(v))}",
    "json fence": lambda v: fence(json.dumps(v), info="json"),
    "fence without a name": lambda v: fence(json.dumps(v), info=""),
    "heading and json": lambda v: f"## Findings\n\n{fence(json.dumps(v), info='json')}",
    "bare at the end": lambda v: f"Findings:\n{json.dumps(v)}",
    "bare in the middle": lambda v: f"Findings:\n{json.dumps(v, indent=2)}\n\nThat is all.",
    "trailing commas": lambda v: fence(trailing(v)),
    "comments of javascript": lambda v: fence(commented(v, "// by test")),
    "comments of python": lambda v: fence(commented(v, "# by test"), info="json"),
    "comments of c": lambda v: fence(commented(v, "/* by test */")),
    "python": lambda v: fence(repr(v), info="python"),
    "python, assigned": lambda v: fence(f"findings = {v!r}", info="python"),
    "typographic quotes": lambda v: fence(json.dumps(v).replace(' "', " “").replace('{"', "{“").replace('"', "”")),
    "wrapper": lambda v: fence(json.dumps({"findings": v})),
    "wrapper with the task": lambda v: fence(
        json.dumps({"task": "t", "difficulty": "medium", "ecology": v}), info="json"
    ),
    "quoted numbers": lambda v: fence(json.dumps(quoted(v))),
    "decimals": lambda v: fence(json.dumps(quoted(v, lambda n: f"{n:.12f}"))),
    "digits in groups": lambda v: fence(json.dumps(quoted(v, lambda n: f"{n:,}"))),
    "digits in groups by blanks": lambda v: fence(json.dumps(quoted(v, lambda n: f"{n:,}".replace(",", "\u202f")))),
    "exponents": lambda v: fence(json.dumps(quoted(v, lambda n: f"{n:.15e}"))),
    "minus signs of print": lambda v: fence(json.dumps(quoted(v, lambda n: str(n).replace("-", "\N{MINUS SIGN}")))),
    "an unknown field that is not a number": lambda v: fence(json.dumps({**v, "p_value": float("nan")})),
    "capitals": lambda v: fence(json.dumps({key.upper(): value for key, value in v.items()})),
    "an empty block after it": lambda v: f"{fence(json.dumps(v))}\n\n{fence('{}')}",
    "a broken block after it": lambda v: f"{fence(json.dumps(v))}\n\n{fence('{')}",
    "carriage returns": lambda v: fence(json.dumps(v, indent=1)).replace("\n", "\r\n"),
}
"""Each makes a report's end of findings."""


@cache
def made(name: str) -> Dataset[Any]:
    return get_task(name).generate(7)


def perfect(name: str) -> Values:
    values: Values = get_task(name).oracle(made(name).truth).model_dump(mode="json", exclude_none=True)
    return values


@pytest.mark.parametrize(
    "name",
    [TASKS[0], *(pytest.param(other, marks=pytest.mark.slow("tests/judges/test_dresses.py")) for other in TASKS[1:])],
)
@pytest.mark.parametrize("dress", DRESSES)
async def test_perfect_findings_score_one_in_every_dress(dress: str, name: str) -> None:
    text = f"# Paper\n\n## Results\nWe found what follows.\n\n{DRESSES[dress](perfect(name))}\n"
    [score, *_] = await VerifiedJudge().score(Report(text, get_task(name), made(name).truth))
    assert score.value == pytest.approx(1.0), score.reason
    assert (score.details["source"], score.details["readable"]) == ("report", True)


@pytest.mark.parametrize("name", TASKS)
async def test_saying_nothing_in_any_way_is_worth_nothing(name: str) -> None:
    for text in ("We found nothing.", fence("{}"), fence("{}", info="json"), fence(""), "{}", None):
        [score, *_] = await VerifiedJudge().score(Report(text, get_task(name), made(name).truth))
        assert score.value == 0.0


NAMES = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0"), min_size=1, max_size=8
)
NUMBERS = st.floats(-1e9, 1e9).map(lambda number: round(number, 6))
ECOLOGY = st.fixed_dictionaries(
    {"n_species": st.integers(-99, 10**9)},
    optional={
        "shift_surveys": st.lists(st.integers(0, 10**6), max_size=4),
        "declining_species": st.lists(NAMES, max_size=3),
        "interactions": st.lists(
            st.fixed_dictionaries(
                {"source": NAMES, "target": NAMES}, optional={"sign": st.sampled_from("+-"), "strength": NUMBERS}
            ),
            max_size=3,
        ),
        "forecast": st.lists(st.fixed_dictionaries({"species": NAMES, "abundance": NUMBERS}), max_size=3),
    },
)
ANY_NAME = [dress for dress in DRESSES if dress not in ("typographic quotes", "comments of python")]
"""Quotation marks and commas at the end of a line may stand within a name."""


@settings(max_examples=100)
@given(values=ECOLOGY, dress=st.sampled_from(ANY_NAME))
def test_any_valid_findings_are_read_back_from_any_dress(values: Values, dress: str) -> None:
    model = get_task("ecology").findings
    read = read_findings(f"# Paper\n\n{DRESSES[dress](values)}\n", model)
    assert read.findings == model.model_validate(values)
    assert all("field 'n_species'" not in problem for problem in read.problems)


@settings(max_examples=100)
@given(st.text() | st.text("{}[]\"':,#/*\\ \n`~-nabcount0123.species_"))
def test_random_text_never_raises_and_states_no_field_that_it_does_not_name(text: str) -> None:
    read = read_findings(text, get_task("ecology").findings)
    stated = read.findings.model_dump(exclude_none=True) if read.findings is not None else {}
    assert all(name in text.casefold().replace("-", "_").replace(" ", "_") for name in stated)
