"""Strategies written by models: described, implemented, checked, written anew, and kept with where they are from."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.models.objects import UnusableAnswerError
from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import ArtifactEvent, FailedReplyEvent, LLMCallEvent, WarningEvent
from labmates.records.store import Store
from labmates.studies import ready
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.stop_signal import StopSignal
from labmates_populations.condition import StrategiesCondition
from labmates_populations.engine.authoring import add_to_library, written_class
from labmates_populations.repeated import make_repeated
from labmates_populations.strategies import describing, implementing
from tests.support.command_line import Labmates
from tests.support.openai_server import OpenAIServer, fault, serve_model
from tests.support.orders import check_rendered
from tests.support.puppet import puppet
from tests.support.text_author import TextAuthor

GOOD = "class {name}(BaseStrategy):\n    def __call__(self, history, *stock):\n        return C\n"
WORDS: dict[str, Any] = {"game": "public-goods", "attitude": "exploitative", "number": 1}
SETTINGS = RunSettings(processes=1)


def prompt_of(heard: Heard) -> str:
    return text_of(heard.messages[-1].content)


def fenced(code: str) -> Draft:
    return Draft(f"Here it is:\n```python\n{code}\n```\nGood luck!")


class Author:
    """Describes, then gives its implementations one after the other."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.prompts: list[str] = []
        self.heard: list[Heard] = []

    def __call__(self, heard: Heard) -> Draft:
        self.heard.append(heard)
        self.prompts.append(prompt_of(heard))
        if "with the name" not in self.prompts[-1]:
            return Draft("Cooperate always.")
        return fenced(self.codes.pop(0).format(name="Strategy_EXPLOITATIVE_1"))


async def write(author: Author, store: Store, **more: Any) -> Any:
    with puppet(author) as model:
        [run] = await arun("strategies", store=store.url, settings=SETTINGS, model=model, **{**WORDS, **more})
    return run


async def test_a_failed_implementation_is_written_anew_from_the_same_description(store: Store) -> None:
    author = Author(
        "class {name}(BaseStrategy):\n    def __call__(self, history)\n        return C\n",
        GOOD.replace("return C", "import os; return C"),
        GOOD.replace("return C", "return C if history.round_number < 4 else 1 / 0"),
        GOOD,
    )
    run = await write(author, store)
    assert run.metrics == {"written": 1, "dropped": 0, "attempts": 4, "first_try_rate": 0, "deterministic_rate": 1}
    assert len(author.prompts) == 5
    first, *again = author.prompts[1:]
    assert all(prompt.startswith(first) for prompt in again), "the description and the task stay as they are"
    assert all(prompt != first for prompt in again)
    assert "was refused: ZeroDivisionError" in again[-1], "each further attempt is told why the last one failed"
    assert "Cooperate always." in author.prompts[1]
    events = store.events(run.id)
    [kept] = [event for event in events if isinstance(event, ArtifactEvent)]
    assert (kept.name, kept.version) == ("Strategy_EXPLOITATIVE_1", 4)
    told = [event.reason for event in events if isinstance(event, FailedReplyEvent)]
    assert ["can't be read as Python" in told[0], "imports 'os'" in told[1], "ZeroDivisionError" in told[2]] == [
        True
    ] * 3
    seeds = [event.seed for event in events if isinstance(event, LLMCallEvent)]
    assert len(set(seeds)) == 5, "each attempt is another draw"


async def test_what_can_not_be_implemented_is_dropped_and_counted(store: Store) -> None:
    run = await write(Author(*["nothing"] * 2), store, implementations=2)
    assert run.metrics == {"written": 0, "dropped": 1, "attempts": 2, "first_try_rate": 0}
    [warning] = [event.text for event in store.events(run.id) if isinstance(event, WarningEvent)]
    assert warning.startswith("Strategy_EXPLOITATIVE_1 is dropped: no implementation passed the checks")


