"""``labmates bundle`` and ``labmates leaderboard``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import SuggestingGroup, json_option, store_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.interrupt import run_until_stopped
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates_doors.bundles.checking import Checked

SANDBOXES = ("auto", "gvisor", "docker", "bubblewrap")
NOT_ALL = 3
"""Exit code if nothing is wrong, but something could not be checked here."""
MOST_SHOWN = 10
_sandbox = click.option(
    "--sandbox",
    type=click.Choice(SANDBOXES),
    default="auto",
    show_default=True,
    help="Where agents' code runs again, always isolated.",
)


class _BundleGroup(SuggestingGroup):
    """A group whose first word is a study, unless it is a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command; for a study, that which writes its bundle."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["make", *args])


@click.group(
    cls=_BundleGroup,
    subcommand_metavar="STUDY -o FILE.zip | verify FILE.zip",
    epilog="Example: labmates bundle science-small -o science-small.zip",
)
def bundle() -> None:
    """Write a study as one file that anybody can check, or check one.

    A bundle holds the study's runs with all messages, prices and hashes of code, the tables of its report, and the
    environment. Publish the digest that is printed: it covers every byte.
    """


@bundle.command(epilog="Example: labmates bundle science-small -o science-small.zip")
@click.argument("study", metavar="STUDY")
@click.option("-o", "--out", "path", type=click.Path(path_type=Path), required=True, help="File to write, a new one.")
@json_option()
@store_option
def make(study: str, path: Path, as_json: bool, store: str | None) -> None:
    """Write a study's bundle, and print its digest.

    The store may be in use; runs in progress are interrupted in the bundle. It is refused if a text holds a secret of
    this process's environment.
    """
    from labmates.records.database import store_url
    from labmates_doors.bundles.making import make_bundle

    with err().status("writing …"):
        made = make_bundle(store_url(store), study, path)
    if as_json:
        print_json({"file": str(path), "study": made.study, "runs": made.runs, "digest": made.digest})
        return
    err().print(f"Written to {path}: {made.runs:,} runs. Publish its digest with your numbers:", soft_wrap=True)
    out().print(made.digest, soft_wrap=True)


@bundle.command(epilog="Example: labmates bundle verify science-small.zip")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--digest", metavar="SHA256", help="The digest that the maker has published.")
@click.option("--save", metavar="STORE", help="Write its runs into this new store, to browse them.")
@_sandbox
@json_option()
def verify(path: Path, digest: str | None, save: str | None, sandbox: str, as_json: bool) -> int:
    """Check a bundle offline, without keys: digests, every table recomputed, every run replayed.

    The exit code is 0 if everything was checked and matches, 1 if the bundle is refused, and 3 if nothing is wrong, but
    something can't be checked here, such as runs made with other code that replay otherwise.
    """
    result = run_until_stopped(_checked(path, digest, sandbox, save))
    if result is None:
        return 130
    if as_json:
        print_json({name: value for name, value in vars(result).items() if name != "store"} | {"code": _code(result)})
    else:
        _print(result, with_digest=digest is not None)
    return _code(result)


async def _checked(path: Path, digest: str | None, sandbox: str, save: str | None) -> Checked:
    from labmates.records.copying import copy_store
    from labmates.records.database import store_url
    from labmates_doors.bundles.checking import checking

    with err().status("checking …") as status:
        watch = lambda text: status.update(f"{text} …")  # noqa: E731
        async with checking(path, published=digest, sandbox=sandbox, watch=watch) as checked:
            if save is not None and checked.store is not None and not checked.faults:
                copy_store(checked.store.url, store_url(save))
    return checked


def _code(checked: Checked) -> int:
    return 1 if checked.faults else NOT_ALL if checked.unchecked else 0


def _print(checked: Checked, *, with_digest: bool) -> None:
    from labmates_doors.bundles.checking import RESTS

    told = out()
    _list("Refused:", checked.faults)
    if not checked.faults:
        what = f"{checked.replayed:,} of {checked.runs:,} runs replayed ({checked.events:,} events)"
        told.print(clean(f"Study {checked.study}, made by labmates {checked.version}."), soft_wrap=True)
        told.print(f"{what}, {checked.tables} tables recomputed; nothing differs.", soft_wrap=True)
        _list("Could not be checked here:", checked.unchecked)
        _list("Noticed:", checked.notes)
        if with_digest:
            told.print("Its digest is the published one: every byte is as its maker published it.")
        else:
            _list("Rests on the digest alone; compare it with the published one (--digest):", RESTS)
    if checked.digest:
        told.print(f"Digest: {checked.digest}", soft_wrap=True)


def _list(title: str, texts: list[str] | tuple[str, ...]) -> None:
    if texts:
        out().print(title, style="bold")
    for text in texts[:MOST_SHOWN]:
        out().print(clean(f"  {' '.join(text.split())[:300]}"), soft_wrap=True)
    if (more := len(texts) - MOST_SHOWN) > 0:
        out().print(f"  and {more:,} more; all of them with --json")


@click.command(epilog="Example: labmates leaderboard bundles -o site")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("-o", "--out", "site", type=click.Path(path_type=Path), required=True, help="Folder of the page.")
@_sandbox
@json_option()
def leaderboard(folder: Path, site: Path, sandbox: str, as_json: bool) -> int:
    """Check all bundles of a folder, and rank their models on a static page.

    The page, index.html, is made only from bundles of which everything was checked and matches; it lists the others
    with the reason. The exit code is 1 if there is none.
    """
    from labmates_doors.bundles.leaderboard import ranked

    files = sorted(folder.glob("*.zip"))
    if not files:
        raise UsageError(f"'{folder}' holds no bundle; a bundle's name ends in .zip")
    with err().status("checking …") as status:
        made = run_until_stopped(ranked(files, site, sandbox, lambda text: status.update(f"{text} …")))
    if made is None:
        return 130
    if as_json:
        print_json({"page": str(site / "index.html"), "verified": made.verified, "refused": made.refused})
    else:
        for name, why in made.refused.items():
            err().print(clean(f"{name}: {why}"), soft_wrap=True)
        number = len(made.verified)
        bundles = f"{number} bundle{'' if number == 1 else 's'}"
        err().print(f"Written to {site / 'index.html'}: {bundles}", soft_wrap=True)
    return 0 if made.verified else 1
