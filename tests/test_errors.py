"""Messages are ours: no words of pydantic, no numbers of errors, no names of codecs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core.core_schema import ErrorType

from labmates.errors import explain, plain_fault, reason

OURS = ("value_error", "assertion_error")
LIMITS = dict.fromkeys(("gt", "ge", "lt", "le"), 1.0)
TEXTS = dict.fromkeys(("min_length", "max_length", "expected", "error", "pattern", "class"), "it")
TAGS = dict.fromkeys(("discriminator", "tag", "expected_tags"), "it")


@pytest.mark.parametrize("kind", [kind for kind in get_args(ErrorType) if kind not in OURS])
def test_no_fault_has_pydantic_s_words(kind: str) -> None:
    message = plain_fault(
        {"type": kind, "input": "x", "ctx": LIMITS | TEXTS | TAGS, "msg": "Input should be otherwise"}
    )
    assert "Input" not in message
    assert message


def test_an_unknown_key_is_named_with_the_nearest_one() -> None:
    class Rules(BaseModel):
        model_config = ConfigDict(extra="forbid")
        rounds: int = 1

    with pytest.raises(ValidationError) as caught:
        Rules.model_validate({"ruonds": 2})
    assert (
        explain(caught.value, known=Rules.model_fields) == "unknown key 'ruonds'. Did you mean 'rounds'? Known: rounds."
    )
    assert explain(caught.value) == "ruonds: unknown key"


def test_a_file_that_can_not_be_read_is_explained_in_words(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a\xff")
    for name, why in (("binary", "it is not UTF-8 text (byte 1)"), ("none", "No such file or directory")):
        with pytest.raises((OSError, ValueError)) as caught:
            (tmp_path / name).read_text("utf-8")
        assert reason(caught.value) == why
