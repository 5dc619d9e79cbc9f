"""The glossary: the words over the columns of all tables, with the metrics and parameters of all experiments."""

from __future__ import annotations

from pathlib import Path

import yaml

from labmates.workflows.protocol.experiment import EXPERIMENTS
from sitegen.markup import cell, table

WORDS = Path(__file__).parents[2] / "glossary.yaml"


def glossary() -> dict[str, str]:
    """The meaning of each word: those of ``docs/glossary.yaml``, else of metrics, else of parameters."""
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
    words = {word: "; ".join(texts) for word, texts in meanings.items()}
    return dict(
        sorted((words | yaml.safe_load(WORDS.read_text(encoding="utf-8"))).items(), key=lambda item: item[0].lower())
    )


def glossary_page() -> str:
    """The page of the glossary."""
    rows = [(word, cell(meaning)) for word, meaning in glossary().items()]
    about = (
        "What the words over the columns of tables mean, on the screen, in reports, files and the viewer. Metrics and "
        "parameters have these names in data frames, with `_` for spaces (`metrics.idle_seats`, `condition.team_size`)."
    )
    return "\n\n".join(["# Glossary", about, table(("Word", "Meaning"), rows)])
