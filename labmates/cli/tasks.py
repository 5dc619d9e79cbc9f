"""``labmates tasks``: the science tasks."""

from __future__ import annotations

import click

from labmates.cli.console import out, print_json


@click.group(invoke_without_command=True, epilog="Example: labmates tasks show ecology")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per task.")
@click.pass_context
def tasks(ctx: click.Context, as_json: bool) -> int:
    """List the science tasks, or show one."""
    from labmates.tasks.registry import TASKS, get_task

    if ctx.invoked_subcommand is None:
        for name in TASKS:
            task = get_task(name)
            if as_json:
                print_json({"name": task.name, "title": task.title, "version": task.version})
            else:
                out().print(f"{task.name:<14} {task.title}", markup=False)
    return 0


@tasks.command("show", epilog="Example: labmates tasks show ecology --seed 3")
@click.argument("name")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sample shown.")
@click.option("--difficulty", type=click.Choice(["easy", "medium", "hard"]), default="medium", show_default=True)
def show(name: str, seed: int, difficulty: str) -> int:
    """Show a task: what agents are told, what a report has to state, and the first rows of a sample."""
    from labmates.tasks.registry import get_task
    from labmates.tasks.schema import findings_schema_text

    task = get_task(name)
    sample = task.generate(seed, difficulty)  # type: ignore[arg-type]
    parts = {
        f"{task.title} ({task.name}, version {task.version})": task.brief,
        "The data": sample.description,
        "What the report has to state": findings_schema_text(task),
        f"A sample (seed {seed}, {difficulty}): {len(sample.frame)} rows": sample.frame.head(8).to_string(),
    }
    for title, text in parts.items():
        out().print(title, style="bold", markup=False)
        out().print(f"{text}\n", markup=False)
    return 0
