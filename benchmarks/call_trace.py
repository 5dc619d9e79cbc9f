"""What one model call passes: files and functions of labmates, from a player's prompt to the recorded decision.

A game is played over HTTP with a server of this machine, and stored. A player's second call is traced: what a process
does once (imports, connections) is left out. Its parts are the call, until its reply is in the record; the writing of
that to the store, in another thread; and the reading of the decision.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import labmates
from labmates.models.clients import DirectTransport
from labmates.records.recorder import Recorder
from labmates.workflows.calls.caller import Caller
from labmates.workflows.play.playing import Table
from tests.support.openai_server import Answer, OpenAIServer

HOME = f"{Path(labmates.__file__).parent}{os.sep}"
PARTS = ("call", "store", "reading")
_ANSWER = Answer('I share half. {"keep": 5, "group": 5, "global": 0}')
_PART: ContextVar[str] = ContextVar("part", default="")
"""The part of the traced call that goes on; tasks and threads inherit it."""


@dataclass
class Trace:
    """The functions that a call enters, by part and file, and how many of them are under way when it is sent."""

    functions: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {part: {} for part in PARTS})
    depth: int = 0

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a function of labmates; comprehensions and lambdas are parts of their functions."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME) or code.co_name.startswith("<"):
            return
        if part := _PART.get():
            name, file = code.co_qualname, code.co_filename.removeprefix(HOME)
            # A coroutine is entered again each time it goes on.
            if not any(name in files.get(file, ()) for files in self.functions.values()):
                self.functions[part].setdefault(file, []).append(name)
            if code is DirectTransport.handle_async_request.__code__:
                self.depth = sum(each.f_code.co_filename.startswith(HOME) for each in _stack(frame))


def trace_call(number: int = 3) -> Trace:
    """Play a game of two players who decide in turn, and trace their call of this number."""
    trace = Trace()
    threading.setprofile(trace.profile)  # for the threads that the store starts
    sys.setprofile(trace.profile)
    try:
        with OpenAIServer(_ANSWER) as server, tempfile.TemporaryDirectory() as folder, _marked(number):
            [run] = labmates.run(
                "game",
                game="public-goods",
                model="openai:m",
                groups=1,
                group_size=2,
                rounds=2,
                settings={"models": {"base_url": server.base_url}},
                store=f"sqlite:///{folder}/runs.db",
            )
        assert run.status == "completed"
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


@contextmanager
def _marked(number: int) -> Iterator[None]:
    """Mark the parts of one of the decisions of a game."""
    decide, call, flush, calls, turn = Table.decide, Caller.call, Recorder.flush, count(1), asyncio.Lock()

    async def decide_in_turn(*arguments: Any, **options: Any) -> Any:
        async with turn:
            token = _PART.set("call" if next(calls) == number else "")
            try:
                return await decide(*arguments, **options)
            finally:
                _PART.reset(token)

    async def call_then_read(*arguments: Any, **options: Any) -> Any:
        try:
            return await call(*arguments, **options)
        finally:
            _PART.set(_PART.get() and "reading")

    async def flush_apart(*arguments: Any) -> None:
        token = _PART.set(_PART.get() and "store")
        try:
            await flush(*arguments)
        finally:
            _PART.reset(token)

    with (
        mock.patch.object(Table, "decide", decide_in_turn),
        mock.patch.object(Caller, "call", call_then_read),
        mock.patch.object(Recorder, "flush", flush_apart),
    ):
        yield


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", action="store_true", help="list the functions of each file")
    chosen = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "none"
    trace = trace_call()
    for part, files in trace.functions.items():
        print(f"{part}: {sum(map(len, files.values()))} functions in {len(files)} files")
        for file, functions in files.items():
            print(f"  {len(functions):3} {file}")
            if chosen.functions:
                print("".join(f"        {function}\n" for function in functions), end="")
    print(f"{trace.depth} functions of labmates are under way when the request is sent")


if __name__ == "__main__":
    main()
