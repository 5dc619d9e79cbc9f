"""The programs of ``packages/labmates-doors/examples/gateway``: three clients of three protocols share one budget."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from labmates.models.entries import Access
from tests.doors.gateway.conftest import Served, openai_upstream, served
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.plugins import ROOT

USAGE = {"prompt_tokens": 40, "completion_tokens": 100, "total_tokens": 140}
PROGRAMS = {"openai": [sys.executable, "ask_openai.py"], "anthropic": [sys.executable, "ask_anthropic.py"]}
PROGRAMS["curl"] = ["sh", "ask_curl.sh"]


def start(gateway: Served, name: str) -> subprocess.Popen[str]:
    key = gateway.key(name)
    addresses = {"OPENAI_BASE_URL": f"{gateway.url}/v1", "ANTHROPIC_BASE_URL": gateway.url}
    keys = {"OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
    environment = {**os.environ, **addresses, **keys, "MODEL": "m", "CALLS": "22"}
    folder = ROOT / "packages" / "labmates-doors" / "examples" / "gateway"
    return subprocess.Popen(PROGRAMS[name], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_three_programs_with_64_streams_share_five_cents() -> None:
    with OpenAIServer(Answer(text="Money, tools and words.", usage=USAGE)) as server:
        upstream = replace(openai_upstream(server.base_url), access=Access(base_url=server.base_url))
        seats = dict.fromkeys(PROGRAMS, 20_000)
        with served(upstream, total=50_000, seats=seats) as gateway:
            programs = [start(gateway, name) for name in PROGRAMS]
            printed = dict(zip(PROGRAMS, (program.communicate(timeout=120)[0] for program in programs), strict=True))
    ledger = gateway.seats.ledger
    assert [program.returncode for program in programs] == [0, 0, 0]
    assert all("Money, tools and words." in text for text in printed.values()), printed
    assert all("402" in text or "insufficient_quota" in text for text in printed.values()), printed
    assert 40_000 < ledger.spent <= 50_000
    assert ledger.spent == sum(seat.spent for seat in gateway.seats.by_name.values())
    assert ledger.available == ledger.remaining
