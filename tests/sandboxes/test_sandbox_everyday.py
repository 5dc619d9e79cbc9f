"""Everyday calls of each library that agents are told of do in every sandbox what they do in plain Python.

The calls are lines of ``everyday/LIBRARY.txt``, written as agents write them; each sees the names of earlier lines.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from labmates.sandboxes.interpreter import FLAGS, LIBRARIES, this_interpreter
from labmates.sandboxes.local import local_environment
from labmates.sandboxes.session import KernelBackend
from labmates.sandboxes.warmup import warm_up
from tests.sandboxes.backends import make_backend
from tests.support.shared import making

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDER = Path(__file__).with_name("everyday")
PLAYER = (FOLDER / "play.py").read_text()
CALLS = {path.stem: path.read_text().splitlines() for path in sorted(FOLDER.glob("*.txt"))}
LOAD = "import numpy as np, pandas as pd\nnp.set_printoptions(legacy='1.25')\ndf = pd.read_csv('data.csv')\n"

Given = list[list[str]]
"""Each call, whether it gave something or raised, and what."""


def rows() -> Iterator[str]:
    """60 measurements at three sites, a few without a weight."""
    yield "site,treated,dose,biomass,count,label,weight,day"
    for i in range(60):
        dose = i * 37 % 60 / 10
        biomass = 3 + 0.8 * dose + 0.5 * (i % 2) + (i * 7919 % 101 - 50) / 50 + 0.4 * (i % 3)
        weight = "" if i % 17 == 5 else f"{50 + i * 31 % 40 / 3:.2f}"
        day = f"2024-{1 + i // 30:02d}-{1 + i // 3 % 10:02d}"
        label = "yes" if biomass > 5 else "no"
        yield f"{'ABC'[i % 3]},{i % 2},{dose:.1f},{biomass:.3f},{i * 13 % 9},{label},{weight},{day}"


def cell(library: str) -> str:
    return f"play({library!r}, {CALLS[library]!r}, globals())\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("everyday") / "data.csv"
    path.write_text("\n".join(rows()) + "\n")
    return path


@pytest.fixture(scope="module")
def plain(table: Path) -> Mapping[str, Given]:
    """What the calls give in plain Python, with all packages of this machine; played once a session."""
    with making("everyday") as made:
        if not made.exists():
            (table.parent / "out").mkdir()
            environment = {**local_environment(table.parent, table.parent, warm_up()), "MPLBACKEND": "agg"}
            code = LOAD + PLAYER + "".join(map(cell, CALLS))
            command = [str(this_interpreter().executable), *FLAGS, "-c", code]
            subprocess.run(command, env=environment, cwd=table.parent, capture_output=True, check=True)
            given = {library: json.loads((table.parent / f"out/{library}.json").read_text()) for library in CALLS}
            made.write_text(json.dumps(given))
        return dict(json.loads(made.read_text()))


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
        pytest.param("docker", marks=pytest.mark.needs("docker")),
        "unsafe-local",
    ],
)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[KernelBackend]:
    backend = make_backend(request.param)
    yield backend
    await backend.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(backend: KernelBackend, table: Path) -> Mapping[str, Given]:
    """What the calls give in a sandbox: all in one session, a library a cell."""
    session, given = await backend.open(table), dict[str, Given]()
    assert (await session.run(PLAYER)).status == "ok"
    for library in CALLS:
        result = await session.run(cell(library), timeout=300)
        files = {file.name: file.content for file in result.files}
        given[library] = json.loads(files[f"{library}.json"])
    await session.close()
    return given


async def test_each_library_that_agents_are_told_of_has_at_least_80_calls() -> None:
    names = {"sklearn": "scikit-learn"}
    assert {names.get(library, library) for library in CALLS} == set(LIBRARIES)
    for library, lines in CALLS.items():
        calls = [line for line in lines if ";" in line or not line.startswith(("import ", "from "))]
        assert len(set(calls)) >= 80, library


@pytest.mark.slow("tests/sandboxes/test_sandbox_conformance.py")
@pytest.mark.parametrize("library", CALLS)
async def test_everyday_calls_give_what_they_give_in_plain_python(
    library: str, played: Mapping[str, Given], plain: Mapping[str, Given]
) -> None:
    assert not [call for call in plain[library] if call[1] == "raised"]
    assert [call for call in played[library] if call[1] == "raised"] == []
    # With pyarrow, plain Python keeps texts in another kind of array.
    expected = [[text.replace("ArrowStringArray", "StringArray") for text in call] for call in plain[library]]
    assert played[library] == expected
