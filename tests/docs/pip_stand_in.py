#!/usr/bin/env python3
"""What ``pip install -e FOLDER`` is on our pages: the package stands on the path, with its entry points.

That real installers do so too is tested in tests/cli/test_plugin_packages.py; here it would take longer than all else.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Install the folders that are named."""
    site = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
    if arguments[:2] != ["install", "-e"]:
        sys.exit(f"only 'pip install -e FOLDER' can be done here, not: pip {' '.join(arguments)}")
    for folder in map(Path, arguments[2:]):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        metadata = site / f"{project['name'].replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n", "utf-8")
        groups = project.get("entry-points", {}).items()
        lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in points.items()) for group, points in groups]
        (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        for package in folder.iterdir():
            if (package / "__init__.py").exists() or (package.suffix == ".py"):
                (site / package.name).symlink_to(package.resolve())


if __name__ == "__main__":
    main(sys.argv[1:])
