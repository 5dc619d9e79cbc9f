"""The command ``labmates``: finds the verb, and turns errors into messages and exit codes.

Exit codes: 0 all went as it should, 1 some run failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence

import click

from labmates._version import __version__
from labmates.cli.console import NO_ROOM, complain, make_streams_safe
from labmates.cli.repeated import refuse_repeated_options
from labmates.errors import LabmatesError, UsageError

VERBS = {
    "demo": ("labmates.cli.demo:demo", "Let a scripted team do one science task, offline."),
    "run": ("labmates.cli.run:run", "Run one condition of an experiment, one or more times."),
    "profile": ("labmates.cli.profile:profile", "Measure how models play the behavioural games."),
    "screen": ("labmates.cli.screen:screen", "Predict how models would do in the lab from how they play."),
    "study": ("labmates.cli.study:study", "Plan and execute many runs, described in one file."),
    "worker": ("labmates.cli.worker:worker", "Join a study from any machine that reaches its store."),
    "show": ("labmates.cli.show:show", "Tell the story of a run."),
    "view": ("labmates.cli.view:view", "Look at studies and runs in a browser."),
    "replay": ("labmates.cli.replay:replay", "Execute a recorded run again without models, and compare."),
    "fork": ("labmates.cli.fork:fork", "Go on from a point within a run with something changed."),
    "judge": ("labmates.cli.judge:judge", "Judge runs that have ended, or find out how far a judge can be trusted."),
    "analyze": ("labmates.cli.analyze.group:analyze", "Compute what the runs of a store mean."),
    "report": ("labmates.cli.report:report", "Write what a study has brought as one HTML page."),
    "tasks": ("labmates.cli.tasks:tasks", "List the science tasks, or show, check or begin one."),
    "games": ("labmates.cli.games:games", "List the behavioural games, or show or check one."),
    "dilemmas": ("labmates.cli.mechanisms:dilemmas", "List the social dilemmas, or show one."),
    "mechanisms": ("labmates.cli.mechanisms:mechanisms", "List the cooperation mechanisms, or show or check one."),
    "strategies": ("labmates.cli.strategies:strategies", "Write, import, check and play strategies as code."),
    "models": ("labmates.cli.models:models", "List the scripted baselines and known models, or show one."),
    "store": ("labmates.cli.store:store", "Care for the database of runs."),
    "sandbox": ("labmates.cli.sandbox:sandbox", "Build, check and clean what agents' code runs in."),
}


class Verbs(click.Group):
    """The verbs; a verb's module is imported only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the help text."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb."""
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the whole command line once for repeated options, then as usual."""
        refuse_repeated_options(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: labmates run science --task ecology --model scripted:diligent",
)
@click.version_option(__version__, prog_name="labmates")
def labmates() -> None:
    """Measure how well teams of language-model agents work together."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    make_streams_safe()
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    logging.getLogger("labmates").addHandler(logging.NullHandler())
    try:
        return labmates.main(args=arguments, prog_name="labmates", standalone_mode=False) or 0
    except click.exceptions.Abort:
        complain("interrupted")
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except UsageError as error:
        complain(str(error))
        return 2
    except LabmatesError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        complain(f"can't write: {error.strerror}")
        return 1


if __name__ == "__main__":
    main()
