"""Tables of evolutions."""

from __future__ import annotations

from labmates_populations.outcomes import EvolutionResult, winners_table


def test_winners_under_other_settings_are_told_apart() -> None:
    common = {"game": "public-goods", "group_size": 4, "protocol": "paper", "generations": 200, "elite": 64}
    found = [
        EvolutionResult({**common, **own}, 2, (("one/selfish", 2),), 1, 15.0, 0.2, 0.3)
        for own in ({"rules": {"k": 2}}, {"rules": {"k": 3}, "generations": 10})
    ]
    table = winners_table(found)
    assert [(row["rules"], row["generations"]) for row in table.rows] == [("k=2", 15), ("k=3", 15)]
    keys = [column.key for column in table.columns]
    assert "rules" in keys
    assert "elite" not in keys
    assert len(set(keys)) == len(keys)