@pytest.mark.parametrize("prompt", ["standard", "brief"])
@pytest.mark.parametrize("game", ["public-goods", "collective-risk", "common-pool"])
@pytest.mark.parametrize("information", ["counts", "individual"])
async def test_the_baseline_writes_for_every_game_and_prompt(
    store: Store, game: str, prompt: str, information: str
) -> None:
    words = {**WORDS, "game": game, "prompt": prompt, "number": 3, "attitude": "collective", "information": information}
    [run] = await arun("strategies", store=store.url, settings=SETTINGS, model="scripted:author", **words)
    assert run.metrics["written"] == run.metrics["attempts"] == 3


async def test_interrupted_writing_goes_on_without_asking_again(store: Store) -> None:
    from labmates.studies.runs import new_runs
    from labmates.workflows.protocol.experiment import make_condition

    stop_signal = StopSignal()

    class Stopping(Author):
        def __call__(self, heard: Heard) -> Draft:
            said = super().__call__(heard)
            if len(self.prompts) == 2:
                stop_signal.pull()
            return said

    bad = GOOD.replace("return C", "return 1")
    author = Stopping(bad, GOOD)
    with puppet(author) as model:
        condition = make_condition("strategies", {**WORDS, "model": model})
        runs = new_runs(condition, seed=0, replicates=1, settings=SETTINGS)
        [stopped] = await Session(store, SETTINGS, stop_signal=stop_signal).execute(runs)
        assert stopped.status == "interrupted"
        [ended] = await Session(store, SETTINGS).execute([store.run(stopped.id)])
    assert ended.status == "completed"
    assert ended.metrics["attempts"] == 2
    assert len(author.prompts) == 3, "nothing was asked twice"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I can't.", "has no class X"),
        ("```python\nclass Y(BaseStrategy): pass\n```", "has no class X"),
        ("```python\nimport os\nclass X(BaseStrategy): pass\n```", "code outside the class"),
        ("```python\nclass X(BaseStrategy):\n    pass\nX.y = 1\n```", "code outside the class"),
        ("```python\nclass X(BaseStrategy):\n    pass\ndef f(): pass\n```", "code outside the class"),
        ("```python\n    class X(BaseStrategy): pass\n```", "does not stand by itself"),
    ],
)
def test_a_reply_without_a_class_that_stands_alone_can_not_be_used(reply: str, said: str) -> None:
    with pytest.raises(UnusableAnswerError, match=said):
        written_class(reply, "X")


def test_the_class_is_found_in_prose_and_loses_what_stands_before_it_anyway() -> None:
    block = "import math\nimport random\n\n# mine\nclass X(BaseStrategy):\n    pass\n\n"
    reply = f"Sure:\n```python\nx = 1\n```\nthen\n```py\n{block}```\n"
    assert written_class(reply, "X") == "class X(BaseStrategy):\n    pass\n"


def test_a_library_grows_and_takes_nothing_twice(tmp_path: Path) -> None:
    def written(run: str, *numbers: int) -> list[tuple[str, dict[str, str]]]:
        return [
            (
                f"class Strategy_A_{n}(BaseStrategy):\n    pass\n",
                {"run": run, "attitude": "a", "class": f"Strategy_A_{n}"},
            )
            for n in numbers
        ]

    for run, numbers, new in (("one", (1, 3), 2), ("one", (1, 3, 4), 1), ("two", (1,), 1), ("two", (1,), 0)):
        file, added = add_to_library(tmp_path, "public-goods", "openai:some/model", written(run, *numbers))
        assert added == new
    assert file.path.name == "openai-some-model.py"
    assert [line.split("(")[0] for line in file.path.read_text().splitlines() if line.startswith("class")] == [
        f"class Strategy_A_{n}" for n in (1, 2, 3, 4)
    ]
    lines = [json.loads(line) for line in file.provenance.read_text().splitlines()]
    assert [(line["class"], line["written_as"], line["run"]) for line in lines] == [
        ("Strategy_A_1", "Strategy_A_1", "one"),
        ("Strategy_A_2", "Strategy_A_3", "one"),
        ("Strategy_A_3", "Strategy_A_4", "one"),
        ("Strategy_A_4", "Strategy_A_1", "two"),
    ]


