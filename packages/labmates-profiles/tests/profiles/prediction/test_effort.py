from __future__ import annotations

from typing import Any

import pytest

from labmates.records.events import ChargeEvent
from labmates.records.run import RunRecord, Usage
from labmates.records.store import Store
from labmates.workflows.games.condition import GameCondition
from labmates_profiles.prediction.screen import effort_sentence, games_to_lab


def add(
    store: Store, name: str, kind: str, condition: dict[str, Any], tokens: int, spent: int, bill: str | None
) -> None:
    usage = Usage(1, tokens, 0, bill=bill)
    model = condition["model"]
    store.create(RunRecord(name, kind, name, 0, 0, condition, [model], "completed", usage=usage))
    store.add(name, [(0, ChargeEvent(step="1", team="t", input_tokens=tokens, output_tokens=0, amount=spent))], [])


@pytest.mark.parametrize(("bill", "in_money"), [(None, 5.0), ("0", 5.0), ("0.02", 2.0)])
def test_a_profile_is_measured_in_lab_runs(tmp_path: Any, bill: str | None, in_money: float) -> None:
    game = GameCondition(game="o-ring", model="m:a").model_dump(mode="json")
    with Store(f"sqlite:///{tmp_path}/a.db") as store:
        for number in range(2):
            add(store, f"game{number}", "game", game, 300, 500, bill)
        add(store, "other", "game", {**game, "framing": "alternate"}, 10_000, 10_000, bill)
        add(store, "elsewhere", "game", {**game, "model": "m:b"}, 10_000, 10_000, bill)
        for number in range(3):
            add(store, f"lab{number}", "science", {"model": "m:b"}, 100 * (number + 1), 200, bill)
        add(store, "solo", "science", {"model": "m:b", "organisation": "solo"}, 10_000, 10_000, bill)
        found = games_to_lab(store, "m:a", ["o-ring"])
        assert found is not None
        assert (found["profile"]["runs"], found["lab"]["runs"]) == (2, 3)
        assert (found["lab_runs_in_tokens"], found["lab_runs_in_money"]) == (600 / 200, in_money)
        assert found["paid"] == (bill == "0.02")
        assert "as much as 3 lab runs in tokens" in effort_sentence(found)
        assert games_to_lab(store, "m:c", ["o-ring"]) is None
        assert games_to_lab(store, "m:a", ["o-ring"], study="other") is None
