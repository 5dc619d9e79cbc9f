"""The roster of the study's models: complete, and found by their names as servers have them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.models.hub import ModelHub
from labmates.models.roster import KnownModel, read_roster, roster, traits_of
from tests.support.openai_server import OpenAIServer


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
    [found] = traits_of([name, "qwen3-4c"]).values()
    assert replace(found, weights="", setting="", served=()) == model


@pytest.mark.parametrize(
    ("served", "name"),
    [
        ("openai:mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral-small-3.1-24b"),
        ("openai:nvidia/Llama-3.1-Nemotron-Nano-4B-v1.1", "nemotron-nano-4b"),
        ("openai:nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nemotron-nano-8b"),
        ("openai:nvidia/Nemotron-H-8B-Reasoning-128K", "nemotron-h-8b-reasoning"),
        ("openai:nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano-30b"),
        ("openai:allenai/Olmo-3.1-32B-Instruct", "olmo-3.1-32b"),
        ("openai:Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("ollama:qwen3:14b", "qwen3-14b"),
        ("ollama:qwen3:14b?chat_template_kwargs.enable_thinking=true", "qwen3-14b-think"),
        ("openai:gpt-oss:20b", "gpt-oss-20b"),
        ("ollama:phi4:14b", "phi-4"),
    ],
)
def test_a_model_is_found_by_its_name_at_hugging_face_and_ollama(served: str, name: str) -> None:
    assert {known.name for known in traits_of([served]).values()} == {name}


def test_no_two_models_of_the_roster_share_a_name() -> None:
    names = Counter(name for model in roster() for name in (model.name, *model.served))
    assert names.most_common(1)[0][1] == 1


@pytest.mark.parametrize("listed", ["openai:Org/Tiny-1B", "Org/tiny-1b", "tiny-1b"])
def test_a_model_of_the_user_s_is_found_whatever_part_of_its_name_is_listed(listed: str) -> None:
    mine = replace(roster()[0], name=listed)
    assert traits_of(["openai:Org/Tiny-1B", "openai:Org/Tiny-2B"], [mine]) == {"openai:Org/Tiny-1B": mine}


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
        ("name,size,thinking\nnew,1,no\nNew,2,no\n", "line 3 .New.: an earlier line has this model"),
        ("name,size,thinking\n,1,no\n", "a model needs a name"),
    ],
)
def test_what_is_wrong_with_a_roster_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_roster(path)


@pytest.mark.parametrize(("name", "text"), [("size", "inf"), ("size", "nan"), ("mmlu_pro", "nan"), ("ifeval", "-inf")])
def test_what_is_no_finite_number_is_told(tmp_path: Path, name: str, text: str) -> None:
    row = {"name": "m", "size": "7", "thinking": "no", "mmlu_pro": "50", "ifeval": "50", name: text}
    (tmp_path / "roster.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    with pytest.raises(UsageError, match=f"line 2 .m.: {name} must be a number, not '{text}'"):
        read_roster(tmp_path / "roster.csv")


@pytest.mark.parametrize(
    "model", [model for model in roster() if model.thinking or model.setting], ids=lambda m: m.name
)
async def test_each_mode_of_thinking_is_reached_by_its_setting(model: KnownModel) -> None:
    with OpenAIServer() as server:
        catalog = Catalog(named={})
        setting = f"{model.setting}&" if model.setting else ""
        name = catalog.name_of(f"openai:{model.weights}?{setting}base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
    path, _, value = model.setting.partition("=")
    sent = {path.partition(".")[2]: json.loads(value)} if value else None
    assert server.requests[0].body["model"] == model.weights
    assert server.requests[0].body.get("chat_template_kwargs") == sent
    assert traits_of([name]) == {name: model}
