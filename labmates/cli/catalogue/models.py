"""``labmates models``: named models, scripted baselines and the roster of known models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.errors import unknown_name
from labmates.registry import look_at_all
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.catalogue import Named
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.models.catalog import Catalog
    from labmates.models.entries import Entry
    from labmates.models.probe import Probe
    from labmates.workflows.protocol.command import Lab

_FAMILIES = ("scripted:axelrod/", "scripted:colleague/")


def models(lab: Lab, _params: Params) -> Iterator[Result]:
    """List named models, scripted baselines and known models; add, show or check one.

    Use any chat model of LangChain by the name provider:name, and any OpenAI-compatible server
    (vLLM, Ollama, llama.cpp) as openai:NAME?base_url=URL. Named models are defined in
    models.yaml.
    """
    from labmates.models.entries import models_file, named_entries
    from labmates.models.roster import roster
    from labmates.models.servers import SERVERS

    baselines = _baselines(lab.warn)
    width = max(map(len, baselines))

    def described(heading: str, texts: Mapping[str, str], *more: str) -> Result:
        lines = [f"  {name:<{width}}  {text}" for name, text in texts.items()]
        objects = [{"name": name, "description": text} for name, text in texts.items()]
        return Result((), verdict=[f"{heading}:", *lines, *more], objects=objects)

    if named := named_entries():
        lines = [f"  {name:<22} {entry.name} {entry.base_url or ''}".rstrip() for name, entry in named.items()]
        objects = [
            {"name": name, "model": entry.name, **entry.access.model_dump(mode="json", exclude_none=True)}
            for name, entry in named.items()
        ]
        yield Result((), verdict=[f"Named models ({models_file()}):", *lines], objects=objects)
    yield described(
        "Scripted baselines (offline, free)",
        baselines,
        f"  {'scripted:axelrod/NAME':<{width}}  Plays a strategy of the library axelrod (extra axelrod).",
    )
    for provider in SERVERS:
        served = SERVERS.get(provider)
        yield described(
            "Model files, served on this machine (free, no key)",
            {f"{provider}:{name}": f"Weights of the package {package}." for name, package in served.packages.items()},
            f"  {f'{provider}:PATH':<{width}}  {served.about}",
        )
    lines = ["Models with published benchmark scores (cooperative-profiles paper, appendix I):"]
    for known in roster():
        thinks = "thinks" if known.thinking else ""
        scores = f"MMLU-Pro {known.mmlu_pro:>4.1f}  IFEval {known.ifeval:>4.1f}"
        lines.append(f"  {known.name:<25} {known.family:<8} {known.size:>3g}B  {scores}  {thinks}".rstrip())
    yield Result((), verdict=lines, objects=list(map(asdict, roster())))


class AddParams(Named):
    """A model, and its new name."""

    model: str = Field(json_schema_extra={"argument": True})


def add(_lab: Lab, params: AddParams) -> Iterator[Result]:
    """Add MODEL to the models file under NAME."""
    from labmates.models.entries import FILE_NAME, add_entry, models_file, named_entries, read_reference
    from labmates.models.names import parse_model

    path = models_file() or Path(FILE_NAME)
    entry = read_reference(params.model, named_entries() if path.is_file() else {})
    parse_model(entry.name)
    add_entry(path, params.name, entry)
    yield Result((), verdict=[f"{params.name} is {entry.name}, in {path}"])


def show(lab: Lab, params: Named) -> Iterator[Result]:
    """Show a model: address, settings, price and context, each with its source.

    NAME may also be a known model's name at Hugging Face or Ollama.
    """
    from labmates.models.entries import named_entries, read_reference
    from labmates.models.names import PROVIDERS, is_own_baseline
    from labmates.models.roster import roster, traits_of
    from labmates.models.scripted import describe

    name = params.name
    known: dict[str, dict[str, Any]] = {entry.name: asdict(entry) for entry in roster()}
    known |= {n: {"name": n, "description": text} for n, text in _baselines(lab.warn).items()}
    if name.startswith(_FAMILIES) and is_own_baseline(name):
        known[name] = {"name": name, "description": describe(name.removeprefix("scripted:"))}
    named = named_entries()
    if name.partition(":")[0] not in PROVIDERS:
        known |= {served: asdict(entry) for served, entry in traits_of([name]).items()}
    if name.partition("?")[0] in named or (name not in known and ":" in name):
        facts = _facts(read_reference(name, named), name, lab.catalog)
    elif name in known:
        facts = known[name]
    else:
        raise unknown_name("model", name, {**known, **named})
    yield Result((), verdict=[f"{key:<14} {_text(value)}" for key, value in facts.items()], objects=[facts])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _facts(entry: Entry, reference: str, catalog: Catalog) -> dict[str, Any]:
    """The known facts about an entry, each with its source."""
    from labmates.budgets.prices import TABLE_DATE
    from labmates.models.endpoints import endpoint_of, listed
    from labmates.models.names import parse_model

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
    amounts = price.model_dump(mode="json", exclude_none=True) if price else {}
    dollars = ", ".join(f"{kind} {amount}" for kind, amount in amounts.items())
    facts["price"] = (
        f"{dollars} dollars per million tokens {origin}" if price else "unknown: give price.input and so on"
    )
    facts["bill"] = f"the cost that the server reports, else {'by this price' if price else 'unknown'}"
    if not entry.context_tokens and table and table.context_tokens:
        facts["context_tokens"] = f"{table.context_tokens} {shipped}"
    elif not entry.context_tokens:
        facts["context_tokens"] = "unknown: 131072 is assumed"
    limits = ("max_concurrent_calls", "requests_per_minute", "tokens_per_minute")
    facts |= {name: f"{limit} (given)" for name in limits if (limit := getattr(entry, name))}
    return facts


def check(lab: Lab, params: Named) -> Iterator[Result]:
    """Test what a model's server supports: answers, tools, tool loops, JSON, usage, cached tokens, context.

    A tool loop is two calls, the second with the thoughts of the first reply. The test makes seven short calls, two of
    about 3,000 tokens. The exit code is 1 if the model does not answer.
    """
    from labmates.models.probe import probe

    model = lab.catalog.name_of(params.name)

    async def work() -> list[Probe]:
        results = []
        async for result in probe(model, lab.catalog.options()):
            lab.step(f"{result.what}: {result.text}")
            results.append(result)
        return results

    results = lab.finish(work())
    words = {True: "yes", False: "no", None: "?"}
    lines = [f"{result.what:<10} {words[result.able]:<4} {result.text}" for result in results]
    answers = any(result.what == "answers" and result.able for result in results)
    fault = None if answers else f"{params.name} does not answer"
    yield Result((), verdict=lines, objects=list(map(asdict, results)), fault=fault)


def _baselines(warn: Callable[[str], None]) -> dict[str, str]:
    from labmates.models.scripted import BASELINES, describe

    return {f"scripted:{name}": text for name, text in look_at_all(BASELINES, describe, warn).items()}


_AT = '"openai:qwen3-8b?base_url=http://127.0.0.1:8001/v1"'
MODELS_COMMAND = Command(
    models,
    example="labmates models show scripted:diligent",
    objects="per model",
    commands={
        "list": Command(models, example="labmates models list --json", objects="per model"),
        "add": Command(add, AddParams, example=f"labmates models add qwen {_AT}"),
        "show": Command(show, Named, example="labmates models show qwen3-8b", objects="", asks_models=True),
        "check": Command(check, Named, example=f"labmates models check {_AT}", objects="per check", asks_models=True),
    },
)
