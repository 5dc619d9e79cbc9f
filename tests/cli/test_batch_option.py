"""The option --batch of the verbs: half the bill, the same play, and one payment whatever happens."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from labmates.records.store import Store
from tests.support.batch_server import AnthropicBatchServer, BatchServer, Fate
from tests.support.children import Child, command
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model
from tests.support.text_author import TextAuthor

pytest.importorskip("langchain_anthropic")
QUICK = ("--batch", "--batch-window", "0.2", "--batch-poll", "0.02")
GAME = ("run", "game", "--game", "weakest-link", "--rounds", "1", "--replicates", "3", "--reasoning", "none", "--json")
PRICE = "price.input=4&price.output=20"


def by_seed(request: Json, number: int) -> Answer:
    """Decide by what is asked alone, so that a batch and single calls get the same."""
    del number
    return Answer(text=json.dumps({"effort": 1 + request.get("seed", 0) % 7}))


def at(server: OpenAIServer) -> str:
    provider = "anthropic" if isinstance(server, AnthropicBatchServer) else "openai"
    return f"{provider}:m?base_url={server.base_url}&{PRICE}"


def played(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("key", "seed", "status", "metrics", "condition")}


@pytest.mark.parametrize("kind", [BatchServer, AnthropicBatchServer])
def test_a_game_in_batches_is_the_same_game_for_half_the_bill(labmates: Labmates, kind: type[BatchServer]) -> None:
    with kind(by_seed, [Fate(looks=2, reverse=True)]) as server:
        batched = labmates(*GAME, "--model", at(server), *QUICK)
        direct = labmates(*GAME, "--model", at(server))
    assert (batched.code, direct.code) == (0, 0), batched.err + direct.err
    ends = [sorted(done.records, key=lambda record: record["seed"]) for done in (batched, direct)]
    for one, other in zip(*ends, strict=True):
        assert played(one) == played(other)
        assert float(one["bill"]) * 2 == pytest.approx(float(other["bill"]))
        assert one["usage"]["input_tokens"] == other["usage"]["input_tokens"] > 0
    assert sum(map(len, server.bodies)) == len(server.requests)
    assert "waiting for batch batch_0 of m: " in batched.err
    assert "batches, one after the other" not in batched.err


def test_a_game_of_rounds_warns_that_each_is_a_batch(labmates: Labmates) -> None:
    words = [word if word != "1" else "3" for word in GAME]
    with BatchServer(by_seed) as server:
        done = labmates(*words, "--model", at(server), *QUICK)
    assert done.code == 0
    assert "A run takes about 3 batches, one after the other" in done.err
    assert len(server.batches) >= 3


@pytest.mark.parametrize(
    "kind",
    [BatchServer, pytest.param(AnthropicBatchServer, marks=pytest.mark.slow("tests/cli/test_batch_option.py"))],
)
def test_a_killed_run_finds_its_batch_again_and_pays_once(
    labmates: Labmates, tmp_path: Path, kind: type[BatchServer]
) -> None:
    words = [word if word != "3" else "1" for word in GAME]
    with kind(by_seed, [Fate(looks=20)]) as server:
        environment = labmates._environment(tuple(words), {})
        with Child(command(*words, "--model", at(server), *QUICK), environment, tmp_path) as child:
            for line in child.stderr:
                if "waiting for batch" in line:
                    child.send_signal(signal.SIGKILL)
                    break
        [run] = Store(f"sqlite:///{tmp_path}/labmates.db", must_exist=True).runs()
        resumed = labmates("run", "game", "--resume", run.id, "--json")
        assert resumed.code == 0, resumed.err
        direct = labmates(*words, "--model", at(server))
    assert sum(map(len, server.bodies)) == len(server.requests)
    assert "found batch batch_0 of m again" in resumed.err
    [one], [other] = resumed.records, direct.records
    assert played(one) == played(other)
    assert one["usage"]["llm_calls"] == len(server.bodies[0])
    assert float(one["bill"]) * 2 == pytest.approx(float(other["bill"]))


def test_a_provider_without_batches_is_refused_before_the_first_call(labmates: Labmates) -> None:
    done = labmates(*GAME, "--model", "google_genai:g?base_url=http://127.0.0.1:9", *QUICK)
    assert done.code == 2
    assert "labmates supports no batch API of 'google_genai'" in done.err
    done = labmates(*GAME, "--model", "scripted:random", "--batch", "--stream")
    assert (done.code, "exclude each other" in done.err) == (2, True)


def test_a_server_without_a_batch_api_ends_the_run_with_advice(labmates: Labmates) -> None:
    with BatchServer(by_seed, has_api=False) as server:
        done = labmates(*GAME, "--model", at(server), *QUICK)
        assert done.code == 1
        assert "has no batch API (HTTP 404): leave --batch out (resume with --no-batch)" in done.err
        resumed = labmates("run", "game", "--resume", done.records[0]["id"], "--no-batch", "--json")
    assert resumed.code == 0, resumed.err


def test_a_study_in_batches_takes_half_of_its_cap(labmates: Labmates, tmp_path: Path) -> None:
    with BatchServer(by_seed) as server:
        fixed = {"game": "weakest-link", "rounds": 1, "reasoning": "none"}
        connection = {"batch_window": 0.2, "batch_poll": 0.02}
        spec = {"name": "s", "kind": "game", "models": [at(server)], "replicates": 3, "cap": "5", "fixed": fixed}
        (tmp_path / "s.yaml").write_text(json.dumps({**spec, "connection": connection}))
        plans = [labmates("study", "plan", "s.yaml", *more, "--json") for more in ([], ["--batch"])]
        done = labmates("study", "run", "s.yaml", "--batch", "--store", "sqlite:///batched.db")
        direct = labmates("study", "run", "s.yaml", "--store", "sqlite:///direct.db")
    shown = (labmates("study", "status", "s", "--store", f"sqlite:///{n}.db", "--json") for n in ("batched", "direct"))
    batched, single = (float(status.records[0]["spent"]) for status in shown)
    assert (done.code, direct.code) == (0, 0), done.err + direct.err
    planned, half = (plan.records[0]["models"][0] for plan in plans)
    assert planned["calls"] == sum(map(len, server.bodies)) == len(server.requests)
    assert float(half["dollars"]) == pytest.approx(float(planned["dollars"]) / 2, rel=0.01)
    assert batched * 2 == pytest.approx(single)
    assert single > 0


def test_a_pool_that_charges_the_bill_is_the_same_in_batches(labmates: Labmates) -> None:
    with BatchServer(by_seed) as server:
        model = f"{at(server)}&price.batch=0.25"
        words = (*GAME, "--prices", "bill", "--model", model)
        batched, direct = labmates(*words, *QUICK), labmates(*words)
        shown = labmates("models", "show", model)
    ends = [sorted(done.records, key=lambda record: record["seed"]) for done in (batched, direct)]
    for one, other in zip(*ends, strict=True):
        assert played(one) == played(other)
        assert float(one["bill"]) * 4 == pytest.approx(float(other["bill"]))
    assert "0.25 of the price (given)" in shown.out


@pytest.mark.needs("bubblewrap")
def test_judges_go_in_batches(labmates: Labmates) -> None:
    words = ("--task", "anomaly", "--model", "scripted:hasty", "--replicates", "2", "--json")
    runs = [record["id"] for record in labmates("run", "science", *words).records]
    rating = {"sections": dict.fromkeys(("abstract", "introduction", "dataset", "methods", "results"), True)}
    rating["sections"] |= {"evaluation": True, "conclusion": True}
    marks: dict[str, Any] = dict.fromkeys(("completeness", "quality", "accuracy"), 3)
    answer = Answer(text=json.dumps({**rating, **marks, **{f"{name}_reason": "fair" for name in marks}}))
    with BatchServer(answer) as server:
        done = labmates("judge", *runs, "--judge", at(server), "--json", *QUICK)
    assert done.code == 0, done.err
    assert [len(judged["added"]) for judged in done.records] == [3, 3]
    assert sum(map(len, server.bodies)) == 2
    assert "waiting for batch" in done.err


def test_labels_of_reasons_go_in_batches(labmates: Labmates) -> None:
    said = 'I trust that the other one does so too, as is fair to both. {"A0": 100, "A1": 0}'
    with OpenAIServer(Answer(text=said)) as players:
        words = ("--game", "prisoners", "--models", f"openai:p?base_url={players.base_url},scripted:defect")
        done = labmates("run", "dilemma", *words, "--replicates", "2")
        assert done.code == 0, done.err
    with BatchServer(Answer(text='{"labels": ["social welfare"]}')) as server:
        done = labmates("analyze", "reasons", "--judge", at(server), "--json", *QUICK)
    assert done.code == 0, done.err
    [told] = done.records
    assert (told["labelled"], sum(map(len, server.bodies))) == (16, 8)
    assert server.requests == []


def test_strategies_are_written_in_batches(labmates: Labmates) -> None:
    with BatchServer(serve_model(TextAuthor(), latency=0)) as server:
        words = ("--game", "public-goods", "--attitude", "collective", "-n", "4")
        done = labmates("strategies", "write", "--model", at(server), *words, *QUICK)
    assert done.code == 0, done.err
    assert sum(map(len, server.bodies)) >= 8
    assert server.requests == []
