from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.session import DELIM, Session

from labmates.sandboxes import control
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.client import Cell, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FRAME = st.binary(max_size=20) | JSON.map(lambda value: json.dumps(value).encode())


def frames(kind: Any, content: Any, parent: Any = "request") -> list[bytes]:
    parts: tuple[Any, ...] = ({"msg_type": kind}, {"msg_id": parent}, {}, content)
    return [b"topic", DELIM, b"signature", *(json.dumps(part).encode() for part in parts)]


def test_a_message_that_jupyter_wrote_is_read() -> None:
    session = Session(key=b"key")
    message = session.msg("stream", {"name": "stdout", "text": "hello"}, parent=session.msg("execute_request"))
    written = session.serialize(message, ident=b"stream.stdout")
    read_back = read(written)
    assert (read_back.kind, read_back.content["text"]) == ("stream", "hello")
    assert read_back.parent == message["parent_header"]["msg_id"]
    assert read_back.size == sum(map(len, written))


@given(st.lists(FRAME | st.just(DELIM), max_size=8))
def test_no_frames_are_ever_an_error(parts: list[bytes]) -> None:
    assert read(parts).size == sum(map(len, parts))


@pytest.mark.parametrize(
    "parts",
    [
        frames("stream", {"text": "x" * (9 << 20)}),
        frames("comm_msg", {}),
        frames("stream", ["not an object"]),
        frames(["stream"], {}),
        [DELIM, b"", b'{"msg_type": "stream"}', b"[]", b"{}", b"{}"],
        [DELIM, b"", b"[" * 100_000, b"{}", b"{}", b"{}"],
        [DELIM, b"", b'{"msg_type": "stream"}', b"{}", b"{}", b"[" * 100_000],
        [DELIM, b"", b'{"msg_type": "stream", "x": "' + b"x" * 70_000 + b'"}', b"{}", b"{}", b"{}"],
    ],
    ids=[
        "too large",
        "of no use",
        "no object",
        "odd kind",
        "odd parent",
        "deep header",
        "deep content",
        "large header",
    ],
)
def test_what_is_malformed_or_too_large_says_nothing(parts: list[bytes]) -> None:
    assert read(parts).kind == ""


@given(
    st.sampled_from(["stream", "error", "display_data", "execute_result", "status"]),
    st.dictionaries(st.sampled_from(["text", "traceback", "data", "name"]), JSON)
    | st.dictionaries(st.sampled_from(["text/plain", "image/png"]), JSON).map(lambda data: {"data": data}),
)
def test_a_cell_takes_any_content_and_answers_with_text_and_png_only(kind: str, content: dict[str, Any]) -> None:
    cell = Cell()
    cell.take(read(frames(kind, content)))
    text, _ = cell.output.finish()
    assert isinstance(text, str)
    assert cell.images == []


def test_a_file_that_comes_byte_by_byte_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_ANSWER_SECONDS", 0.3)
    ended = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as sender:
        listener.bind(str(tmp_path / "kept"))
        listener.listen(1)
        sender.connect(str(tmp_path / "kept"))

        def drip() -> None:
            while not ended.wait(0.02):
                with suppress(OSError):
                    sender.send(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(SandboxError, match="does not send its file"):
            control._take(listener)
        ended.set()
        dripping.join()
