"""The examples at the end of every verb's help can be parsed, and do what they are there for."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from labmates.cli.main import labmates
from sitegen.commands import examples_of
from tests.docs.pages import Block
from tests.docs.walk import Walk

FIRST = [
    "labmates tasks oracle ecology --seed 3 > report.md",
    'labmates study show science-small | sed "s/scripted:diligent, scripted:hasty/openai:qwen3-8b/; s/, anomaly//; '
    's/, hidden//; \\$a judges: [openai:gpt-5.4-mini]" > science-small.yaml',
    "labmates study run science-small.yaml",
    "labmates run science --task ecology --difficulty easy --model openai:qwen3-8b --judge openai:gpt-5.4-mini --solo",
    "labmates strategies write --model scripted:author --game public-goods --attitude selfish -n 2 "
    "--to downloads/strategies && cp downloads/strategies/public-goods/scripted-author.py mine.py",
    "labmates strategies write --model scripted:author --game public-goods --attitude collective -n 4",
    "labmates strategies write --model scripted:author --game public-goods --attitude exploitative -n 4",
]
"""What has to be there before examples are executed."""

SMALLER = {
    "3f9a2c41d7": "RUN",
    "--at 120": "--at 40",
    "labmates view labmates.db RUN": "labmates view --export run labmates.db RUN --no-events",
    "--study pilot --dry-run": "--study science-small --dry-run",
    "--study small": "--study science-small --no-events",
    "export pilot": "export science-small",
    "study run science-small": "study run science-small.yaml",
    "analyze scores --study pilot": "analyze scores --study science-small",
    "scripted:diligent --budget 0.50 --replicates 2": "scripted:silent --budget 0.50",
    "--model scripted:diligent": "--model scripted:silent",
    "--sandbox docker": "--sandbox auto",
    "--replicates 50": "--replicates 3",
    "--replicates 100": "--population 16 --elite 2 --generations 2",
    "evolution --game collective-risk": "evolution --game public-goods",
    "selfplay --game public-goods --strategies strategies --group-size 16": "selfplay --game public-goods "
    "--strategies strategies --group-size 4 --samples 2",
    "scripted:tit-for-tat --model-for B=scripted:defect": "scripted:tit-for-tat --model-for B=scripted:defect "
    "--rounds 1 --team-size 2",
    "profile openai:gpt-5.4-mini scripted:random": "profile openai:gpt-5.4-mini scripted:random --simulations 1 "
    "--group-size 2 --game public-goods",
    "-n 512": "-n 2",
    "downloads/strategies --to strategies": "downloads/strategies --to imported",
    "invasion strategies --game public-goods": "invasion strategies --game public-goods --samples 20",
    "--population 10000": "--population 16 --elite 2 --seconds 0.1",
    "fixation strategies --game public-goods": "fixation strategies --game public-goods --samples 5",
    "convergence --game public-goods": "convergence --game weakest-link",
    "google_genai:gemini-3.1-flash": "openai:qwen3-8b",
    "--study dilemmas --summary": "--summary",
    "--study super-additive": "",
    "scripted:equilibrium,scripted:defect": "scripted:equilibrium,openai:qwen3-8b",
    "strategies/public-goods/gpt.py": "strategies/public-goods/scripted-author.py",
    "Strategy_SELFISH_1": "Strategy_SELFISH_1 mine.py:Strategy_SELFISH_2",
}
"""Names that stand for the reader's own, and what makes an example cheap."""