def test_strategies_beside_foreign_ones_get_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "public-goods").mkdir()
    (tmp_path / "public-goods" / "m.py").write_text("class Strategy_A_3(BaseStrategy):\n    pass\n")  # no provenance
    code = "class Strategy_A_1(BaseStrategy):\n    pass\n"
    add_to_library(tmp_path, "public-goods", "m", [(code, {"run": "r", "attitude": "a", "class": "Strategy_A_1"})])
    assert re.findall("class (.*)\\(", (tmp_path / "public-goods" / "m.py").read_text()) == [
        "Strategy_A_3",
        "Strategy_A_4",
    ]


def test_strategies_are_written_over_http_and_played(labmates: Labmates, tmp_path: Path) -> None:
    with OpenAIServer(serve_model(TextAuthor(), latency=0)) as server:
        words = ["--model", "openai:some-model", "--base-url", server.base_url, "--game", "public-goods"]
        done = labmates("strategies", "write", *words, "--attitude", "exploitative", "-n", "3", OPENAI_API_KEY="sk-x")
    assert done.code == 0
    assert "3 strategies were added to strategies/public-goods/openai-some-model.py" in done.out
    assert len(server.requests) == 6
    file = tmp_path / "strategies" / "public-goods" / "openai-some-model.py"
    line = json.loads(file.with_suffix(".jsonl").read_text().splitlines()[0])
    assert line["model"] == "openai:some-model"
    assert line["description"].startswith("In the first round")
    assert (line["attempts"], line["prompt"]) == (1, "standard")
    assert labmates("strategies", "check", "strategies").code == 0
    player = f"{file}:Strategy_EXPLOITATIVE_2"
    [told] = labmates("strategies", "play", "--game", "public-goods", "--players", *[player] * 3, "--json").records
    assert told["errors"] == {}
    again = labmates("strategies", "write", "--resume", line["run"])
    assert "0 strategies were added" in again.out
    assert labmates("strategies", "write", "--resume", "nothing").code == 2


def test_writing_that_failed_says_how_it_goes_on_into_the_same_library(labmates: Labmates) -> None:
    answers = serve_model(TextAuthor(), latency=0)
    welcome = fault(200, "<html>welcome</html>")
    words = ["--game", "public-goods", "--attitude", "selfish", "-n", "2", "--to", "my library"]
    with OpenAIServer(lambda request, n: answers(request, n) if n else welcome) as server:
        at = ["--model", "openai:some-model", "--base-url", server.base_url, "--max-retries", "0"]
        failed = labmates("strategies", "write", *words, *at, OPENAI_API_KEY="sk-x")
        assert failed.code == 1
        [told] = [line for line in failed.err.splitlines() if "resume with: " in line]
        again = shlex.split(told.partition("resume with: ")[2])
        assert again[:3] == ["labmates", "strategies", "write"]
        done = labmates(*again[1:], OPENAI_API_KEY="sk-x")
    assert done.code == 0
    file = labmates.folder / "my library" / "public-goods" / "openai-some-model.py"
    assert file.read_text().count("class Strategy_SELFISH_") == 2


@pytest.mark.parametrize("game", ["public-goods", "common-pool"])
@pytest.mark.parametrize("prompt", ["standard", "brief", "paper"])
@pytest.mark.parametrize("information", ["counts", "individual", "source"])
def test_the_text_of_orders_renders_their_facts(game: Any, prompt: Any, information: Any) -> None:
    condition = StrategiesCondition(
        model="scripted:author", game=game, attitude="selfish", prompt=prompt, information=information
    )
    described, implemented = describing(condition), implementing(condition, "Strategy_1", "Defect in 3 of 4 rounds.")
    check_rendered([described.human(), implemented.human()])
    assert ("opponent_actions" in implemented.text) == (information == "individual")
    assert ("opponent_cooperators" in implemented.text) == (information != "individual")
    assert ("opponent_sources" in implemented.text) == (information == "source")


