"""What runs an event loop works where one runs already: in a real notebook kernel, and in a program's own loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

import labmates
from labmates.records.store import Store
from labmates.util.loops import run_async
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model


@dataclass
class Cell:
    """What came of a cell: what it printed, by stream, and its error."""

    printed: dict[str, str] = field(default_factory=lambda: {"stdout": "", "stderr": ""})
    error: str | None = None


@dataclass
class Notebook:
    """A kernel with a client."""

    client: BlockingKernelClient
    pid: int

    def run(self, code: str) -> Cell:
        """Execute a cell to its end."""
        cell = Cell()

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                cell.printed[content["name"]] += content["text"]
            elif message["msg_type"] == "error":
                cell.error = content["ename"]

        self.client.execute_interactive(code, timeout=60, output_hook=take)
        return cell


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    manager = KernelManager()
    folder = tmp_path_factory.mktemp("notebook")
    environment = {**os.environ, "OPENAI_API_KEY": "none", "IPYTHONDIR": str(folder / "ipython")}
    manager.start_kernel(cwd=str(folder), env=environment)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield Notebook(client, cast(Any, manager.provisioner).pid)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_cell_runs_forks_and_replays(notebook: Notebook) -> None:
    cell = notebook.run(
        "import labmates\n"
        "game = {'game': 'o-ring', 'model': 'scripted:random', 'group_size': 3}\n"
        "runs = labmates.run('game', **game, replicates=2, progress=True)\n"
        "fork = labmates.fork(runs[0].id, at=4, changes={'repair_turns': 5})\n"
        "same = labmates.replay(runs[0].id).is_same\n"
        "print([run.status for run in [*runs, fork]], same)"
    )
    assert cell.error is None
    assert cell.printed["stdout"] == "['completed', 'completed', 'completed'] True\n"
    assert cell.printed["stderr"].count(": completed, 18 calls, ") == 2
    assert "Warning" not in cell.printed["stderr"]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow("tests/test_notebook.py"))])
def test_lines_follow_a_study_and_each_run_that_fails(notebook: Notebook, processes: int) -> None:
    study = (
        "name: bars\nkind: game\nmodels: [MODELS]\nfixed: {game: o-ring, group_size: 2, rounds: 1}\n"
        "connection: {max_retries: 0}\nconcurrency: {workers: WORKERS}\n"
    )

    async def refuse(request: Json, number: int) -> Answer:
        return Answer(status=400)

    with OpenAIServer(refuse) as server:
        failing = f"openai:m?base_url={server.base_url}"
        played, statuses = (
            (failing, ["completed", "failed"]) if processes == 1 else ("scripted:defect", ["completed"] * 2)
        )
        text = study.replace("bars", f"bars{processes}").replace("MODELS", f'"scripted:random", "{played}"')
        text = text.replace("WORKERS", str(processes))
        cell = notebook.run(
            f"import labmates, pathlib\npathlib.Path('bars.yaml').write_text({text!r})\n"
            "print(sorted(run.status for run in labmates.study('bars.yaml', progress=True)))"
        )
    assert cell.printed["stdout"] == f"{statuses}\n", cell
    last = ": failed, " if processes == 1 else "bars2: 2 of 2 runs ended"
    assert last in cell.printed["stderr"]


def test_an_error_in_a_cell_keeps_its_type(notebook: Notebook) -> None:
    assert (
        notebook.run("import labmates\nlabmates.run('game', game='chess', model='scripted:random')").error
        == "UsageError"
    )


def test_an_interrupted_cell_is_resumed_without_paying_twice(notebook: Notebook) -> None:
    held = threading.Event()
    answer = serve_model(FormFiller(), latency=0)

    async def hold_third(request: Json, number: int) -> Answer:
        if number == 2:
            held.set()
            return Answer(silent=True)
        made = answer(request, number)
        return made if isinstance(made, Answer) else await made

    def interrupt() -> None:
        assert held.wait(60)
        os.kill(notebook.pid, signal.SIGINT)  # what a notebook's interrupt button does

    with OpenAIServer(hold_third) as server:
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        cell = notebook.run(
            "import labmates\n"
            f"settings = {{'models': {{'base_url': '{server.base_url}', 'max_concurrent_calls': 1}}}}\n"
            "labmates.run('game', game='o-ring', model='openai:m', group_size=3, settings=settings,"
            "             store='sqlite:///cut.db')"
        )
        interrupting.join()
        assert cell.error == "KeyboardInterrupt"
        assert "resume with: labmates.resume()" in cell.printed["stderr"]
        cell = notebook.run(
            "[run] = labmates.resume(store='sqlite:///cut.db')\nprint(run.status, run.usage.llm_calls)\n"
            "print(labmates.resume(store='sqlite:///cut.db'))"
        )
        assert cell.printed["stdout"] == "completed 18\nno runs\n", cell
        assert len(server.requests) == 19  # 18, and the one that was cut off


async def test_a_running_loop_of_ones_own_is_no_hindrance(store: Store, tmp_path: Path) -> None:
    where = contextvars.ContextVar("where", default="elsewhere")
    where.set("here")

    async def context() -> tuple[str, str]:
        await asyncio.sleep(0)
        return where.get(), threading.current_thread().name

    assert run_async(context) == ("here", "labmates")
    [run] = labmates.run("game", game="o-ring", model="scripted:random", group_size=3, store=store.url)
    assert run.status == "completed"
    study = tmp_path / "plays.yaml"
    study.write_text(
        "name: plays\nkind: game\nfixed: {game: o-ring, group_size: 3}\ngrid: {model: [scripted:random]}\nreplicates: 2"
    )
    played = labmates.study(study, store=store.url)
    assert [run.status for run in played] == ["completed"] * 2
    assert labmates.study(study, store=store.url) == played
    with pytest.raises(labmates.UsageError, match="unknown game 'chess'"):
        labmates.run("game", game="chess", model="scripted:random", store=store.url)
