"""``labmates models``: named models, scripted baselines and the roster of known models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import SuggestingGroup, json_option
from labmates.cli.console import clean, complain, out, print_json
from labmates.cli.options import model_options, options_of
from labmates.models.options import ModelOptions

if TYPE_CHECKING:
    from labmates.models.entries import Entry

_FAMILIES = ("scripted:axelrod/", "scripted:colleague/")


@click.group(cls=SuggestingGroup, invoke_without_command=True, epilog="Example: labmates models show scripted:diligent")
@json_option("per model")
@click.pass_context
def models(ctx: click.Context, as_json: bool) -> int:
    """List named models, scripted baselines and known models; add, show or check one.

    Use any chat model of LangChain by the name provider:name, and any OpenAI-compatible server
    (vLLM, Ollama, llama.cpp) as openai:NAME?base_url=URL. labmates itself serves gguf:PATH, a model file. Named models
    are defined in models.yaml.
    """
    return 0 if ctx.invoked_subcommand is not None else _list(as_json)


@models.command("list", epilog="Example: labmates models list --json")
@json_option("per model")
def list_(as_json: bool) -> int:
    """List named models, scripted baselines and known models."""
    return _list(as_json)


def _list(as_json: bool) -> int:
    from labmates.agents.players.colleague import PARAMETERS
    from labmates.models.entries import models_file, named_entries
    from labmates.models.gguf import WEIGHT_PACKAGES
    from labmates.models.roster import roster

    named, baselines = named_entries(), _baselines()
    files = {f"gguf:{name}": f"Weights of the package {package}." for name, package in WEIGHT_PACKAGES.items()}
    if as_json:
        for name, entry in named.items():
            print_json({"name": name, "model": entry.name, **entry.access.model_dump(mode="json", exclude_none=True)})
        for name, text in (baselines | files).items():
            print_json({"name": name, "description": text})
        for known in roster():
            print_json(asdict(known))
        return 0
    if named:
        out().print(f"Named models ({models_file()}):", style="bold")
        for name, entry in named.items():
            out().print(f"  {name:<22} {entry.name} {entry.base_url or ''}".rstrip())
    out().print("Scripted baselines (offline, free):", style="bold")
    for name, text in baselines.items():
        out().print(f"  {name:<22} {text}")
    out().print("  scripted:axelrod/NAME  Plays a strategy of the library axelrod (extra axelrod).")
    out().print("  scripted:colleague/NAME=VALUE/…  With other parameters: " + ", ".join(PARAMETERS) + ".")
    out().print("Model files, served on this machine (extra gguf; free, no key):", style="bold")
    for name, text in {**files, "gguf:PATH": "Any file in the GGUF format."}.items():
        out().print(f"  {name:<22} {text}")
    out().print("Models with published benchmark scores (cooperative-profiles paper, appendix I):", style="bold")
    for known in roster():
        thinks = "thinks" if known.thinking else ""
        scores = f"MMLU-Pro {known.mmlu_pro:>4.1f}  IFEval {known.ifeval:>4.1f}"
        out().print(f"  {known.name:<26} {known.family:<12} {known.size:>5g}B  {scores}  {thinks}".rstrip())
    return 0


@models.command("add", epilog='Example: labmates models add qwen "openai:qwen3-8b?base_url=http://127.0.0.1:8001/v1"')
@click.argument("name")
@click.argument("model")
def add(name: str, model: str) -> int:
    """Add MODEL to the models file under NAME."""
    from labmates.models.entries import FILE_NAME, add_entry, models_file, named_entries, read_reference
    from labmates.models.names import parse_model

    path = models_file() or Path(FILE_NAME)
    entry = read_reference(model, named_entries() if path.is_file() else {})
    parse_model(entry.name)
    add_entry(path, name, entry)
    out().print(f"{name} is {clean(entry.name)}, in {path}")
    return 0


@models.command("show", epilog="Example: labmates models show qwen3-8b")
@click.argument("name")
@json_option()
def show(name: str, as_json: bool, **values: Any) -> int:
    """Show a model: address, settings, price and context, each with its source.

    NAME may also be a known model's name at Hugging Face or Ollama.
    """
    from labmates.errors import unknown_name
    from labmates.models.entries import named_entries, read_reference
    from labmates.models.names import PROVIDERS, is_own_baseline
    from labmates.models.roster import roster, traits_of
    from labmates.models.scripted import describe

    known: dict[str, dict[str, Any]] = {entry.name: asdict(entry) for entry in roster()}
    known |= {n: {"name": n, "description": text} for n, text in _baselines().items()}
    if name.startswith(_FAMILIES) and is_own_baseline(name):
        known[name] = {"name": name, "description": describe(name.removeprefix("scripted:"))}
    named = named_entries()
    if name.partition(":")[0] not in PROVIDERS:
        known |= {served: asdict(entry) for served, entry in traits_of([name]).items()}
    if name.partition("?")[0] in named or (name not in known and ":" in name):
        facts = _facts(read_reference(name, named), name, values)
    elif name in known:
        facts = known[name]
    else:
        raise unknown_name("model", name, {**known, **named})
    if as_json:
        print_json(facts)
        return 0
    for key, value in facts.items():
        if isinstance(value, tuple):
            value = ", ".join(map(str, value))
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        out().print(f"{key:<14} {value}")
    return 0


def _facts(entry: Entry, reference: str, values: dict[str, Any]) -> dict[str, Any]:
    """The known facts about an entry, each with its source."""
    import os

    from labmates.budgets.prices import BATCH_SHARE, TABLE_DATE
    from labmates.models.catalog import Catalog
    from labmates.models.endpoints import endpoint_of, listed
    from labmates.models.names import parse_model
    from labmates.models.providers import BATCH_PROVIDERS

    catalog = Catalog(model_options(values))
    model = parse_model(catalog.name_of(reference))
    facts: dict[str, Any] = {"name": str(model)}
    facts |= {f"{name}": f"{value} (given)" for name, value in model.settings.given().items()}
    if model.scripted:
        return facts
    endpoint = endpoint_of(model, catalog.options(), os.environ)
    table = listed(model, endpoint)
    shipped = f"(shipped table of {TABLE_DATE})"
    if (weights := endpoint.weights) is not None:
        shipped = "(default)"
        facts |= {"file": str(weights.file), "slots": weights.slots, "threads": weights.threads}
    else:
        facts["address"] = f"{endpoint.address} ({'given' if entry.base_url else 'default'})"
    key = "set" if endpoint.key else "not set"
    facts["key"] = f"{endpoint.key_name} ({key})" if endpoint.key_name else "none"
    price = entry.price or (table.price if table else None)
    origin = "(given)" if entry.price else shipped
    amounts = price.model_dump(mode="json", exclude={"batch"}) if price else {}
    dollars = ", ".join(f"{kind} {amount}" for kind, amount in amounts.items())
    facts["price"] = (
        f"{dollars} dollars per million tokens {origin}" if price else "unknown: give price.input and so on"
    )
    facts["bill"] = f"the cost that the server reports, else {'by this price' if price else 'unknown'}"
    if price and model.provider in BATCH_PROVIDERS:
        share, origin_of_share = (price.batch, "given") if price.batch else (BATCH_SHARE, "default")
        facts["batch"] = f"{share:g} of the price ({origin_of_share})"
    if not entry.context_tokens and table and table.context_tokens:
        facts["context_tokens"] = f"{table.context_tokens} {shipped}"
    elif not entry.context_tokens:
        facts["context_tokens"] = "unknown: 131072 is assumed"
    limits = ("max_concurrent_calls", "requests_per_minute", "tokens_per_minute")
    facts |= {name: f"{limit} (given)" for name in limits if (limit := getattr(entry, name))}
    return facts


show.params += options_of(ModelOptions)


@models.command("check", epilog='Example: labmates models check "openai:qwen3-8b?base_url=http://127.0.0.1:8001/v1"')
@click.argument("name")
@json_option("per check")
def check(name: str, as_json: bool, **values: Any) -> int:
    """Test what a model's server supports: answers, tools, tool loops, JSON, usage, cached tokens, limits.

    A tool loop is two calls, the second with the thoughts of the first reply. Limits are the model's context and the
    rate limits that the server reports. The test makes eight short calls, two of about 3,000 tokens. The exit code is 1
    if the model does not answer.
    """
    from labmates.cli.interrupt import run_until_stopped
    from labmates.models.catalog import Catalog
    from labmates.models.probe import probe

    catalog = Catalog(model_options(values))
    model = catalog.name_of(name)
    words = {True: "yes", False: "no", None: "?"}

    async def work() -> bool:
        answers = False
        async for result in probe(model, catalog.options()):
            answers = answers or (result.what == "answers" and result.able is True)
            if as_json:
                print_json(asdict(result))
            else:
                out().print(f"{result.what:<10} {words[result.able]:<4} {clean(result.text)}")
        return answers

    answers = run_until_stopped(work())
    return 130 if answers is None else 0 if answers else 1


check.params += options_of(ModelOptions, leave_out=("batch", "batch_window", "batch_poll"))


def _baselines() -> dict[str, str]:
    from labmates.models.scripted import BASELINES, describe
    from labmates.workflows.protocol.listing import look_at_all

    return {f"scripted:{name}": text for name, text in look_at_all(BASELINES, describe, complain).items()}
