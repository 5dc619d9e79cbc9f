"""Several tests at once."""

from __future__ import annotations

import pytest

from labmates.stats.multiplicity import holm, mark
from labmates.stats.tables import ADJUSTED, CREDIBLE


def test_holm_keeps_the_order_and_never_exceeds_1() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([0.02, None, 0.03]) == [0.04, None, 0.04]
    assert holm([]) == []


def test_an_effect_is_marked_where_its_interval_leaves_0_out() -> None:
    assert mark(leaves_out_zero=False, p_holm=0.01) == ""
    assert mark(leaves_out_zero=True, p_holm=0.05) == CREDIBLE
    assert mark(leaves_out_zero=True, p_holm=None) == CREDIBLE
    assert mark(leaves_out_zero=True, p_holm=0.01) == ADJUSTED
