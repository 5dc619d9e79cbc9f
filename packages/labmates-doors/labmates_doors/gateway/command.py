"""``labmates gateway``: one budget for programs that speak a provider's protocol."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import store_option, verbose_option
from labmates.cli.console import err, out
from labmates.cli.options import models_file_option
from labmates.errors import UsageError, explain

if TYPE_CHECKING:
    from labmates_doors.gateway.seats import Seats

USUAL_PORT = 8643


@click.command(
    epilog="Example: labmates gateway --budget 5 --seat alice --seat bob=2 --upstream openai:gpt-5.4-mini",
    params=[models_file_option()],
)
@click.option("--budget", metavar="DOLLARS", help="The pool that all seats share. [required]")
@click.option("--seat", "seats", multiple=True, metavar="NAME[=DOLLARS]", help="A seat and its limit. [required]")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    metavar="MODEL",
    help="A model that seats may use, with ?base_url=URL for your own server. [required]",
)
@click.option("--prices", metavar="LIST", help="Prices of calls. [default: the providers']")
@click.option("--max-output-tokens", type=click.IntRange(1), help="Limit of a reply. [default: 4096]")
@click.option(
    "--allow-field",
    "allow_fields",
    multiple=True,
    metavar="NAME",
    help="Pass a field, or a feature of a beta header, on to providers although its cost is unknown; repeatable.",
)
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port. [default: {USUAL_PORT}, or a free one if taken]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of this machine to listen on.")
@click.option("--resume", metavar="RUN", help="Resume a stopped gateway: its spending, options and keys.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the address and the keys as one JSON object.")
@verbose_option
def gateway(
    budget: str | None,
    seats: tuple[str, ...],
    upstreams: tuple[str, ...],
    prices: str | None,
    max_output_tokens: int | None,
    allow_fields: tuple[str, ...],
    port: int | None,
    host: str,
    resume: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Share one budget among programs that use the OpenAI or Anthropic API, until Ctrl-C.

    Each seat gets its own key; the providers' keys never leave the gateway. GET /budget reports the spending. All
    exchanges are recorded as one run in the store.
    """
    from pydantic import ValidationError

    from labmates.budgets.prices import read_prices
    from labmates.models.redact import Redactor
    from labmates.records.store import Store
    from labmates.util.loopback import address_of, open_socket
    from labmates_doors.gateway.recording import GatewayCondition, RunOfGateway, stopped_run
    from labmates_doors.gateway.seats import Seats, lasting_keys
    from labmates_doors.gateway.server import make_server
    from labmates_doors.gateway.state import Gateway
    from labmates_doors.gateway.upstream import read_upstreams

    given = {
        "budget": budget,
        "seats": _seats(seats),
        "upstreams": list(upstreams),
        "prices": prices,
        "max_output_tokens": max_output_tokens,
        "allow_fields": list(allow_fields),
    }
    options: dict[str, Any] = {"prices": "bill", "max_output_tokens": 4096}
    if resume is not None:
        with Store(store, must_exist=True) as recorded:
            options |= stopped_run(recorded, resume).condition
    options |= {name: value for name, value in given.items() if value}
    for name, option in (("budget", "--budget"), ("seats", "--seat"), ("upstreams", "--upstream")):
        if not options.get(name):
            raise UsageError(f"{option} is missing: name {'an amount' if name == 'budget' else 'at least one'}")
    price_list = read_prices(options["prices"]) if options["prices"] != "bill" else None
    models = read_upstreams(options["upstreams"], price_list, os.environ)
    redact = Redactor([upstream.key for upstream in models])
    options["upstreams"] = list(map(redact, options["upstreams"]))
    try:
        condition = GatewayCondition.model_validate(options)
    except ValidationError as error:
        raise UsageError(explain(error, _option)) from None
    listening = open_socket(host, port, what="gateway", usual=USUAL_PORT)
    with listening, Store(store) as opened:
        record = RunOfGateway(opened, condition, resume, lambda text: err().print(text, soft_wrap=True))
        keys = lasting_keys(record.run.id, condition.seats)
        shared = Seats(condition.budget, condition.seats, keys=keys)
        for seat, cost in record.spent.items():
            shared.restore(seat, cost)
        served = Gateway(
            shared,
            models,
            record=record,
            max_output_tokens=condition.max_output_tokens,
            allowed=condition.allow_fields,
        )
        _tell(address_of(listening), shared, record.run.id, as_json=as_json)
        with suppress(KeyboardInterrupt):  # the server has ended by then, and reports the signal
            make_server(served).run(sockets=[listening])
        if record.lacks:
            err().print(record.lacks, soft_wrap=True)
        err().print(f"{shared} Run: {record.run.id}", soft_wrap=True)
    return 0


def _seats(texts: tuple[str, ...]) -> dict[str, str | None]:
    seats: dict[str, str | None] = {}
    for text in texts:
        name, equals, most = text.partition("=")
        if not name or not name.isprintable() or name in seats:
            raise UsageError(f"--seat: '{text}' is not a new name (try alice, or alice=2.50)")
        seats[name] = most if equals else None
    return seats


def _option(field: str) -> str:
    """The option that sets a field of the condition."""
    name, _, seat = field.partition(".")
    return f"--seat {seat}".rstrip() if name == "seats" else f"--{name}"


def _tell(url: str, seats: Seats, run: str, *, as_json: bool) -> None:
    keys = {seat.member: seat.key for seat in seats.by_name.values()}
    if as_json:
        click.echo(json.dumps({"url": url, "keys": keys}))
        return
    shown = out()
    shown.print(f"{seats}\nRun: {run} (resume it with --resume {run})\n", soft_wrap=True)
    shown.print("Start each program with one of these (Ctrl-C stops the gateway):")
    for name, key in keys.items():
        shown.print(f"{name}: OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}", soft_wrap=True)
        shown.print(f"{name}: ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}", soft_wrap=True)
