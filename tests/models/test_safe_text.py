"""Text that can be stored and shown, and secrets that can not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.models.error_bodies import LONGEST_READ, read_error
from labmates.models.failures import failure_of
from labmates.models.redact import MASK, Redactor
from labmates.util.safe_text import UnsafeValueError, safe_text, safe_value

FEW = settings(max_examples=40, deadline=None)
SECRET = "Zq7-fake-secret_0123456789"


@FEW
@given(st.text(st.characters()))
def test_safe_text_can_be_stored_and_keeps_all_else(text: str) -> None:
    safe = safe_text(text)
    safe.encode()
    assert safe_text(safe) == safe
    assert not any(ord(char) < 32 and char not in "\t\n\r" for char in safe)
    if text.isprintable():
        assert safe == text


def test_a_torn_pair_of_surrogates_is_put_together() -> None:
    assert safe_text("a\ud83d\ude00\ude00b\x9b") == "a\U0001f600\ufffdb\ufffd"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, {"a": [2**70]}, {"a": object()}, {"a": (1,)}])
def test_a_value_that_can_not_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(UnsafeValueError):
        safe_value(value)


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    with pytest.raises(UnsafeValueError, match="nested deeper"):
        safe_value(value)


@FEW
@given(st.text(st.characters(codec="ascii"), max_size=30), st.integers(0, 18), st.integers(8, 26), st.booleans())
def test_every_longer_piece_of_a_secret_is_hidden(around: str, start: int, length: int, upper: bool) -> None:
    piece = SECRET[start : start + length]
    if len(piece) < 8:
        return
    shown = Redactor([SECRET])(f"{around} {piece.upper() if upper else piece} {around}")
    assert piece.lower() not in shown.lower()
    assert MASK in shown


def test_a_piece_that_stands_in_several_places_is_hidden_in_all() -> None:
    assert Redactor([SECRET])(f"{SECRET[:9]} and {SECRET[:9]} and {SECRET}") == f"{MASK} and {MASK} and {MASK}"


def test_a_text_without_secrets_stays_as_it_is() -> None:
    text = "HTTP 404: the model 'qwen3-4b' does not exist; see https://example.com/docs?page=1 *** now ***"
    assert Redactor([SECRET, "none", ""])(text.replace("***", "**")) == text.replace("***", "**")


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdefghij",
        "key sk-ab12***************yz90 is wrong",
        "hf_abcdefghijklmnop",
        "abcd********wxyz",
        "gsk_abcdef123",
    ],
)
def test_what_looks_like_a_key_is_hidden_though_unknown(text: str) -> None:
    assert MASK in Redactor()(text)
    assert "ab" not in Redactor()(text).replace(MASK, "")


def test_secrets_of_the_environment_are_known_by_their_names() -> None:
    redact = Redactor.from_environment({"TEAM_API_KEY": SECRET, "HOME": "/home/somebody"}, "another-secret-value")
    assert redact(f"{SECRET} /home/somebody another-secret-value") == f"{MASK} /home/somebody {MASK}"
    assert SECRET not in repr(redact)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "a\\nb", "code": 400}}', "a b"),
        ('{"error": "text"}', "text"),
        ('{"detail": "text"}', "text"),
        ('{"detail": {"message": "inner"}}', "inner"),
        ('{"detail": {"what": 1}}', '{"what": 1}'),
        ('{"detail": []}', '{"detail": []}'),
        ('[{"error": {"message": "in a list"}}]', "in a list"),
        ("[]", ""),
        ('{"error": {', '{"error": {'),
        ('{"message": null}', '{"message": null}'),
        ("<html><body><h1 class='x'>Busy</h1></body></html>", "Busy"),
        ("<!DOCTYPE html><p>One<br>line", "One line"),
        ("plain\n text", "plain text"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (7, "7"),
    ],
)
def test_an_error_body_is_read_as_one_line(body: Any, message: str) -> None:
    assert read_error(body).message == message


KEYS = st.sampled_from(["error", "detail", "message", "code", "loc", "msg"])
BODIES = st.recursive(
    st.none() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@FEW
@given(BODIES)
def test_any_error_body_can_be_read(body: Any) -> None:
    for form in (body, json.dumps(body), json.dumps(body).encode()):
        read = read_error(form)
        assert len(read.message) <= LONGEST_READ
        assert "\n" not in read.message
        read.message.encode()


def test_an_error_that_is_no_failure_of_a_call_is_none() -> None:
    assert failure_of(TypeError("a bug"), Redactor()) is None
    assert failure_of(ValueError("a bug"), Redactor()) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError("reset by peer"), "retry"),
        (TimeoutError(), "retry"),
        (json.JSONDecodeError("no", "x", 0), "retry"),
    ],
)
def test_errors_of_the_network_are_tried_again(error: Exception, kind: str) -> None:
    failure = failure_of(error, Redactor())
    assert failure is not None
    assert failure.kind == kind


def test_langchain_s_classes_of_errors_are_understood() -> None:
    from langchain_core import exceptions

    def kind(error: Exception) -> str:
        failure = failure_of(error, Redactor())
        assert failure is not None
        return failure.kind

    assert kind(exceptions.ContextOverflowError("no")) == "overflow"
    assert kind(exceptions.ModelRateLimitError("slow")) == "retry"
    assert kind(exceptions.ModelTimeoutError("late")) == "retry"
    assert kind(exceptions.ModelAuthenticationError("who")) == "refused"
