from __future__ import annotations

import asyncio
import json
import os
import textwrap
from pathlib import Path

from tests.support.children import Child
from tests.support.langsmith_server import KEY, Traces, langsmith_server

CODE = """
    import json, labmates
    from tests.support.puppet import dutiful, puppet

    with puppet(dutiful) as model:
        runs = labmates.run(
            "science", task="anomaly", difficulty="easy", model=model, visibility="team", store={store!r},
            settings={{"sandbox": "unsafe-local"}},
        )
    print(json.dumps([run.id for run in runs] + [runs[0].key, runs[0].status]))
"""


async def run_traced(tmp_path: Path, **environment: str) -> tuple[list[str], str]:
    code = textwrap.dedent(CODE).format(store=f"sqlite:///{tmp_path}/runs.db")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH", "LANGCHAIN"))}
    with Child(code, {**clean, **environment}) as child:
        printed, errors = await asyncio.to_thread(child.communicate)
    assert child.returncode == 0, errors
    return json.loads(printed), errors


async def traced_to(traces: Traces, tmp_path: Path) -> list[str]:
    printed, errors = await run_traced(
        tmp_path,
        LANGSMITH_TRACING="true",
        LANGSMITH_ENDPOINT=traces.url,
        LANGSMITH_API_KEY=KEY,
        LANGSMITH_PROJECT="lab",
    )
    assert KEY not in errors
    return printed


async def test_a_run_is_one_trace_with_readable_names_tags_and_metadata(tmp_path: Path) -> None:
    with langsmith_server() as traces:
        run_id, key, status = await traced_to(traces, tmp_path)
    assert status == "completed"
    [root] = traces.roots()
    assert root["name"] == f"science anomaly scripted:puppet {run_id}"
    assert root["session_name"] == "lab"
    assert {"labmates", "science", "anomaly", "team"} <= set(root["tags"])
    metadata = root["extra"]["metadata"]
    assert (metadata["condition"], metadata["task"], metadata["visibility"]) == (key, "anomaly", "team")
    assert metadata["model"] == "scripted:puppet"
    paths = {" > ".join(traces.path(run)[1:]) for run in traces.runs.values() if run["run_type"] == "llm"}
    assert "data > data team > data_lead > data_lead, phase 1: work 1" in paths
    assert "writing > writing team > write > lead_author, phase 1: write final_paper" in paths
    names = {run["name"] for run in traces.runs.values()}
    assert not {"Unnamed", "RunnableLambda", "LangGraph"} & names
    call = next(run for run in traces.runs.values() if run["run_type"] == "llm")
    assert call["extra"]["metadata"]["team"] == "data"
    assert KEY not in json.dumps(traces.runs)
    tools = [run for run in traces.runs.values() if run["run_type"] == "tool"]
    assert {run["name"].partition(": ")[2] for run in tools} == {"mark_complete"}, tools
    assert all(isinstance(run["inputs"], dict) and run["outputs"]["output"] for run in tools)
    choices = [run for run in traces.runs.values() if run["name"] in {"next_step", "next_team", "entrance"}]
    assert choices
    assert all("langsmith:hidden" in run["tags"] for run in choices)
    scores = {given["key"]: given["score"] for given in traces.feedback}
    assert scores.keys() >= {"heuristic.completeness", "verified.accuracy", "artifacts_missing"}
    assert {given["run_id"] for given in traces.feedback} == {root["id"]}


async def test_nothing_is_sent_when_tracing_is_off(tmp_path: Path) -> None:
    with langsmith_server() as traces:
        await run_traced(tmp_path, LANGSMITH_ENDPOINT=traces.url, LANGSMITH_API_KEY=KEY, LANGSMITH_TRACING="false")
    assert traces.requests == 0


async def test_a_dead_langsmith_changes_nothing_but_a_line_of_warning(tmp_path: Path) -> None:
    (_, _, status), errors = await run_traced(
        tmp_path, LANGSMITH_TRACING="true", LANGSMITH_ENDPOINT="http://127.0.0.1:9", LANGSMITH_API_KEY=KEY
    )
    assert status == "completed"
    assert "lsv2" not in errors
    assert "Traceback" not in errors
