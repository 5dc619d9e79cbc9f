"""Packages of third parties as an installer leaves them: modules, and metadata with entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def install(folder: Path, package: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]) -> Path:
    """Put a package into a folder, which then has to be on the import path, and return the folder.

    Parameters
    ----------
    package
        Its name; the version is 1.0.
    points
        Entry points by group: name to ``module:attribute``.
    modules
        Source code by module name.
    """
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points[group].items()) for group in points
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    return folder
