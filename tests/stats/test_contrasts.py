"""Contrasts: over equal conditions alone, with intervals over runs and Holm's p."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.stats.contrasts import Contrast, Design, Observed, Run, contrasts_figure, contrasts_table, verdict
from labmates.stats.contrasts import contrasts as contrasts_of
from labmates.stats.domains import CORRELATION
from labmates.stats.figures import save_figure


def run(game: str, values: dict[str, float], **levels: str) -> Run:
    """A run in which models meet each other, with one outcome."""
    observed = tuple(
        Observed(model, (0, (other,)), {"cooperation": value}) for model, value in values.items() for other in values
    )
    return Run((game, tuple(values)), levels, observed, {"game": game})


def contrasts(runs: Sequence[Run]) -> list[Contrast]:
    return contrasts_of(Design(runs, {"cooperation": CORRELATION}, ""))


def only(found: list[Contrast], factor: str) -> Contrast:
    [one] = [one for one in found if one.factor == factor]
    return one


def design(effect: float, *, seed: int = 0, replicates: int = 4, noise: float = 0.02) -> list[Run]:
    """Two games under two mechanisms in two wordings; the mechanism has an effect, the wording has none."""
    rng = np.random.default_rng(seed)
    return [
        run(game, {"a": level + rng.normal(0, noise), "b": level - 0.1 + rng.normal(0, noise)}, mechanism=m, wording=w)
        for game, base in (("prisoners", 0.2), ("trust", 0.4))
        for m, level in (("none", base), ("contract", base + effect))
        for w in ("ours", "paper")
        for _ in range(replicates)
    ]


def test_a_mechanism_is_compared_over_equal_games_and_wordings() -> None:
    found = contrasts(design(0.3))
    mechanism = only(found, "mechanism")
    assert (mechanism.first, mechanism.second, mechanism.strata) == ("contract", "none", 4)
    assert mechanism.difference.value == pytest.approx(0.3, abs=0.02)
    low, high = mechanism.difference.ends()
    assert low < 0.3 < high
    assert mechanism.p_holm is not None
    assert mechanism.p_holm < 0.001
    models = only(found, "model")
    assert (models.first, models.second) == ("b", "a")
    assert models.difference.value == pytest.approx(-0.1, abs=0.02)
    assert models.strata == 8
    assert only(found, "wording").p_holm is not None


def test_unequal_conditions_are_not_compared() -> None:
    runs = [one for one in design(0.3) if (one.part("game") == "trust") == (one.levels["mechanism"] == "contract")]
    assert "mechanism" not in {one.factor for one in contrasts(runs)}
    missing = [one for one in design(0.3) if one.part("game") == "prisoners" or one.levels["mechanism"] == "none"]
    assert only(contrasts(missing), "mechanism").strata == 2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2]))
def test_the_order_of_levels_turns_the_sign_and_nothing_else(seed: int, effect: float) -> None:
    runs = design(effect, seed=seed)
    one, other = only(contrasts(runs), "mechanism"), only(contrasts(runs[::-1]), "mechanism")
    assert one.difference.value == pytest.approx(-other.difference.value)
    assert one.p == pytest.approx(other.p)
    assert (one.first, one.second) == (other.second, other.first)


def test_without_an_effect_intervals_hold_0_as_often_as_they_say() -> None:
    found = [only(contrasts(design(0.0, seed=seed, replicates=3)), "mechanism") for seed in range(200)]
    held = sum(one.difference.ends()[0] <= 0 <= one.difference.ends()[1] for one in found)
    assert 0.91 <= held / 200 <= 0.985


def test_several_pairs_are_adjusted_together() -> None:
    rng = np.random.default_rng(1)
    runs = [
        run("trust", {"a": base + rng.normal(0, 0.1)}, mechanism=name)
        for name, base in (("none", 0.2), ("repetition", 0.25), ("contract", 0.6))
        for _ in range(4)
    ]
    found = contrasts(runs)
    assert [(one.first, one.second) for one in found] == [
        ("repetition", "none"),
        ("contract", "none"),
        ("contract", "repetition"),
    ]
    ps, adjusted = [one.p or 0 for one in found], [one.p_holm or 0 for one in found]
    assert all(after >= before for before, after in zip(ps, adjusted, strict=True))
    assert min(adjusted) == pytest.approx(3 * min(ps))


def test_effects_of_words_stand_beside_those_of_mechanisms(tmp_path: Path) -> None:
    found = contrasts(design(0.3))
    [sentence] = verdict(found)
    assert sentence.startswith("Largest difference in cooperation by factor: mechanism +0.3")
    assert sentence.index("mechanism") < sentence.index("wording")
    table = contrasts_table({"all": found}, "")
    assert [row["mark"] for row in table.rows if row["factor"] == "mechanism"] == ["‡"]
    save_figure(contrasts_figure(found), tmp_path / "contrasts.png")
