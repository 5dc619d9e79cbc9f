"""How many files a model call passes; `python -m benchmarks.call_trace` names them."""

from __future__ import annotations

import pytest

from benchmarks.call_trace import trace_call


def test_a_call_passes_at_most_25_files_from_its_prompt_to_its_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    trace = trace_call()
    assert 20 <= len(trace.functions["call"]) <= 25, sorted(trace.functions["call"])
    assert 10 <= trace.depth <= 18
