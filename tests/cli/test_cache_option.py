from __future__ import annotations

from labmates.models.scripted import BASELINES
from tests.support.command_line import Labmates
from tests.support.openai_server import OpenAIServer, serve_model

RUN = [
    "run",
    "science",
    "--task",
    "anomaly",
    "--difficulty",
    "easy",
    "--model",
    "openai:m",
    "--json",
    "--sandbox",
    "unsafe-local",
]


def test_calls_from_the_cache_are_marked_in_the_list_of_events(labmates: Labmates) -> None:
    with OpenAIServer(serve_model(BASELINES.get("silent")(), latency=0)) as server:
        runs = [labmates(*RUN, "--base-url", server.base_url, "--cache").records[0] for _ in range(2)]
        asked = [request for request in server.requests if request.method == "POST"]
    assert len(asked) == runs[0]["usage"]["llm_calls"]
    assert runs[0]["budget"] == runs[1]["budget"]
    listed = [labmates("show", run["id"], "--events").out.splitlines() for run in runs]
    assert not any("[cached]" in line for line in listed[0])
    marked = [line.split()[4] for line in listed[1] if "[cached]" in line]
    assert set(marked) == {"llm_call", "charge"}
    assert len(marked) == 2 * len(asked)


def test_the_help_tells_what_it_does(labmates: Labmates) -> None:
    assert "--cache" in labmates("run", "science", "--help").out
