from __future__ import annotations

import pytest
import yaml

from labmates.errors import UsageError
from labmates.games.payoff_table import read_table
from labmates.studies.source import read_study
from labmates.util import bounded_yaml
from labmates.util.bounded_yaml import compose_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)
)
"""Nine to the power of twelve values in twelve lines."""
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "\n".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)
)


@pytest.mark.parametrize("text", [BOMB, MERGE_BOMB], ids=["lists", "merge keys"])
def test_aliases_that_expand_without_end_are_refused_where_they_stand(text: str) -> None:
    with pytest.raises(UsageError, match=r"bomb\.yaml:7: .*aliases expand to more than 1,000,000 values"):
        read_study(text, "bomb.yaml")
    with pytest.raises(UsageError, match="aliases expand"):
        read_table(text, "bomb.yaml")


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="refers to the value that contains it"):
        compose_yaml("a: &a [1, *a]")


def test_aliases_within_the_limit_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &a [1, 2]\nb: [*a, *a]"
    assert read_study(text, "s.yaml").data == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    monkeypatch.setattr(bounded_yaml, "MOST_NODES", 12)  # the mapping, two keys, [1, 2], and [[1, 2], [1, 2]]
    with pytest.raises(yaml.YAMLError, match="more than 12 values"):
        compose_yaml(text + "\nc: *a")
    assert compose_yaml("") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: one: two", r"s\.yaml:2: invalid YAML: mapping values .*; quote a text that holds ': '"),
        ("a:\n\tb: 1", r"s\.yaml:2: invalid YAML: .*; indent with spaces in place of tabs"),
        ("a: 1\nb: 'open\nc: 2\n", r"s\.yaml:2: invalid YAML: this quote is not closed"),
        (r'a: "\d+"', r"s\.yaml:1: invalid YAML: found unknown escape character 'd'; use single quotes"),
        ("[" * 5000, r"s\.yaml: invalid YAML: it is nested too deeply"),
    ],
)
def test_faults_of_yaml_are_told_with_line_and_remedy(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_study(text, "s.yaml")
    with pytest.raises(UsageError, match=told):
        read_table(text, "s.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", float("-inf")),
        ("010", 10),
        ("0o10", 8),
        ("0x10", 16),
        ("+5", 5),
        ("!!int 0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-13-45", "2026-13-45"),
        ("no", "no"),
        ("on", "on"),
        ("True", True),
        ("~", None),
        ("", None),
        ("'1'", "1"),
    ],
)
def test_plain_values_are_those_of_yaml_1_2(text: str, value: object) -> None:
    read = read_study(f"\ufeffa: {text}", "s.yaml").data["a"]
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("text", ["!!int 1:30", "9" * 5_000])
def test_a_number_that_can_not_be_read_is_told_with_its_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"s\.yaml:2: invalid YAML: '[^']{1,40}' is not a whole number"):
        read_study(f"b: 1\na: {text}", "s.yaml")
