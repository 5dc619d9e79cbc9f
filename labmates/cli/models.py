"""``labmates models``: the scripted baselines and the models of the paper's roster."""

from __future__ import annotations

from dataclasses import asdict

import click

from labmates.cli.common import json_option
from labmates.cli.console import out, print_json
from labmates.cli.plugins import look_at_all
from labmates.errors import unknown_name

_FAMILIES = ("scripted:axelrod/", "scripted:colleague/")


@click.group(invoke_without_command=True, epilog="Example: labmates models show scripted:diligent")
@json_option("per model")
@click.pass_context
def models(ctx: click.Context, as_json: bool) -> int:
    """List the scripted baselines and known models, or show one.

    Any chat model that LangChain reaches can be used by the name provider:name, and any OpenAI-compatible server
    (vLLM, Ollama, llama.cpp) as openai:NAME with --base-url.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from labmates.agents.players.colleague import PARAMETERS
    from labmates.models.roster import roster

    baselines = _baselines()
    if as_json:
        for name, text in baselines.items():
            print_json({"name": name, "description": text})
        for entry in roster():
            print_json(asdict(entry))
        return 0
    out().print("Scripted baselines (offline, free):", style="bold")
    for name, text in baselines.items():
        out().print(f"  {name:<22} {text}", markup=False)
    out().print(
        "  scripted:axelrod/NAME  Plays as a strategy of the library axelrod does (extra axelrod).", markup=False
    )
    out().print(
        "  scripted:colleague/NAME=VALUE/…  With other parameters: " + ", ".join(PARAMETERS) + ".", markup=False
    )
    out().print("Models with published benchmark scores (cooperative-profiles paper, appendix I):", style="bold")
    for entry in roster():
        thinks = "thinks" if entry.thinking else ""
        scores = f"MMLU-Pro {entry.mmlu_pro:>4.1f}  IFEval {entry.ifeval:>4.1f}"
        out().print(
            f"  {entry.name:<26} {entry.family:<12} {entry.size:>5g}B  {scores}  {thinks}".rstrip(), markup=False
        )
    return 0


@models.command("show", epilog="Example: labmates models show qwen3-8b")
@click.argument("name")
def show(name: str) -> int:
    """Show what is known of a model."""
    from labmates.models.names import is_own_baseline
    from labmates.models.roster import roster
    from labmates.models.scripted import describe

    known = {entry.name: asdict(entry) for entry in roster()}
    known |= {n: {"name": n, "description": text} for n, text in _baselines().items()}
    if name.startswith(_FAMILIES) and is_own_baseline(name):
        known[name] = {"name": name, "description": describe(name.removeprefix("scripted:"))}
    if name not in known:
        raise unknown_name("model", name, known)
    for key, value in known[name].items():
        out().print(f"{key:<14} {value}", markup=False)
    return 0


def _baselines() -> dict[str, str]:
    from labmates.models.scripted import BASELINES, describe

    return {f"scripted:{name}": text for name, text in look_at_all(BASELINES, describe).items()}