@pytest.mark.parametrize("game", ["public-goods", "collective-risk", "common-pool"])
def test_the_examples_of_the_papers_prompt_follow_from_the_rules(game: Any) -> None:
    condition = StrategiesCondition(model="scripted:author", game=game, attitude="selfish", prompt="paper")
    text = describing(condition).text
    if game == "common-pool":
        made = make_repeated(game, 4, 2)
        start = made.start(3)
        paid = made.payoffs(np.array([[True] * 4, [False] * 4, [True, True, False, False]]), start)
        assert paid.tolist() == [[2] * 4, [4] * 4, [2, 2, 4, 4]]
        assert np.asarray(made.next_stock(start, paid)).tolist() == [16, 0, 10]
        told = [
            "each takes 2",
            "each takes 4, nothing is left",
            "cooperators take 2 each and defectors 4 each",
            "= 10.",
        ]
    else:
        made = make_repeated(game, 6, 2)
        paid = made.payoffs(np.array([[False] * 6, [True] * 6, [True] * 3 + [False] * 3]), None)
        cooperator, defector = paid[2, 0], paid[2, 5]
        told = [f"every player gets {paid[0, 0]:g};", f"{paid[1, 0]:g};"]
        told += [f"each cooperator gets {cooperator:g} and each defector {defector:g}"]
    for words in told:
        assert words in text


async def test_a_strategy_that_sees_more_than_it_was_told_is_written_anew(store: Store) -> None:
    sees_each = GOOD.replace("history, *stock", "state, history")
    assert (await write(Author(sees_each, GOOD), store)).metrics["attempts"] == 2
    assert (await write(Author(GOOD, sees_each), store, information="individual")).metrics["attempts"] == 2


def test_strategies_that_see_each_opponent_are_a_set_of_their_own(labmates: Labmates) -> None:
    words = ["--model", "scripted:author", "--game", "public-goods", "--attitude", "collective", "-n", "6"]
    for information in ("counts", "individual"):
        assert labmates("strategies", "write", *words, "--information", information).code == 0
    assert "none with problems" in labmates("strategies", "check", "strategies").out
    words = ["analyze", "diversity", "strategies", "--game", "public-goods", "--rounds", "4"]
    shown = labmates(*words, "--features", "histories", "--json").records
    assert [one["set"] for one in shown] == ["collective[information=counts]", "collective[information=individual]"]
    assert "6 strategies see each opponent's moves" in labmates(*words).out


async def test_a_system_prompt_stands_before_each_request(store: Store) -> None:
    author = Author(GOOD)
    assert (await write(author, store, system="Think of everybody.")).metrics["written"] == 1
    assert [str(heard.messages[0].content) for heard in author.heard] == ["Think of everybody."] * 2


def test_strategies_of_a_system_prompt_are_a_set_of_their_own(labmates: Labmates) -> None:
    words = ["--model", "scripted:author", "--game", "public-goods", "--attitude", "self-interested", "-n", "2"]
    for more in ([], ["--system", "Think of everybody."]):
        assert labmates("strategies", "write", *words, *more).code == 0
    shown = labmates("analyze", "diversity", "strategies", "--game", "public-goods", "--json").records
    digest = hashlib.sha256(b"Think of everybody.").hexdigest()[:8]
    assert {one["set"] for one in shown} == {f"selfinterested[system={said}]" for said in ("none", digest)}


def test_an_attitude_of_two_words_is_spelled_with_a_hyphen() -> None:
    condition = StrategiesCondition(model="scripted:author", game="public-goods", attitude="self-interested")
    assert condition.attitude == "selfinterested"
    assert "self-interested" in describing(condition).text


def test_what_a_study_wrote_is_collected_once(labmates: Labmates) -> None:
    (labmates.folder / "study.yaml").write_text(ready.text("collective-write").replace("number: 512", "number: 1"))
    assert labmates("study", "run", "study.yaml").code == 0
    lines = labmates("strategies", "collect", "collective-write").out.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("1 strategies were added") for line in lines)
    again = labmates("strategies", "collect", "collective-write").out.splitlines()
    assert all(line.startswith("0 strategies were added") for line in again)
    assert labmates("strategies", "collect", "nothing").code == 2
