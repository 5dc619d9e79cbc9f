"""The glossary: the words over the columns of all tables, with the metrics and parameters of all experiments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import yaml

from labmates.workflows.protocol.experiment import EXPERIMENTS


@cache
def glossary() -> Mapping[str, str]:
    """The meaning of each word: that of ``glossary.yaml``, else of the metric, else of the parameter."""
    meanings: dict[str, list[str]] = {}
    for name in EXPERIMENTS.names():
        kind = EXPERIMENTS.get(name)
        own = {metric.name: metric.text for metric in kind.metrics}
        own |= {
            field: info.description or "" for field, info in kind.condition.model_fields.items() if field not in own
        }
        for word, text in own.items():
            texts = meanings.setdefault(word.replace("_", " "), [])
            texts += [text] if text not in texts else []
    words = {word: " ".join(f"{text.rstrip('.')}." for text in texts) for word, texts in meanings.items()}
    words |= yaml.safe_load((files(__package__) / "glossary.yaml").read_text("utf-8"))
    return MappingProxyType(dict(sorted(words.items(), key=lambda item: item[0].lower())))
