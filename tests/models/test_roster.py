"""The roster of the study's models: complete, and found by their names as servers have them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from labmates.analysis.bayes.proximity.observations import find
from labmates.errors import UsageError
from labmates.models.roster import KnownModel, read_roster, roster, traits_of


def test_the_roster_has_the_study_s_35_models_of_ten_families() -> None:
    models = roster()
    assert len({model.name for model in models}) == len(models) == 35
    families = Counter(model.family for model in models)
    assert families == {
        "Qwen3": 10,
        "Granite 4": 6,
        "Gemma 3": 4,
        "Nemotron": 4,
        "Qwen3.5": 3,
        "Llama": 2,
        "OLMo": 2,
        "Phi-4": 2,
        "GPT-OSS": 1,
        "Mistral": 1,
    }
    assert sum(model.thinking for model in models) == 11
    assert (min(model.size for model in models), max(model.size for model in models)) == (0.6, 70.0)
    assert all(10 < (model.mmlu_pro or 0) < 90 and 30 < (model.ifeval or 0) < 95 and model.source for model in models)


def test_thinking_modes_share_their_weights() -> None:
    known = {model.name: model for model in roster()}
    pairs = [(name, name.removesuffix("-think")) for name in known if name.endswith("-think")]
    assert len(pairs) == 6
    for thinking, plain in pairs:
        assert known[thinking].size == known[plain].size
        assert known[thinking].thinking
        assert not known[plain].thinking


@pytest.mark.parametrize("name", ["qwen3-4b", "openai:qwen3-4b", "openai:Qwen/Qwen3-4B", "Qwen3-4B"])
def test_a_model_is_found_by_its_name(name: str) -> None:
    model = KnownModel("qwen3-4b", "Qwen3", 4.0, False, 50.6, 81.2, "Yang et al. (2025)")
    assert traits_of([name, "qwen3-4c"]) == {name: model}


@pytest.mark.parametrize("listed", ["openai:Org/Tiny-1B", "Org/tiny-1b", "tiny-1b"])
def test_a_model_of_the_user_s_is_found_whatever_part_of_its_name_is_listed(listed: str) -> None:
    mine = replace(roster()[0], name=listed)
    assert traits_of(["openai:Org/Tiny-1B", "openai:Org/Tiny-2B"], [mine]) == {"openai:Org/Tiny-1B": mine}
    assert find("openai:Org/Tiny-1B", [mine]) == mine
    assert find("openai:Org/Tiny-2B", [mine]) is None


def test_a_roster_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("name,family,size,thinking,mmlu_pro\nnew,New,7.5,no,\n")
    assert read_roster(path) == (KnownModel("new", "New", 7.5, False, None, None, ""),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rows"),
        ("name,family,size\nnew,New,7.5\n", "has no column thinking"),
        ("name,size,thinking\nnew,big,no\n", "line 2 .new.: size must be a number, not 'big'"),
        ("name,size,thinking\nnew,0,no\n", "size must be a positive number"),
        ("name,size,thinking\nnew,1,perhaps\n", "thinking must be yes or no"),
        ("name,size,thinking\n,1,no\n", "a model needs a name"),
    ],
)
def test_what_is_wrong_with_a_roster_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_roster(path)
