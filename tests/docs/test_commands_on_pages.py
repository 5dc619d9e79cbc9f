"""Every command and all Python on README and on the pages of documentation is executed."""

from __future__ import annotations

import re
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.docs.pages import SHELL, Block, blocks_of, name_of, pages
from tests.docs.walk import Done, Walk, names_database
from tests.support.plugins import ROOT
from tests.support.postgres import database

NOT_RUN: dict[str, list[str]] = {
    "README.md": ["it installs everything a second time"],
    "CONTRIBUTING.md": ["it installs everything a second time and runs all tests"],
    "docs/gallery/README.md": ["it serves until it is stopped"],
    "docs/howto/debugging.md": [
        "it continues a run many times; packages/labmates-credit/tests/credit/test_blame.py has it",
        "needs langgraph-cli[inmem], and a browser at LangChain's site",
    ],
    "docs/howto/documentation.md": ["tests/docs/test_site.py builds the site"],
    "packages/labmates-doors/docs/howto/doors.md": [
        "needs Inspect; packages/labmates-doors/tests/doors/inspect runs such commands",
        "needs a collector; packages/labmates-doors/tests/doors/exports/test_otlp.py has one",
    ],
    "packages/labmates-doors/docs/howto/gateway.md": [
        "it serves until it is stopped; packages/labmates-doors/tests/doors/test_gateway_verb.py starts and stops it",
        "needs the gateway of the block above",
        *["needs the program and the gateway"] * 2,
        "needs the package and the gateway",
    ],
    "docs/howto/held-out-data.md": ["a salt has to be random", "the salt is not known yet"],
    "docs/howto/new-experiment.md": [
        "tests/docs/test_examples.py runs the example; tests/cli/test_plugin_packages.py installs packages",
    ],
    "docs/howto/models.md": [
        "needs two model servers",
        "needs a model server",
        "it installs packages, and tests run the model elsewhere",
        "needs a graphics card and the weights of a model",
        "needs Ollama and the weights of a model",
        "needs llama.cpp and the weights of a model",
    ],
    "docs/howto/shared-budget.md": [
        "tests/docs/test_examples.py runs examples/shared_budget.py",
        "the agents stand for yours",
    ],
    "docs/index.md": ["the README has the same command, with what it prints"],
    "docs/lab/organisations.md": [
        "packages/labmates-doors/tests/doors/test_own_graph.py runs examples/own_organisations.py"
    ],
    "packages/labmates-doors/docs/lab/seats.md": [
        "it waits for a person",
        "a function that packages/labmates-doors/tests/doors/seats holds",
        "needs the program and a model",
    ],
    "docs/plugins.md": ["packages/labmates-author/tests/author/test_judge_verbs.py does it"],
    "docs/reproduction/coopeval.md": ["it needs the checkout"],
    "docs/studies/clusters.md": [
        "needs other machines",
        "needs a Slurm cluster",
        "needs a Kubernetes cluster",
    ],
    "packages/labmates-author/README.md": ["it installs the package"],
    "packages/labmates-credit/README.md": ["it installs the package"],
    "packages/labmates-design/README.md": ["it installs the package"],
    "packages/labmates-doors/README.md": ["it installs the package"],
    "packages/labmates-gguf/README.md": ["it installs the package"],
    "packages/labmates-gym/README.md": ["it installs the package"],
    "packages/labmates-gym/docs/howto/gym.md": [
        "it installs verifiers; packages/labmates-gym/tests/gym/test_verifiers.py plays it"
    ],
    "packages/labmates-populations/README.md": ["it installs the package"],
    "packages/labmates-profiles/README.md": ["it installs the package"],
    "packages/labmates-ray/README.md": ["it installs the package"],
    "packages/labmates-ray/docs/studies/ray.md": [
        "Ray is slow to start; packages/labmates-ray/tests/clusters/test_ray_executor.py starts one and executes the "
        "command for a cluster",
        "needs other machines",
    ],
    "docs/viewer/README.md": [
        "it serves until it is stopped; tests/cli/test_view_verb.py starts and stops what stands here",
    ],
}
"""By page, the reasons of all blocks that are not executed, in order: whoever adds one has to add it here too."""

WALKED = [page for page in pages() if any(block.is_command or block.first for block in blocks_of(page))]


@pytest.mark.slow("tests/cli")
@pytest.mark.needs("docker")
@pytest.mark.needs("postgres")
@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("page", WALKED, ids=name_of)
def test_what_a_page_shows_works(page: Path, forge: Path, models: str, tmp_path: Path) -> None:
    blocks = list(blocks_of(page))
    executed = 0
    with database() if names_database(blocks) else nullcontext("") as url:
        walk = Walk(tmp_path, forge, models, url)
        walk.prepare()
        for done in walk.through(blocks):
            assert done.code == 0, str(done)
            assert not done.crashed, str(done)
            assert not done.missing, str(done)
            executed += 1
    assert executed
    shutil.rmtree(tmp_path)


def test_only_what_is_listed_here_is_not_executed() -> None:
    found: dict[str, list[str]] = {}
    for page in pages():
        for block in blocks_of(page):
            if block.not_run:
                found.setdefault(block.page, []).append(block.not_run)
    assert found == NOT_RUN


def test_the_tutorial_is_followed_word_by_word() -> None:
    blocks = list(blocks_of(ROOT / "docs" / "tutorial.md"))
    assert all(block.text == block.shown and not block.not_run and not block.first for block in blocks)


def test_no_command_hides_in_a_block_that_is_not_for_the_shell() -> None:
    hidden = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?labmates [a-z]", re.MULTILINE)
    for page in pages():
        for block in blocks_of(page):
            assert block.language in SHELL or not hidden.search(block.text), str(block)


def test_a_comment_that_replaces_what_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- instead: --replicates 5 => --replicates 1 -->\n```sh\nlabmates run game\n```\n")
    with pytest.raises(ValueError, match="not in the block"):
        list(blocks_of(page))


@pytest.mark.slow("tests/cli")
def test_a_command_that_fails_and_output_that_is_not_printed_are_noticed(tmp_path: Path, forge: Path) -> None:
    walk = Walk(tmp_path, forge, "http://127.0.0.1:9/v1")
    walk.prepare()

    def only(text: str, language: str = "console") -> Done:
        [done] = walk.through([Block("page.md", 4, language, text, text)])
        return done

    wrong = only("$ labmates tasks show no-such-task\n")
    assert wrong.code == 2
    assert str(wrong).startswith(
        "page.md:4\nlabmates tasks show no-such-task\nended with exit code 2 and printed:\nlabmates: unknown task"
    )
    assert only("$ printf 'one\\ntwo'\ntwo\none\n").missing == ("one",)
    assert "did not print: three" in str(only("$ echo two\nthree\n"))
    assert only("$ printf '1 of 7\\nand 2\\n'\n8 of 9\n…\n").missing == ()
    raised = only("1 / 0\n", "python")
    assert raised.crashed
    assert 'page.py", line 5, in' in raised.printed  # the line of the page


@pytest.mark.slow("tests/cli")
def test_commands_of_pages_that_are_forked_print_what_a_new_process_prints(tmp_path: Path, forge: Path) -> None:
    walk = Walk(tmp_path, forge, "http://127.0.0.1:9/v1")
    walk.prepare()
    script = f"""
        labmates games show o-ring > forked.txt
        {sys.executable} -m labmates.cli.main games show o-ring > new.txt
    """
    [done] = walk.through([Block("page", 1, "sh", script, script)])
    assert done.code == 0, str(done)
    assert (tmp_path / "forked.txt").read_text() == (tmp_path / "new.txt").read_text() != ""
