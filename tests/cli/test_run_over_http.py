from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from labmates.models.scripted import BASELINES
from labmates.records.store import Store
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, Behaviour, Json, OpenAIServer, fault, serve_model

KEY = "sk-very-secret-0123456789abcdef"
RUN = ["run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "openai:some-model", "--json"]


async def ask(behaviour: Behaviour, request: Json, n: int) -> Answer:
    """Return what another behaviour answers."""
    answer = behaviour(request, n)
    return answer if isinstance(answer, Answer) else await answer


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("stream", [False, True])
def test_a_team_benchmark_runs_against_an_openai_compatible_server(labmates: Labmates, stream: bool) -> None:
    with OpenAIServer(serve_model(BASELINES.get("hasty")(), latency=0)) as server:
        done = labmates(
            *RUN, "--base-url", server.base_url, "--budget", "0.50", "--visibility", "team", "--team-size", "3",
            "--theory-of-mind", "--replicates", "2", *(["--stream"] if stream else ["--sandbox", "bubblewrap"]),
            OPENAI_API_KEY=KEY,
        )  # fmt: skip
    assert done.code == 0
    records = done.records
    assert [(record["replicate"], record["seed"]) for record in sorted(records, key=lambda r: r["seed"])] == [
        (0, 0),
        (1, 1),
    ]
    for record in records:
        assert record["status"] == "completed"
        assert record["condition"]["visibility"] == "team"
        assert record["condition"]["theory_of_mind"] is True
        assert record["usage"]["llm_calls"] > 20
        assert record["budget"]["total"] == "0.5"
        assert {score["judge"] for score in record["scores"]} == {"heuristic", "verified"}
    body = server.requests[-1].body
    assert {"seed", "model", "messages"} <= set(body)
    assert bool(body.get("stream")) == stream
    assert len({request.body["seed"] for request in server.requests}) > 40
    assert KEY not in done.out + done.err


def test_a_server_that_answers_only_garbage_ends_in_a_record_that_says_so(labmates: Labmates, tmp_path: Path) -> None:
    with OpenAIServer(lambda _request, _n: fault(200, "<html>welcome</html>")) as server:
        done = labmates(*RUN, "--base-url", server.base_url, "--max-retries", "1")
    assert done.code == 1
    [record] = done.records
    assert record["status"] == "failed"
    assert server.base_url.split("//")[1].split("/")[0] in record["error"]
    assert f"--resume {record['id']}" in done.err
    assert len(server.requests) == 1, "a page in place of an API stays one"
    assert Store(f"sqlite:///{tmp_path}/labmates.db").run(record["id"]).status == "failed"


def test_a_model_that_writes_only_nonsense_is_scored_as_it_is_and_its_run_is_invalid(labmates: Labmates) -> None:
    with OpenAIServer(lambda _request, _n: Answer(text="")) as server:
        done = labmates(*RUN, "--base-url", server.base_url)
    assert done.code == 1
    [record] = done.records
    assert (record["status"], record["valid"]) == ("completed", False)
    assert record["usage"]["failed_replies"] == record["usage"]["llm_calls"] > 0
    assert record["metrics"]["completeness"] == 0
    assert record["metrics"]["accuracy"] == 0


def test_a_server_that_dies_half_way_leaves_a_run_that_goes_on_later(labmates: Labmates) -> None:
    hasty = serve_model(BASELINES.get("hasty")(), latency=0)
    with OpenAIServer(hasty) as whole:
        expected = labmates(*RUN, "--base-url", whole.base_url, "--sandbox", "unsafe-local").records[0]

    async def dies(request: Json, n: int) -> Answer:
        if n >= 15:
            return Answer(cut="before")
        return await ask(hasty, request, n)

    with OpenAIServer(dies) as server:
        done = labmates(*RUN, "--base-url", server.base_url, "--max-retries", "1", "--sandbox", "unsafe-local")
    assert done.code == 1
    [record] = done.records
    assert record["status"] == "failed"
    assert 0 < record["usage"]["llm_calls"] < expected["usage"]["llm_calls"]
    with OpenAIServer(hasty) as server:
        again = labmates("run", "science", "--resume", record["id"], "--json", "--base-url", server.base_url)
    assert again.code == 0
    resumed = again.records[0]
    # The calls that the dead server never answered may have been paid: they stand beside the others.
    assert resumed["usage"]["uncertain_attempts"] > 0
    assert resumed["usage"]["uncertain"] > 0
    resumed["usage"] |= {"uncertain_attempts": 0, "uncertain": 0}
    for key in ("metrics", "scores", "usage", "status", "key", "seed"):
        assert resumed[key] == expected[key], key
    ended = labmates("run", "science", "--resume", record["id"])
    assert ended.code == 2
    assert "has ended (completed)" in ended.err


def test_a_context_that_overflows_is_shortened_or_ends_the_phase(labmates: Labmates) -> None:
    hasty = serve_model(BASELINES.get("hasty")(), latency=0)

    async def small(request: Json, n: int) -> Answer:
        if len(str(request["messages"])) > 5450:
            error = {"message": "too long", "type": "exceed_context_size_error", "code": 400}
            return fault(400, {"error": error})
        return await ask(hasty, request, n)

    with OpenAIServer(small) as server:
        done = labmates(*RUN, "--base-url", server.base_url, "--sandbox", "unsafe-local")
    assert done.code == 0
    [record] = done.records
    assert record["status"] == "completed"
    story = labmates("show", record["id"])
    assert "context overflowed" in story.out


def test_other_options_with_resume_must_agree_with_the_run(labmates: Labmates) -> None:
    with OpenAIServer(lambda _request, _n: fault(500)) as server:
        done = labmates(*RUN, "--base-url", server.base_url, "--max-retries", "0")
        run_id = done.records[0]["id"]
        changed = labmates("run", "science", "--resume", run_id, "--budget", "9")
        same = labmates("run", "science", "--resume", run_id, "--task", "anomaly", "--base-url", server.base_url)
    assert changed.code == 2
    assert "its own condition" in changed.err
    assert same.code == 1
    assert re.search(r"failed", same.err)


@pytest.mark.parametrize("replicates", ["1", "2"])
def test_why_replies_failed_and_what_helps_is_told_after_the_run(labmates: Labmates, replicates: str) -> None:
    game = ["run", "game", "--game", "public-goods", "--groups", "1", "--rounds", "1", "--replicates", replicates]
    with OpenAIServer(Answer(text="", reasoning="I think. " * 400, finish="length")) as server:
        done = labmates(*game, "--model", "openai:some-model", "--base-url", server.base_url, OPENAI_API_KEY=KEY)
        study = {"name": "cut", "kind": "game", "models": [f"openai:m?base_url={server.base_url}"], "replicates": 2}
        study |= {"fixed": {"groups": 1, "rounds": 1}, "grid": {"game": ["public-goods"]}}
        (labmates.folder / "cut.yaml").write_text(json.dumps(study))
        asked = len(server.requests)
        all_of_it = labmates("study", "run", "cut.yaml", OPENAI_API_KEY=KEY)
    assert f"Failed replies: cut, empty ({asked})" in done.out
    assert f"Failed replies: cut, empty ({len(server.requests) - asked})" in all_of_it.out
    assert all("a higher --max-output-tokens" in told.out for told in (done, all_of_it))
