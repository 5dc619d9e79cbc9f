"""Stating findings with the tool: the schema that an agent is told, what is refused, mended and recorded."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from labmates.agents.prompts import render
from labmates.agents.tools import ToolError
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_parameters
from labmates.workflows.science.lab.context import delimited
from labmates.workflows.science.lab.findings import findings_form, findings_json, paper_faults, stated_texts
from tests.support.lab_orders import stated_in

TASKS = ("ecology", "anomaly", "biomarker", "geospatial")


def parts(schema: Any) -> list[dict[str, Any]]:
    """Return a JSON schema and all schemas in it."""
    found = [schema]
    for inner in schema.get("properties", {}).values():
        found += parts(inner)
    return found + (parts(schema["items"]) if "items" in schema else [])


@pytest.mark.parametrize("name", TASKS)
def test_the_schema_has_every_field_with_its_meaning_and_no_reference(name: str) -> None:
    model = get_task(name).findings
    schema = findings_parameters(model)
    assert {key: one["description"] for key, one in schema["properties"].items()} == {
        key: field.description for key, field in model.model_fields.items()
    }
    assert "$ref" not in json.dumps(schema)
    assert "null" not in json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert all("type" in part for part in parts(schema))


class Spot(BaseModel):
    kind: Literal["spot"]
    inner: list[Spot] | None = None


class Line(BaseModel):
    kind: Literal["line"]


class Shapes(BaseModel):
    shape: Annotated[Spot | Line, Field(discriminator="kind")] | None = Field(None, description="shape")
    by_name: dict[str, Line] | None = Field(None, description="lines")
    pair: tuple[Spot, float] | None = Field(None, description="pair")


def test_models_that_choose_or_hold_themselves_need_no_reference_either() -> None:
    text = json.dumps(findings_parameters(Shapes))
    assert "$ref" not in text
    assert "$defs" not in text
    assert text.count('"enum"') + text.count('"const"') >= 4


def test_the_schema_names_the_words_that_are_allowed() -> None:
    links = findings_parameters(get_task("ecology").findings)["properties"]["interactions"]["items"]
    assert links["properties"]["sign"]["enum"] == ["+", "-"]
    assert links["required"] == ["source", "target"]


@pytest.mark.parametrize("name", TASKS)
def test_the_true_findings_are_recorded_as_they_are(name: str) -> None:
    task = get_task(name)
    right = task.oracle(task.generate(1, "easy").truth).model_dump(mode="json", exclude_none=True)
    stated = findings_form(task).check(right)
    assert stated.values == right
    assert stated.repaired == ()
    assert stated.answer.startswith(f"Recorded: {len(right)} of {len(right)} findings.")


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("biomarker", {"benefit_share": 97}, "field 'benefit_share': "),
        ("biomarker", {"subtypes": [{"share": 0.2}, {"share": 97}]}, "field 'subtypes'[1].share: "),
        ("anomaly", {"anomalous_share": 97}, "field 'anomalous_share': "),
        ("geospatial", {"nugget_share": 97}, "field 'nugget_share': "),
    ],
)
def test_a_percentage_in_the_place_of_a_share_is_refused_and_told(name: str, values: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError) as error:
        findings_form(get_task(name)).check(values)
    assert f"{told}Input should be less than or equal to 1 (given: 97)" in str(error.value)
    assert "between 0 and 1" in str(error.value)


def test_a_number_in_quotes_is_mended_and_told() -> None:
    stated = findings_form(get_task("ecology")).check({"n_species": "1,200"})
    assert stated.values == {"n_species": 1200}
    assert stated.repaired == ({"what": "number written as '1,200'", "where": "field 'n_species'"},)
    assert "Mended: field 'n_species': number written as '1,200'." in stated.answer
    assert "Not stated: shift_surveys," in stated.answer


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"n_species": "six"},
            ["field 'n_species': 'six' is not a plain number", "- n_species (whole number): number of"],
        ),
        ({"mood": 1, "n_species": 6}, ["unknown field 'mood'", "The fields are n_species, shift_surveys"]),
        (
            {"interactions": [{"source": "a", "target": "b", "sign": "plus"}]},
            ["'interactions'[0].sign: Input should be '+' or '-' (given: \"plus\")", '- sign ("+" or "-")'],
        ),
        ({"forecast": [{"species": "a", "abundance": float("nan")}]}, ["nan is not a number", "mean count per survey"]),
        ({"n_species": "1,5"}, ["can be read in two ways"]),
    ],
)
def test_nothing_is_recorded_unless_all_is_valid_and_what_is_allowed_is_told(
    values: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ToolError) as error:
        findings_form(get_task("ecology")).check(values)
    assert str(error.value).startswith("nothing was recorded")
    assert all(part in str(error.value) for part in told)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
ECOLOGY = [*get_task("ecology").findings.model_fields, "findings", "other"]


@given(st.dictionaries(st.sampled_from(ECOLOGY), JSON))
def test_any_call_is_recorded_as_valid_findings_or_refused(values: dict[str, Any]) -> None:
    task = get_task("ecology")
    with suppress(ToolError):
        stated = findings_form(task).check(values)
        again = task.findings.model_validate_json(json.dumps(stated.values), strict=True)
        assert again.model_dump(mode="json", exclude_none=True) == stated.values


def test_a_paper_says_what_keeps_its_findings_from_being_read() -> None:
    task = get_task("ecology")
    assert paper_faults('```json\n{"n_species": "6"}\n```', task) == ""
    assert "states no findings" in paper_faults("We found nothing.", task)
    assert "'n_species'" in paper_faults('```findings\n{"n_species": "six"}\n```', task)


def test_stated_findings_are_shown_a_field_a_line() -> None:
    assert findings_json({"a": 1, "b": ["x"]}) == '{"a": 1,\n "b": ["x"]}'
    assert findings_json({}) == "{}"


def test_a_value_that_the_next_team_repeated_is_shown_once_and_is_known_of_both() -> None:
    stated = {
        "data": {"n": 6, "names": ["a"], "share": 0.5},
        "model": {"n": 6, "names": ["a", "b"], "share": 0.5},
        "eval": {"n": 6, "names": ["a", "b"]},
    }
    texts = stated_texts(stated)
    assert texts == {
        "data": '{"names": ["a"]}\nThe same as the model team\'s: n, share.',
        "model": '{"share": 0.5}\nThe same as the eval team\'s: n, names.',
        "eval": '{"n": 6,\n "names": ["a", "b"]}',
    }
    shown = "\n\n".join(delimited(f"{team} team", text) for team, text in texts.items())
    assert stated_in(render("findings_so_far", findings=shown)) == stated
