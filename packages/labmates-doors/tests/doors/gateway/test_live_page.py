"""The page of a running gateway in a browser."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.records.store import Store
from labmates_doors.gateway.recording import GatewayCondition, RunOfGateway
from tests.doors.gateway.conftest import openai_upstream
from tests.doors.gateway.conftest import served as gateway
from tests.support.browser import page_of
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.site import served
from tests.viewer.conftest import browser as browser
from tests.viewer.test_live_pages import number_of

pytestmark = [pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]


@pytest.mark.slow("packages/labmates-doors/tests/doors/gateway/test_recording.py")
def test_the_page_of_a_running_gateway_shows_pool_limits_and_reservations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Browser
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    options = {"budget": "1", "seats": {"alice": None, "bob": "0.25"}, "upstreams": ["openai:m"]}
    condition, reply = GatewayCondition.model_validate({**options, "max_output_tokens": 1000}), threading.Event()

    async def answer(_request: object, number: int) -> Answer:
        if number:
            await asyncio.to_thread(reply.wait)
        return Answer(usage={"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49})

    with Store(f"sqlite:///{tmp_path}/runs.db") as store, OpenAIServer(answer) as model:
        record = RunOfGateway(store, condition)
        gateway_served = gateway(openai_upstream(model.base_url), seats=condition.seats, record=record)
        with gateway_served as served_gateway, served(store) as site, page_of(browser, site.url) as (page, seen):

            def ask(seat: str) -> int:
                asked = {"model": "m", "messages": [], "max_tokens": 1000}
                return served_gateway.ask("/v1/chat/completions", asked, key=served_gateway.key(seat))[0]

            page.goto(f"{site.url}/runs/{record.run.id}")
            heads, *rows = (page.locator("#budget tr").nth(place).locator("td, th") for place in range(4))
            columns = ["Seat", "Calls", "Tokens in", "Tokens out", "Spent", "Limit", "Reserved"]
            expect(heads).to_have_text(columns)
            nothing = ["0", "0", "0", "$0.0000"]
            for row, name, limit in (
                (rows[0], "alice", "the pool"),
                (rows[1], "bob", "$0.2500"),
                (rows[2], "all, of $1.0000", "$1.0000"),
            ):
                expect(row).to_have_text([name, *nothing, limit, "$0.0000"])
            expect(number_of(page, "left of $1.0000")).to_have_text("$1.0000")
            assert ask("alice") == 200
            with ThreadPoolExecutor() as pool:
                calling = pool.submit(ask, "bob")
                expect(rows[1].last).not_to_have_text("$0.0000", timeout=30_000)
                held = parse_dollars(served_gateway.ask("/budget", method="GET")[1]["seats"]["bob"]["held"])
                assert [row.last.inner_text() for row in rows] == ["$0.0000", *[show_dollars(held)] * 2]
                expect(rows[0]).to_have_text(["alice", "1", "40", "9", show_dollars(130), "the pool", "$0.0000"])
                expect(number_of(page, "calls")).to_have_text("1")
                reply.set()
                assert calling.result(30) == 200
            expect(rows[2].last).to_have_text("$0.0000", timeout=30_000)
            expect(number_of(page, "left of $1.0000")).to_have_text(show_dollars(1_000_000 - 2 * 130))
            assert not seen.errors
