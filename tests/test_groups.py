"""What the suite itself relies on."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there are no workers")
@pytest.mark.xdist_group("kept-together")
def test_a_group_of_tests_stays_with_one_worker(request: pytest.FixtureRequest) -> None:
    """Without groups all still pass, but each worker makes its own site, cluster, server and so on."""
    assert request.node.nodeid.endswith("@kept-together")
