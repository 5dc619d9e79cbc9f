"""Reading findings out of a report: field by field, whatever a model wrote."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, model_validator

from labmates.tasks.base import DIFFICULTIES, Difficulty
from labmates.tasks.fences import split_blocks
from labmates.tasks.findings import MOST_CHARS, ReadFindings, check_findings, read_findings
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text, type_text
from labmates_author.tasks.report import oracle_report


class Item(BaseModel):
    name: str
    size: float | None = None
    sign: Literal["+", "-"] | None = None


class Stated(BaseModel):
    count: int | None = Field(None, description="how many")
    share: float | None = Field(None, description="which share")
    names: list[str] | None = Field(None, max_length=5, description="which ones")
    items: list[Item] | None = Field(None, description="what")
    day: date | None = Field(None, description="when")


def read(body: str, model: type[BaseModel] = Stated) -> ReadFindings[BaseModel]:
    return read_findings(f"# Report\n\nText.\n\n```findings\n{body}\n```\nMore text.\n", model)


def stated(result: ReadFindings[Any]) -> dict[str, object]:
    assert result.findings is not None
    values: dict[str, object] = result.findings.model_dump(exclude_none=True)
    return values


@pytest.mark.parametrize("name", ["ecology", "anomaly", "biomarker", "geospatial"])
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_the_template_report_is_read_back_without_loss(name: str, difficulty: Difficulty) -> None:
    task = get_task(name)
    truth = task.generate(7, difficulty).truth
    result = read_findings(oracle_report(task, truth), task.findings)
    assert result.problems == ()
    assert result.findings == task.oracle(truth)


def test_valid_fields_are_read_and_a_null_says_nothing() -> None:
    result = read('{"count": 3, "share": 0.25, "names": ["a"], "items": null, "day": "2024-02-29"}')
    assert result.problems == ()
    assert stated(result) == {"count": 3, "share": 0.25, "names": ["a"], "day": date(2024, 2, 29)}


@pytest.mark.parametrize(
    "text", ["", "no block", '```json\n{"other": 3}\n```', "We counted 3.", "{count}", "count = 3"]
)
def test_a_report_that_states_nothing_gives_none_and_says_so(text: str) -> None:
    result = read_findings(text, Stated)
    assert result.findings is None
    assert result.problems == ("the report states no findings that can be read",)


def test_of_several_blocks_the_last_valid_value_counts_and_differences_are_named() -> None:
    text = '```findings\n{"count": 1, "share": 0.5}\n```\nCorrected:\n```findings\n{"count": 2, "share": "half"}\n```\n'
    result = read_findings(text, Stated)
    assert stated(result) == {"count": 2, "share": 0.5}
    assert len(result.problems) == 2
    assert "'half' is not a plain number" in result.problems[0]
    assert "field 'count': stated differently" in result.problems[1]


@pytest.mark.parametrize("later", ["{}", "", "nothing", '{"count": ', '{"other": 1}', "null"])
def test_a_later_block_without_findings_does_not_erase_an_earlier_one(later: str) -> None:
    result = read_findings(f'```findings\n{{"count": 1}}\n```\n```findings\n{later}\n```\n', Stated)
    assert stated(result) == {"count": 1}
    assert all("findings block 2" in problem for problem in result.problems)


def test_blocks_that_agree_are_no_contradiction() -> None:
    result = read_findings('```findings\n{"count": 1}\n```\n```findings\n{"count": 1.0, "share": 0}\n```\n', Stated)
    assert stated(result) == {"count": 1, "share": 0.0}
    assert result.problems == ()


def test_marked_blocks_count_before_any_other_object() -> None:
    text = '```findings\n{"count": 1}\n```\n## Appendix\n```json\n{"count": 2, "share": 0.5}\n```\n'
    assert read_findings(text, Stated) == ReadFindings(Stated(count=1))
    assert stated(read_findings(text.replace("findings", "text"), Stated)) == {"count": 2, "share": 0.5}


BROKEN_BUT_CLEAR = {
    "trailing comma": '{"count": 1200, "share": 0.5,}',
    "comments": '{"count": 1200, // rows\n "share": 0.5 /* half */ # done\n}',
    "python": "{'count': 1200, 'share': 0.5, 'names': None}",
    "typographic quotes": "{\u201ccount\u201d: 1200, \u201cshare\u201d: 0.5}",
    "quoted numbers": '{"count": "1200", "share": "0.5"}',
    "groups of three": '{"count": 1,200, "share": 0.5}',
    "quoted groups of three": '{"count": "1 200", "share": "0.50"}',
    "wrapper": '{"findings": {"count": 1200, "share": 0.5}}',
    "two wrappers": '{"task": "x", "result": {"findings": {"count": 1200, "share": 0.5}}}',
    "keys of another case": '{"Count": 1200, "SHARE": 0.5}',
    "numpy": "{'count': np.int64(1200), 'share': np.float64(0.5)}",
}


@pytest.mark.parametrize("body", BROKEN_BUT_CLEAR.values(), ids=BROKEN_BUT_CLEAR)
def test_a_form_with_one_meaning_is_mended_and_told(body: str) -> None:
    result = read(body)
    assert stated(result) == {"count": 1200, "share": 0.5}
    assert result.problems == ()
    assert result.repaired
    assert all(repair.what and repair.where for repair in result.repaired)


@pytest.mark.parametrize(
    "value", ["1,5", "0,200", "1.200.300", "12 days", "12%", "~12", "3/4", "twelve", "012", "1e999", "1,20"]
)
def test_no_value_is_guessed(value: str) -> None:
    result = read(f'{{"count": 1, "share": "{value}"}}')
    assert stated(result) == {"count": 1}
    assert result.repaired == ()
    assert result.problems[0].startswith(f"field 'share': {value!r}")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("6", 6),
        ("6.0", 6),
        ("1,200", 1200),
        ("1 200", 1200),
        ("1\u202f234\u202f567", 1234567),
        ("1_200", 1200),
        ("\u22125", -5),
        ("+5", 5),
        (" 5 ", 5),
        ("1e3", 1000),
    ],
)
def test_a_whole_number_in_quotes_is_read(value: str, number: int) -> None:
    result = read(json.dumps({"count": value}))
    assert stated(result) == {"count": number}
    assert [repair.where for repair in result.repaired] == ["field 'count'"]


def test_numbers_in_quotes_are_read_at_any_depth_and_texts_stay_texts() -> None:
    result = read('{"items": [{"name": "7", "size": "7"}, {"name": "b", "size": "1,5"}, {"name": "c", "size": NaN}]}')
    assert stated(result) == {"items": [{"name": "7", "size": 7.0}]}
    assert [str(repair) for repair in result.repaired] == ["field 'items'[0].size: number written as '7'"]
    assert [problem.split(":")[0] for problem in result.problems] == ["field 'items'[2]", "field 'items'[1].size"]


@pytest.mark.parametrize(
    "text",
    [
        '# R\n\n{"count": 3}',
        '# R\n```json\n{"count": 3}\n```',
        '# R\n```\n{"count": 3}\n```\nend',
        '## Findings\n```json\n{"count": 3}\n```',
        'We found {"count": 3} in all.',
        "# R\n```python\nfindings = {'count': 3}\n```",
    ],
)
def test_findings_without_a_marked_block_are_found(text: str) -> None:
    assert stated(read_findings(text, Stated)) == {"count": 3}


def test_an_object_is_checked_as_a_block_is() -> None:
    result = check_findings({"findings": {"count": "6", "share": float("nan"), "mood": 1}}, Stated)
    assert stated(result) == {"count": 6}
    assert [problem.split(":")[0] for problem in result.problems] == ["field 'share'", "unknown field 'mood'"]
    assert check_findings({}, Stated) == ReadFindings(Stated())
    assert check_findings({"mood": 1}, Stated).problems == ("unknown field 'mood'",)


@pytest.mark.parametrize(
    "text",
    [
        '```findings\r\n{"count": 2}\r\n```',
        '~~~ findings\n{"count": 2}\n~~~',
        '````Findings\n{"count": 2}\n````',
        '```json findings\n{"count": 2}\n```',
        '   ```findings\n   {"count": 2}\n   ```',
        '```findings\n{"count": 2}',
        '```markdown\n# Report\n```findings\n{"count": 2}\n```\n```\n',
        '```python\nprint(1)  # never closed\n```findings\n{"count": 2}\n```\n',
    ],
)
def test_ways_in_which_models_write_the_fence(text: str) -> None:
    assert stated(read_findings(text, Stated)) == {"count": 2}


@pytest.mark.parametrize(
    ("body", "left", "named"),
    [
        ('{"count": true, "share": 0.5}', {"share": 0.5}, "'count'"),
        ('{"share": false, "count": 1}', {"count": 1}, "'share'"),
        ('{"count": "six", "share": 0.5}', {"share": 0.5}, "'count'"),
        ('{"count": 6.5, "share": 0.5}', {"share": 0.5}, "'count'"),
        ('{"share": NaN, "count": 1}', {"count": 1}, "NaN"),
        ('{"share": -Infinity, "count": 1}', {"count": 1}, "Infinity"),
        ('{"share": 1e400, "count": 1}', {"count": 1}, "out of range"),
        ('{"count": 99999999999999999999, "share": 1}', {"share": 1.0}, "out of range"),
        ('{"count": 1, "count": 2, "share": 0.5}', {"share": 0.5}, "given twice"),
        ('{"colour": 1, "share": 0.5}', {"share": 0.5}, "unknown field 'colour'"),
        ('{"names": ["a", "b", "c", "d", "e", "f"], "count": 1}', {"count": 1}, "'names'"),
        ('{"items": [{"name": "a", "name": "b"}], "count": 1}', {"count": 1}, "given twice"),
        ('{"names": ["\\ud800"], "count": 1}', {"count": 1}, "'names'"),
        ('{"names": "a", "count": 1}', {"count": 1}, "'names'"),
        ('{"day": 5, "count": 1}', {"count": 1}, "'day'"),
    ],
)
def test_an_invalid_field_is_left_out_and_named_and_the_others_count(
    body: str, left: dict[str, object], named: str
) -> None:
    result = read(body)
    assert stated(result) == left
    assert len(result.problems) == 1
    assert named in result.problems[0]


def test_a_whole_number_may_be_written_as_a_decimal() -> None:
    assert stated(read('{"count": 6.0, "share": 2.0}')) == {"count": 6, "share": 2.0}


def test_of_a_list_only_the_invalid_items_are_left_out() -> None:
    result = read('{"items": [{"name": "a", "sign": "plus"}, {"name": "b", "size": 1}, {"size": 2}, 5]}')
    assert stated(result) == {"items": [{"name": "b", "size": 1.0}]}
    assert [problem.split(":")[0] for problem in result.problems] == [
        "field 'items'[0].sign",
        "field 'items'[2].name",
        "field 'items'[3]",
    ]


@pytest.mark.parametrize(
    ("name", "entry", "kept"),
    [
        ("anomaly", {"events": [{"start": 1, "end": 2, "kind": " Contextual"}]}, "contextual"),
        ("ecology", {"interactions": [{"source": "a", "target": "b", "sign": "\N{MINUS SIGN}"}]}, "-"),
        ("biomarker", {"predictive_markers": [{"marker": "a", "sign": " +"}]}, "+"),
        ("geospatial", {"covariates": [{"name": "a", "sign": "\N{EN DASH}"}]}, "-"),
    ],
)
def test_kinds_and_signs_are_read_in_any_letters(name: str, entry: dict[str, Any], kept: str) -> None:
    result = read(json.dumps(entry), get_task(name).findings)
    assert result.problems == ()
    assert f"'{kept}'" in str(stated(result))


def test_an_item_that_is_no_json_leaves_the_others_of_its_list() -> None:
    written = (
        '{"name": "a", "size": NaN}',
        '{"name": "b", "size": 1}',
        '{"name": "\\ud800"}',
        '{"name": 1, "name": 2}',
        "{}",
    )
    result = read(f'{{"items": [{", ".join(written)}]}}')
    assert stated(result) == {"items": [{"name": "b", "size": 1.0}]}
    assert [problem.split(":")[0] for problem in result.problems] == [
        "field 'items'[0]",
        "field 'items'[2]",
        "field 'items'[3]",
        "field 'items'[4].name",
    ]
    assert stated(read('{"names": ["a", 99999999999999999999]}')) == {"names": ["a"]}
    assert stated(read('{"items": [{"name": "a", "size": 1e999}]}')) == {}


def test_a_field_that_may_be_a_list_or_something_else_is_left_out_as_a_whole() -> None:
    class Either(BaseModel):
        names: list[str] | str | None = None

    assert stated(read('{"names": ["a", 1]}', Either)) == {}
    assert stated(read('{"names": "a"}', Either)) == {"names": "a"}


def test_a_list_of_which_nothing_is_valid_is_not_an_empty_list() -> None:
    assert stated(read('{"names": [1, 2]}')) == {}
    assert stated(read('{"names": []}')) == {"names": []}


@pytest.mark.parametrize(
    "body",
    ["", "null", "[]", "3", '"text"', "{", '{"count": [1}', "[" * 100_000, '{"a":' * 50_000, "x" * (MOST_CHARS + 1)],
)
def test_a_block_that_is_no_object_gives_none_and_says_so(body: str) -> None:
    result = read(body)
    assert result.findings is None
    assert len(result.problems) == 1
    assert len(result.problems[0]) < 300


def test_problems_are_short_and_few_however_hostile_the_block() -> None:
    body = json.dumps({"count": 1, **{f"{'x' * 500}{n}": n for n in range(300)}})
    result = read(body)
    assert stated(result) == {"count": 1}
    assert len(result.problems) <= 31
    assert "and 270 more" in result.problems[-1]
    assert max(map(len, result.problems)) < 200


def test_fields_that_contradict_each_other_give_none() -> None:
    class Checked(BaseModel):
        low: int | None = None
        high: int | None = None

        @model_validator(mode="after")
        def _ordered(self) -> Checked:
            if self.low is not None and self.high is not None and self.low > self.high:
                raise ValueError("low must not be above high")
            return self

    assert stated(read('{"low": 1, "high": 2}', Checked)) == {"low": 1, "high": 2}
    result = read('{"low": 3, "high": 2}', Checked)
    assert result.findings is None
    assert "low must not be above high" in result.problems[0]


@given(st.text())
def test_no_text_makes_reading_raise(text: str) -> None:
    for result in (read_findings(text, Stated), read(text)):
        assert result.findings is not None or result.problems


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*Stated.model_fields, "other"]), JSON))
def test_whatever_is_read_is_valid_and_what_is_not_is_named(fields: dict[str, object]) -> None:
    result = read(json.dumps({"count": None, **fields}))
    assert result.findings is not None
    again = Stated.model_validate_json(result.findings.model_dump_json())
    assert again == result.findings
    kept = result.findings.model_dump(exclude_none=True)
    lost = {name for name, value in fields.items() if value is not None and name not in kept}
    assert all(any(f"'{name}'" in problem for problem in result.problems) for name in lost)


@given(st.text(alphabet=st.sampled_from("`~ \nafindgs{}#")))
def test_splitting_loses_no_line_of_prose_and_invents_none(text: str) -> None:
    parts = split_blocks(text)
    lines = text.split("\n")
    kept = parts.prose.split("\n") + [line for block in parts.blocks for line in block.body.split("\n")]
    assert all(line in lines or line == "" for line in kept)


def test_code_is_no_prose_and_a_stray_fence_hides_nothing() -> None:
    parts = split_blocks("before\n```python\n# Results\n```\nafter\n```\nend")
    assert parts.prose == "before\nafter\nend"
    assert [block.info for block in parts.blocks] == ["python"]


def test_the_schema_text_names_every_field_with_type_meaning_and_example() -> None:
    for name in ("ecology", "anomaly", "biomarker", "geospatial"):
        task = get_task(name)
        text = findings_schema_text(task)
        for field, info in task.findings.model_fields.items():
            assert f"- {field} (" in text
            assert str(info.description) in text
    assert '  - sign ("+" or "-")' in findings_schema_text(get_task("ecology"))


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int | None, "whole number"),
        (list[str] | None, "list of text"),
        (list[Item], "list of object"),
        (dict[str, float], "object from text to number"),
        (Literal["a", "b"], '"a" or "b"'),
        (bool, "true or false"),
        (date | None, "date"),
    ],
)
def test_types_are_named_as_json_has_them(annotation: object, text: str) -> None:
    assert type_text(annotation) == text
