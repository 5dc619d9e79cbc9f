"""The scripts in the folders ``examples`` as pages: what each says of itself, then its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sitegen.markup import fence

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted([*ROOT.glob("examples/*.py"), *ROOT.glob("packages/*/examples/*.py")], key=lambda path: path.name)


def example_pages() -> Iterator[tuple[str, str]]:
    """Return path and Markdown of a page for each script."""
    for script in SCRIPTS:
        source = script.read_text(encoding="utf-8")
        said = ast.get_docstring(ast.parse(source)) or ""
        title, _, text = said.partition("\n")
        body = source[source.index('"""', 3) + 3 :]
        where = f"This is `{script.relative_to(ROOT)}`."
        parts = [f"# {title.rstrip('.')}", text.strip(), where, fence("python", body)]
        yield f"examples/{script.stem.replace('_', '-')}.md", "\n\n".join(parts)
