"""The link between a run and its pages: questions and answers, replies under way, and who may listen."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from labmates.models.reply import LISTENER, Piece
from labmates.workflows.people.approval import Answer, Question
from labmates.workflows.people.live import ask_run, follow_run, live_run, socket_of

QUESTION = Question("r1", "authors/0/ben/plan/0", "authors", "ben", "plan", "authors", "Look, then write.")
YES = {"do": "reply", "step": QUESTION.step, "decision": "yes"}
NOTHING: dict[str, Any] = {"type": "waiting", "question": None, "heading": "", "agents": []}
LATE = {"fault": "This question no longer waits for an answer."}


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "labmates"


async def waiting(run_id: str) -> dict[str, Any]:
    """The question of a run, as soon as it waits."""
    async for message in follow_run(run_id, {"do": "follow"}):
        if message["type"] == "waiting" and message["question"]:
            return dict(message["question"])
    raise AssertionError("the run has ended")


async def test_a_question_is_answered_once_and_by_its_own_step_alone() -> None:
    async with live_run("r1") as live:
        asking = asyncio.create_task(live.ask(QUESTION))
        assert (await waiting("r1"))["text"] == QUESTION.text
        assert await ask_run("r1", {**YES, "step": "another"}) == LATE
        assert await ask_run("r1", {**YES, "decision": "perhaps"}) == {"fault": f"{QUESTION.how}."}
        assert await ask_run("r1", {**YES, "decision": "no", "reason": "too long"}) == {"fault": ""}
        assert await asking == Answer(approved=False, reason="too long")
        assert await ask_run("r1", YES) == LATE
        assert await ask_run("r1", {"do": "question"}) == NOTHING
    assert await ask_run("r1", {"do": "question"}) is None
    assert not socket_of("r1").exists()


async def test_a_reply_is_listened_to_only_while_somebody_follows() -> None:
    async with live_run("r2") as live:
        with live.reply("a/0", "ana"):
            assert LISTENER.get() is None
        following = follow_run("r2", {"do": "follow"})
        await anext(following)
        with live.reply("a/1", "ana"):
            listener = LISTENER.get()
            assert listener is not None
            listener(None)
            listener(Piece("Hel"))
            listener(Piece("lo"))
            listener(None)
            listener(Piece("Good"))
            listener(Piece("bye"))
        messages = [await anext(following) for _ in range(4)]
        texts = [(message.get("text"), message.get("begins")) for message in messages]
        assert texts == [("", True), ("", True), ("Goodbye", False), (None, None)]
        assert {message["step"] for message in messages} == {"a/1"}
        await following.aclose()
    assert LISTENER.get() is None


async def test_a_client_that_comes_late_gets_the_text_so_far() -> None:
    async with live_run("r3") as live:
        first, second = (follow_run("r3", {"do": "follow"}) for _ in range(2))
        await anext(first)
        with live.reply("a/0", "ana"):
            listener = LISTENER.get()
            assert listener is not None
            listener(Piece("so far"))
            assert (await anext(first))["text"] == "so far"
            await anext(second)
            assert await anext(second) == {
                "type": "reply", "step": "a/0", "agent": "ana", "text": "so far", "begins": True
            }  # fmt: skip


async def test_a_run_whose_folder_others_can_enter_is_followed_by_nobody(runtime: Path) -> None:
    await asyncio.to_thread(runtime.mkdir, mode=0o755)
    async with live_run("r4") as live:
        assert not socket_of("r4").exists()
        with live.reply("a/0", "ana"):
            assert LISTENER.get() is None


async def test_a_folder_that_was_removed_is_made_again(runtime: Path) -> None:
    async with live_run("r8"):
        assert await ask_run("r8", {"do": "question"})
    await asyncio.to_thread(runtime.rmdir)
    async with live_run("r8"):
        assert await ask_run("r8", {"do": "question"})


@pytest.mark.parametrize("line", [b"\n", b"[1]\n", b"nonsense\n", b"x" * (2 << 20)])
async def test_a_client_that_sends_nonsense_harms_nothing(line: bytes) -> None:
    async with live_run("r5") as live:
        reader, writer = await asyncio.open_unix_connection(socket_of("r5"))
        writer.write(line)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        asking = asyncio.create_task(live.ask(QUESTION))
        await waiting("r5")
        assert await ask_run("r5", YES) == {"fault": ""}
        assert (await asking).approved


async def test_a_client_that_reads_nothing_does_not_keep_a_run_from_ending() -> None:
    async with asyncio.timeout(60):
        with socket.socket(socket.AF_UNIX) as client:
            async with live_run("r6") as live:
                client.connect(str(socket_of("r6")))
                client.sendall(b'{"do": "follow"}\n')
                await asyncio.to_thread(client.recv, 1)
                for _ in range(30):
                    live.tell({"type": "text", "text": "x" * 100_000})
            assert not socket_of("r6").exists()


async def test_a_client_that_has_asked_nothing_is_let_go_at_the_end() -> None:
    async with live_run("r7"):
        reader, writer = await asyncio.open_unix_connection(socket_of("r7"))
        await asyncio.sleep(0.05)
    assert await reader.read() == b""
    writer.close()


def test_clients_that_come_while_a_run_ends_are_let_go() -> None:
    over, faults = threading.Event(), []

    async def come() -> None:
        while not over.is_set():
            await ask_run("r9", {"do": "question"})

    async def execute() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context["message"]))
        async with live_run("r9"):
            await asyncio.sleep(0.002)

    clients = [threading.Thread(target=lambda: asyncio.run(come())) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        for _ in range(100):
            asyncio.run(execute())
    finally:
        over.set()
        for client in clients:
            client.join()
    assert not faults


@pytest.mark.parametrize("passes", range(6))
async def test_a_client_that_is_accepted_as_the_run_ends_leaves_no_socket_open(passes: int) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        async with live_run("r10"):
            client.connect(str(socket_of("r10")))
            for _ in range(passes):
                await asyncio.sleep(0)
        client.settimeout(5)
        with suppress(ConnectionResetError):
            assert await asyncio.to_thread(client.recv, 1) == b""
    gc.collect()  # an open socket is told, and fails the test
