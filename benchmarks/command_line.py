"""Processor time until the command line has answered: a Python that does nothing, then ``--help`` of each verb."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence

import click

from labmates.cli.main import labmates

HEAVY = (
    *("aiohttp", "alembic", "docker", "highspy", "httpx", "httpx2", "IPython", "jax", "jinja2", "jupyter_client"),
    *("langchain", "langchain_core", "langchain_openai", "langgraph", "langsmith", "matplotlib", "networkx"),
    *("numpy", "openai", "pandas", "pyarrow", "ray", "requests", "scipy", "seaborn", "sklearn", "sqlalchemy"),
    *("starlette", "statsmodels", "uvicorn", "uvloop", "zmq"),
)
"""Libraries that no ``--help`` imports."""
TIMES = 5


def verbs() -> Iterator[tuple[str, ...]]:
    """All verbs and the verbs below them, the program itself first."""

    def below(command: click.Command, context: click.Context, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if (found := command.get_command(context, name)) is not None:
                    yield from below(found, click.Context(found, parent=context, info_name=name), (*path, name))

    return below(labmates, click.Context(labmates, info_name="labmates"), ())


def seconds(arguments: Sequence[str]) -> float:
    """The median processor time of some processes, user and system."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(TIMES):
        before = used()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        times.append(used() - before)
    return statistics.median(times)


def main() -> None:
    """Print the processor time of each verb's help."""
    print(f"{seconds(['-c', 'pass']):.2f} s  python -c pass")
    for verb in verbs():
        print(
            f"{seconds(['-m', 'labmates.cli.main', *verb, '--help']):.2f} s  {' '.join(('labmates', *verb, '--help'))}"
        )


if __name__ == "__main__":
    main()
