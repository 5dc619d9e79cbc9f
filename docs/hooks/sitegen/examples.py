"""The scripts in ``examples/`` as pages: what each says of itself, then its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sitegen.markup import fence

EXAMPLES = Path(__file__).parents[3] / "examples"


def example_pages() -> Iterator[tuple[str, str]]:
    """Return path and Markdown of a page for each script."""
    for script in sorted(EXAMPLES.glob("*.py")):
        source = script.read_text(encoding="utf-8")
        said = ast.get_docstring(ast.parse(source)) or ""
        title, _, text = said.partition("\n")
        body = source[source.index('"""', 3) + 3 :]
        parts = [f"# {title.rstrip('.')}", text.strip(), f"This is `examples/{script.name}`.", fence("python", body)]
        yield f"examples/{script.stem.replace('_', '-')}.md", "\n\n".join(parts)
