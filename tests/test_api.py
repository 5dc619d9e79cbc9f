"""All that the package is for can be had from `labmates` itself."""

from __future__ import annotations

import inspect

import labmates
from labmates import api


def test_every_verb_stands_at_the_top_of_the_package() -> None:
    verbs = {name for name, one in vars(api).items() if inspect.isfunction(one) and one.__module__ == api.__name__}
    public = {name for name in verbs if not name.startswith("_")}
    assert {"arun", "judge", "load_runs", "run"} <= public
    assert public == set(labmates.__all__) - {"LabmatesError", "UsageError", "__version__"}
    assert all(getattr(labmates, name) is getattr(api, name) for name in public)
