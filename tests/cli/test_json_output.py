"""What verbs print with --json is JSON."""

from __future__ import annotations

import json
import math

import pytest

from labmates.cli.console import print_json


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"k_hat": math.inf, "tests": [{"r2": math.nan, "p": 0.5}], "pair": (-math.inf, 1), "name": "a\nb"})

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found == {"k_hat": None, "tests": [{"r2": None, "p": 0.5}], "pair": [None, 1], "name": "a\nb"}
