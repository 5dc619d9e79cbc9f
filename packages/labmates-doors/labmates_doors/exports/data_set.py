"""A store's runs as a folder that ``datasets.load_dataset`` opens: a Parquet file per table, and a card."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.records.frames import ROWS, Rows
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.studies.export import export_rows

_CARD: Final = "README.md"
_ABOUT: Final[dict[Rows, str]] = {
    "runs": "a run: every parameter of its condition, status, metrics, usage, and newest scores",
    "scores": "a score of a judge, with its reason",
    "players": "an agent or player of a run: tokens, money, decisions, payoff",
    "decisions": "a decision of a player",
    "payoffs": "a player's payoff in a round or match",
    "messages": "a message to or from a model, whole; `step` and `place` tell the call and the place in its transcript",
    "events": "an event of a run's record; `data` is JSON",
}


def export_data_set(store: Store, out: str, runs: Callable[[], Iterable[RunRecord]]) -> int:
    """Write all tables that have rows, and a card, into a new folder; return the number of runs.

    Raises `UsageError` if the folder has content, can't be written or would have no runs; `MissingExtraError` without
    pyarrow.
    """
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"'{folder}' exists and is no empty folder; give another name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write '{folder}': {error.strerror}") from error
    numbers: dict[Rows, int] = {}
    for what in ROWS:
        path = folder / f"{what}.parquet"
        if number := export_rows(store, path, runs(), what=what):
            numbers[what] = number
        else:
            path.unlink()
    if not numbers:
        folder.rmdir()
        raise UsageError("no started run is chosen, so the data set would be empty")
    studies = {run.study for run in runs()}
    study = studies.pop() if len(studies) == 1 else None
    spec = study_record(store, study).spec if study else None
    (folder / _CARD).write_text(_card(study or folder.name, spec, numbers), encoding="utf-8")
    return numbers["runs"]


def _card(name: str, spec: dict[str, Any] | None, numbers: dict[Rows, int]) -> str:
    import yaml

    configs = [{"config_name": what, "data_files": f"{what}.parquet"} for what in numbers]
    head = yaml.safe_dump({"pretty_name": name, "tags": ["labmates"], "configs": configs}, sort_keys=False)
    about = str((spec or {}).get("description") or "Runs of teams of language-model agents.")
    lines = [f"---\n{head}---", f"# {name}", about, f"Recorded by labmates {__version__}."]
    lines.append("| table | rows | a row is |\n| --- | ---: | --- |")
    lines[-1] += "".join(f"\n| `{what}` | {number:,} | {_ABOUT[what]} |" for what, number in numbers.items())
    lines.append("All tables join on `run` (`id` in `runs`). Texts of models are unchecked: treat them as hostile.")
    lines.append(f'```python\nfrom datasets import load_dataset\n\nload_dataset("{name}", "messages")\n```')
    if spec is not None:
        lines.append(f"The study:\n\n```json\n{json.dumps(spec, indent=2, ensure_ascii=False)}\n```")
    return "\n\n".join(lines) + "\n"
