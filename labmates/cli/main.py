"""The command ``labmates``: dispatch of verbs, error messages and exit codes.

Exit codes: 0 success, 1 some run failed, 2 wrong usage, 75 paused by a provider, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from io import StringIO

import click

from labmates._version import __version__
from labmates.cli.common import SuggestingGroup, refuse_misplaced
from labmates.cli.console import NO_ROOM, complain, discard, make_streams_safe
from labmates.errors import LabmatesError, UsageError, without_password
from labmates.registry import lazy, look_at_all
from labmates.util.garbage import rare_collection
from labmates.workflows.protocol.verb import PAUSED_CODE, VERBS, InterruptedWorkError, PausedWorkError

COMPLETING = "_LABMATES_COMPLETE"
"""The variable by which a shell asks for completions."""
OWN = {
    "run": ("labmates.cli.run:run", "Run one condition of an experiment, one or more times."),
    "study": ("labmates.cli.study:study", "Plan and execute many runs, described in one file."),
    "worker": ("labmates.cli.worker:worker", "Execute runs of a study, from any machine that reaches its store."),
    "show": ("labmates.cli.show:show", "Show a run: messages, code and output, artifacts, scores."),
    "runs": ("labmates.cli.runs:runs", "List the runs of a store, or delete some."),
    "view": ("labmates.cli.view:view", "Browse studies and runs."),
    "replay": ("labmates.cli.replay:replay", "Re-run from the recording without model calls, and compare."),
    "fork": ("labmates.cli.fork:fork", "Branch a run at an event, with something changed."),
    "compare": ("labmates.cli.analyses:COMPARE", "Test whether conditions differ, and by how much."),
    "judge": ("labmates.cli.judge:JUDGE_COMMAND", "Judge ended runs."),
    "analyze": ("labmates.cli.analyses:analyze", "Analyse the runs in a store."),
    "report": ("labmates.cli.report:report", "Write a study's results as one self-contained HTML page."),
    "export": ("labmates.cli.export:export", "Write a study or runs: as a table, or for another program."),
    "tasks": ("labmates.cli.catalogue.tasks:TASKS_COMMAND", "List the tasks, or show one."),
    "judges": (
        "labmates.cli.catalogue.judges:JUDGES_COMMAND",
        "List the judges of reports, or show one.",
    ),
    "models": (
        "labmates.cli.catalogue.models:MODELS_COMMAND",
        "List the scripted baselines and known models, or add, show or check one.",
    ),
    "store": ("labmates.cli.store:store", "Check, copy and upgrade databases of runs."),
    "sandbox": ("labmates.cli.sandbox:sandbox", "Build, check and clean the sandboxes for agents' code."),
}


class Verbs(SuggestingGroup):
    """The verbs; a verb's module is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the help text."""
        return [name for name, _ in _listed()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb, imported now."""
        import logging

        logging.getLogger("labmates").addHandler(logging.NullHandler())
        if cmd_name in OWN:
            command = lazy(OWN[cmd_name][0]).target
            if isinstance(command, click.Command):
                return command
            from labmates.cli.verbs import made

            return made(cmd_name, command)
        VERBS.refuse_missing(cmd_name)
        if "/" in cmd_name or cmd_name not in VERBS:
            return None
        from labmates.cli.verbs import verb_command

        return verb_command(cmd_name, VERBS.get(cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what is misplaced, then parse as usual."""
        if not ctx.resilient_parsing:
            refuse_misplaced(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs, without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(_listed()))


def _listed() -> Iterator[tuple[str, str]]:
    yield from ((name, summary) for name, (_, summary) in OWN.items())
    plugged = look_at_all(VERBS, lambda name: VERBS.get(name).summary, complain)
    yield from ((name, summary) for name, summary in plugged.items() if "/" not in name)


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
    with rare_collection():
        sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if COMPLETING in os.environ:
        from labmates.cli import complete  # noqa: F401 - the completion of our names in bash
    try:
        return labmates.main(args=arguments, prog_name="labmates", standalone_mode=False) or 0
    except click.exceptions.Abort:
        complain("interrupted")
        return 130
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        sys.stderr.write(without_password(shown.getvalue()))
        return 2
    except PausedWorkError:
        return PAUSED_CODE
    except InterruptedWorkError:
        return 130
    except UsageError as error:
        complain(str(error))
        return 2
    except LabmatesError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:
        discard(sys.stdout)
        return 1
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        complain(f"can't write: {error.strerror}")
        return 1


if __name__ == "__main__":
    main()
