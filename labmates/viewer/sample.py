"""The sample store: a few runs of scripted baselines, to try the viewer without running anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from labmates.records.migrations import upgrade_store


@contextmanager
def sample_store() -> Iterator[str]:
    """Yield the URL of a temporary, upgraded copy of the sample store."""
    with TemporaryDirectory(prefix="labmates-sample-") as folder:
        path = Path(folder) / "sample.db"
        with as_file(files("labmates.viewer").joinpath("sample.sqlite")) as packed:
            shutil.copyfile(packed, path)
        path.chmod(0o600)
        url = f"sqlite:///{quote(str(path))}"
        upgrade_store(url)
        yield url
