"""Model names: what is accepted, and what a wrong one is told."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.models.names import PROVIDERS, ModelName, parse_model


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openai:gpt-5.4-mini", ModelName("openai", "gpt-5.4-mini")),
        ("openai:Qwen/Qwen3-4B", ModelName("openai", "Qwen/Qwen3-4B")),
        ("openai:qwen3:4b", ModelName("openai", "qwen3:4b")),
        (" openai : gpt-4o ", ModelName("openai", "gpt-4o")),
    ],
)
def test_a_name_is_split_at_its_first_colon(text: str, name: ModelName) -> None:
    assert parse_model(text) == name
    assert not name.scripted
    assert parse_model(str(name)) == name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpt-5.4-mini", "has no provider: write provider:name, for instance openai:gpt-5.4-mini"),
        ("", "has no provider: write provider:name, for instance openai:NAME"),
        ("openai:", "has no usable name after 'openai:'"),
        ("openai: ", "has no usable name"),
        ("openai:a\x1b[2Jb", "has no usable name"),
        ("opnai:gpt-4o", "unknown model provider 'opnai'. Did you mean 'openai'? Known: anthropic, "),
        (":gpt-4o", "unknown model provider ''."),
        ("scripted:", "has no usable name after 'scripted:'"),
        ("scripted:no-such-script", "unknown scripted baseline 'no-such-script'."),
    ],
)
def test_a_wrong_name_is_told_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_model(text)


def test_a_provider_whose_package_is_missing_is_told_which() -> None:
    missing = next(name for name, provider in PROVIDERS.items() if find_spec(provider.package) is None)
    package = PROVIDERS[missing].package.replace("_", "-")
    with pytest.raises(
        UsageError, match=rf"needs the (package {package}|extra '\w+'): pip install ({package}|'labmates\[\w+\]')"
    ):
        parse_model(f"{missing}:some-model")


@settings(max_examples=25, deadline=None)
@given(st.text())
def test_any_text_is_either_a_name_or_a_usage_error(text: str) -> None:
    try:
        name = parse_model(text)
    except UsageError:
        return
    assert name.provider in PROVIDERS
    assert name.name


def test_our_table_agrees_with_langchain_s() -> None:
    from langchain.chat_models.base import _BUILTIN_PROVIDERS

    theirs = {name: entry[0].partition(".")[0] for name, entry in _BUILTIN_PROVIDERS.items()}
    assert {name: provider.package for name, provider in PROVIDERS.items()}.items() <= theirs.items()


def test_checking_a_name_loads_no_heavy_library() -> None:
    code = (
        "import sys; from labmates.models.names import parse_model; parse_model('openai:gpt-4o');"
        "from labmates.models.roster import roster; roster();"
        "print([name for name in ('langchain_core', 'langchain', 'openai', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