ONLY_PARSED = {
    "labmates blame 3f9a2c41d7 --with openai:gpt-5.4 --cap 5": "its package's tests have it",
    "labmates demo": "the README has it, with what it prints",
    "labmates run strategies --model scripted:author --game public-goods --attitude collective": "as strategies write",
    "labmates screen openai:qwen3-8b --base-url http://127.0.0.1:8000/v1": "needs many models' runs",
    "labmates analyze prediction --study science-sample --outcome skill": "needs many models' runs",
    "labmates analyze usefulness --study science-sample": "needs many models' runs",
    "labmates analyze proximity pilot --spec both --plot forest.pdf": "needs many models' runs",
    "labmates analyze check proximity --data runs.csv --no-left-out": "the page on checks has it",
    "labmates analyze check prediction --outcome quality --spec robust": "the page on checks has it",
    "labmates analyze coopeval ratings --folder .": "the coverage of the papers has it, with a folder",
    "labmates analyze coopeval choices --folder . --plots figures": "as above",
    "labmates analyze contrasts --study dilemmas-wordings --where wording=paper": "needs runs with several wordings",
    "labmates analyze labels --plots figures": "needs labelled reasons; tests of labmates-profiles have them",
    "labmates compare --by organisation --study science-small": "needs runs of several organisations",
    "labmates analyze compare --by organisation --study science-small": "as above",
    "labmates analyze necessity --task anomaly": "needs runs of several arms",
    "labmates analyze organisations --study architectures": "needs runs of several organisations",
    "labmates strategies collect collective-write": "the page on collective behaviour has it",
    "labmates strategies match last --step 10 --group 3 --out match.csv": "the page on populations has it",
    "labmates worker postgresql://lab@db.example.org/runs --study sweep": "the page on studies has it",
    'labmates models check "openai:qwen3-8b?base_url=http://127.0.0.1:8001/v1"': "tests/cli/test_models_verb.py has it",
    "labmates store copy labmates.db postgresql://lab@db.example.org/runs": "test_store_care.py has it",
    "labmates view": "serves until it is stopped",
    "labmates view --sample": "as above; tests/cli/test_view_verb.py has it",
    "labmates dilemmas show my-game.yaml": "the page on new games has it, with the file",
    "labmates games check my-game": "needs a package of one's own; packages/labmates-author/tests has one",
    "labmates mechanisms check my-mechanism --game prisoners": "as above",
    "labmates tasks check labmates_soil/task.py:SoilTask --seeds 5": "the page on new tasks has it",
    "labmates gateway --budget 5 --seat alice --seat bob=2 --upstream openai:gpt-5.4-mini": "it serves",
    "labmates bundle science-small -o science-small.zip": "the page on bundles has it",
    "labmates bundle verify science-small.zip": "the page on bundles has it",
    "labmates leaderboard bundles -o site": "the page on bundles has it",
    "labmates sandbox build": "the page on the lab has it",
    "labmates sandbox clean": "the page on the lab has it",
    "labmates sandbox doctor": "the page on the lab has it",
    "labmates sandbox build --base debian": "takes minutes; CI makes its image so",
}


def verbs(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below one, with its whole name."""
    yield ctx.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None
            yield from verbs(below, click.Context(below, info_name=name, parent=ctx))


VERBS = dict(verbs(labmates, click.Context(labmates, info_name="labmates")))
EXAMPLES = list(dict.fromkeys(example for command in VERBS.values() for example in examples_of(command)))


def parsed(example: str) -> str:
    """Parse a command line as the program does, without executing it, and return its verb's whole name."""
    words = shlex.split(example.partition(" > ")[0])
    assert words[0] == "labmates"
    ctx = labmates.make_context("labmates", words[1:])
    while isinstance(ctx.command, click.Group) and ctx._protected_args:
        name, command, rest = ctx.command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)
    return ctx.command_path


@pytest.mark.parametrize("path", VERBS)
def test_every_verb_has_examples_of_itself_that_can_be_parsed(path: str) -> None:
    examples = examples_of(VERBS[path])
    assert examples
    for example in examples:
        assert f"{parsed(example)} ".startswith(f"{path} "), example


@pytest.mark.parametrize("wrong", ["labmates study plan pilot --jsn", "labmates games shw o-ring", "labmates replay"])
def test_an_example_that_does_not_fit_its_verb_is_noticed(wrong: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(wrong)


def test_replacements_and_exceptions_are_about_existing_examples() -> None:
    assert set(ONLY_PARSED) <= set(EXAMPLES)
    rest = "\n".join(_smaller(example) for example in EXAMPLES)
    for old, new in SMALLER.items():
        assert new in rest, old


@pytest.mark.slow("tests/cli")
@pytest.mark.needs("docker")
@pytest.mark.needs("bubblewrap")
def test_examples_of_help_work(forge: Path, models: str, tmp_path: Path) -> None:
    walk = Walk(tmp_path, forge, models)
    walk.prepare()
    wrong: list[str] = []
    for command in [*FIRST, *(_smaller(example) for example in EXAMPLES if example not in ONLY_PARSED)]:
        done = walk.shell(command, Block("help", 1, "sh", command, command))
        if done.code or done.crashed:
            wrong.append(str(done))
    assert not wrong, "\n\n".join(wrong)
    shutil.rmtree(tmp_path)


def _smaller(example: str) -> str:
    for old, new in SMALLER.items():
        example = example.replace(old, new)
    return example
