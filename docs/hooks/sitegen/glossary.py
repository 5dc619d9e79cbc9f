"""The page of the glossary."""

from __future__ import annotations

from labmates.workflows.protocol.glossary import glossary
from sitegen.markup import cell, table


def glossary_page() -> str:
    """The page of the glossary."""
    rows = [(word, cell(meaning)) for word, meaning in glossary().items()]
    about = (
        "What the words over the columns of tables mean, on the screen, in reports, files and the viewer. Metrics and "
        "parameters have these names in data frames, with `_` for spaces (`metrics.idle_seats`, `condition.team_size`)."
    )
    return "\n\n".join(["# Glossary", about, table(("Word", "Meaning"), rows)])
