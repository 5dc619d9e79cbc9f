"""``labmates judges``: list and show judges of reports."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from labmates.judges.base import metrics_of
from labmates.judges.registry import JUDGES, get_judge
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


def _model_judges() -> Mapping[str, type[Any]]:
    """Judge models by name, with MODEL in place of ``provider:name``."""
    from labmates.judges.panel import MEAN
    from labmates.judges.registry import MODEL_JUDGES

    return {f"{name}:MODEL".removeprefix(f"{MEAN}:"): MODEL_JUDGES.get(name) for name in MODEL_JUDGES.names()}


def _facts(judge: Any) -> dict[str, Any]:
    """Facts about a judge or a class of judges."""
    about = inspect.getdoc(judge) or ""
    return {"title": about.partition("\n")[0], "metrics": list(metrics_of(judge)), "version": judge.version}


def show(_lab: Lab, params: Named) -> Iterator[Result]:
    """Show a judge: metrics, rules, version, and the prompts of a judge model.

    NAME is one of the list, with a model as provider:name or as the literal word MODEL.
    """
    judge = _judge_named(params.name)
    with JUDGES.guarded(params.name, "can't be shown"):
        facts = _facts(judge)
        prompts = dict(getattr(judge, "prompts", {}))
        rules = inspect.getdoc(sys.modules[(judge if isinstance(judge, type) else type(judge)).__module__]) or ""
    package = JUDGES.package(params.name)
    lines = [
        f"{params.name}, version {facts['version']}" + (f"  ({package})" if package else ""),
        f"metrics: {', '.join(facts['metrics']) or 'not named'}",
        *([] if rules.startswith(facts["title"]) else [f"\n{facts['title']}"]),
        f"\n{rules}",
        *(f"\nPrompt: {title}\n{text}" for title, text in prompts.items()),
    ]
    shown = {"name": params.name, **facts, "package": package, "rules": rules, "prompts": prompts}
    yield Result((), verdict=lines, objects=[shown])


def _judge_named(name: str) -> Any:
    from labmates.judges.panel import MEAN
    from labmates.judges.registry import MODEL_JUDGES

    if name in (MEAN, "MODEL") or ":" in name:
        kind = name.partition(":")[0]
        return MODEL_JUDGES.get(kind if kind in MODEL_JUDGES else MEAN)
    return get_judge(name)


JUDGES_COMMAND = catalogue(
    """List the judges of reports, or show one.

    Any model can judge: name it as provider:name.
    """,
    JUDGES,
    lambda name: _facts(get_judge(name)),
    {
        "show": Command(show, Named, example="labmates judges show MODEL", objects=""),
    },
    example="labmates judges show verified",
    objects="per judge",
    more=lambda: {name: _facts(judge) for name, judge in _model_judges().items()},
)
