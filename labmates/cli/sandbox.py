"""``labmates sandbox``: the sandboxes for agents' code."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from labmates.cli.common import SuggestingGroup, json_option
from labmates.cli.console import notify, print_json, say

if TYPE_CHECKING:
    from docker import DockerClient


@click.group(cls=SuggestingGroup, epilog="Example: labmates sandbox doctor")
def sandbox() -> None:
    """Build, check and clean the sandboxes for agents' code."""


@sandbox.command(epilog="Examples: labmates sandbox build; labmates sandbox build --base debian")
@click.option(
    "--base",
    metavar="IMAGE",
    help="Base image with Python 3.11 or newer, or 'debian' to make one from Debian packages (needs mmdebstrap, but "
    "no registry). Default: the base of the last build, else python:3.12-slim.",
)
@click.option("--force", is_flag=True, help="Rebuild everything.")
def build(base: str | None, force: bool) -> int:
    """Build the image of the Docker sandbox, unless it exists.

    The build downloads Python and its packages and takes a few minutes. After an update of labmates, it is needed again
    only if the packages have changed.
    """
    from labmates.sandboxes.engine import connect
    from labmates.sandboxes.image.build import build_image
    from labmates.sandboxes.image.names import image_tag

    client = connect()
    try:
        image = build_image(client, base, partial(_print_step, time.monotonic()), force=force)
    finally:
        client.close()
    say(f"The image is ready: {image_tag()}, {image.attrs['Size'] / 1e6:.0f} MB")
    return 0


@sandbox.command(epilog="Example: labmates sandbox doctor")
@json_option()
def doctor(as_json: bool) -> int:
    """Check which sandboxes work on this machine, and how to fix the others.

    The exit code is 0 if at least one isolating sandbox works, else 1.
    """
    from labmates.sandboxes.doctor import examine, taken_by_auto

    trials = []
    for trial in examine():
        trials.append(trial)
        if not as_json:
            say(f"{trial.sandbox:<11} {trial.text}", "green" if trial.works else "bold red")
    works, (auto, remark) = [trial.sandbox for trial in trials if trial.works], taken_by_auto()
    if as_json:
        print_json({"works": works, "auto": auto, "remark": remark, "trials": list(map(asdict, trials))})
    elif auto is not None:
        say(f"\n--sandbox auto takes {auto}. {remark}".rstrip())
    else:
        say(f"\n--sandbox auto takes none for a model's code: {remark}")
    return 0 if works else 1


@sandbox.command(epilog="Example: labmates sandbox clean")
@json_option()
def clean(as_json: bool) -> int:
    """Remove leftovers of killed runs, and images of other versions of labmates."""
    from labmates.errors import UsageError
    from labmates.sandboxes.engine import connect
    from labmates.sandboxes.leftovers import clean as remove

    client: DockerClient | None = None
    try:
        client = connect()
    except UsageError as error:
        notify(f"Containers and images were left out: {error}")
    try:
        removed = remove(client)
    finally:
        if client is not None:
            client.close()
    if as_json:
        print_json(asdict(removed))
        return 0
    for what, names in asdict(removed).items():
        for name in names:
            say(f"removed {what.removesuffix('s')} {name}")
    if not any(asdict(removed).values()):
        say("There was nothing to remove.")
    return 0


def _print_step(started: float, text: str) -> None:
    """Print a step as it begins, with the seconds since the start."""
    notify(f"{time.monotonic() - started:5.0f} s  {text}")
