"""The specification of a study: a file, validated with line numbers, and its conditions."""

from __future__ import annotations

import math
import random
import re
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator, model_validator

from labmates.budgets.money import Dollars
from labmates.errors import UsageError, plain_fault, unknown_name
from labmates.models.catalog import Catalog
from labmates.models.endpoints import OPENAI_URL
from labmates.models.entries import Entry, check_base_url, named_entries
from labmates.models.options import ModelOptions, without_batches
from labmates.studies.settings import RunSettings, approval_fault
from labmates.util.bounded_yaml import Path, Source
from labmates.util.grouping import grouped
from labmates.util.safe_text import PLAIN_LETTERS
from labmates.util.seeds import LARGEST_SEED, MOST_REPLICATES, derive
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, with_bill

MOST_CONDITIONS = 1_000_000
"""Maximum number of conditions; larger grids are mistakes."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sample(_Part):
    """A random choice among the cells of the grid: weighted, without replacement, the same for the same seed."""

    size: int = Field(ge=1, description="Number of cells to draw.")
    per: Literal["model", "study"] = Field(
        "model", description="Draw this number for each model, or in all, with the models as part of the grid."
    )
    seed: int = Field(0, ge=0, description="Seed of the draw.")
    weights: dict[str, dict[Any, float]] = Field(
        {}, description="Relative weights of a parameter's values, by parameter; 1 by default."
    )

    @field_validator("weights")
    @classmethod
    def _positive(cls, value: dict[str, dict[Any, float]]) -> dict[str, dict[Any, float]]:
        if not all(0 < weight < math.inf for weights in value.values() for weight in weights.values()):
            raise ValueError("weights must be positive and finite")
        return value


class Concurrency(_Part):
    """The concurrency of each worker process."""

    max_concurrent_runs: int = RunSettings.model_fields["max_concurrent_runs"]  # type: ignore[assignment]
    max_concurrent_calls: int = ModelOptions.model_fields["max_concurrent_calls"]  # type: ignore[assignment]
    max_sandboxes: int | None = RunSettings.model_fields["max_sandboxes"]  # type: ignore[assignment]
    workers: int = Field(1, ge=1, le=256, description="Worker processes that the command starts on this machine.")


class Connection(_Part):
    """The connection to models."""

    base_url: str | None = ModelOptions.model_fields["base_url"]  # type: ignore[assignment]
    api_key_env: str = ModelOptions.model_fields["api_key_env"]  # type: ignore[assignment]
    call_timeout: float = ModelOptions.model_fields["call_timeout"]  # type: ignore[assignment]
    max_retries: int = ModelOptions.model_fields["max_retries"]  # type: ignore[assignment]
    stream: bool = ModelOptions.model_fields["stream"]  # type: ignore[assignment]
    models: dict[str, Entry] = Field(
        {}, description="Named models; those of the models file that the study names are added when it is read."
    )

    _of_older_plans = model_validator(mode="before")(without_batches)

    @field_serializer("models")
    def _only_given(self, models: dict[str, Entry]) -> dict[str, Any]:
        return {name: entry.model_dump(mode="json", exclude_none=True) for name, entry in models.items()}


class StudySpec(_Part):
    """A study: conditions times replicates, and how they are to be run."""

    name: str = Field(description="Name of the study in the store; by default the file's.")
    kind: str = Field(description="Kind of experiment.")
    description: str = Field("", description="Description of the study.")
    models: tuple[str, ...] = Field((), description="Models that are compared; each gets the whole grid.")
    fixed: dict[str, Any] = Field({}, description="Parameters with one value in all conditions.")
    grid: dict[str, list[Any]] = Field({}, description="Parameters that vary: all combinations of these values.")
    also: list[dict[str, list[Any]]] = Field(
        [], description="Further grids, such as other group sizes for one game; repeated conditions run once."
    )
    sample: Sample | None = Field(None, description="Draw some of the combinations instead of running all.")
    replicates: int = Field(1, ge=1, le=MOST_REPLICATES, description="Runs of each condition.")
    seed: int = Field(
        0,
        ge=0,
        le=LARGEST_SEED - MOST_REPLICATES,
        description="Seed of the first replicate; the next has one more. The same in all conditions.",
    )
    judges: tuple[str, ...] = RunSettings.model_fields["judges"]  # type: ignore[assignment]
    extractor: str | None = RunSettings.model_fields["extractor"]  # type: ignore[assignment]
    sandbox: str = RunSettings.model_fields["sandbox"]  # type: ignore[assignment]
    cache: bool = RunSettings.model_fields["cache"]  # type: ignore[assignment]
    allow_mixed: bool = RunSettings.model_fields["allow_mixed"]  # type: ignore[assignment]
    approve_all: bool = RunSettings.model_fields["approve_all"]  # type: ignore[assignment]
    approve_in_viewer: bool = RunSettings.model_fields["approve_in_viewer"]  # type: ignore[assignment]
    approval_timeout: float | None = RunSettings.model_fields["approval_timeout"]  # type: ignore[assignment]
    connection: Connection = Field(Connection(), description="Connections to models.")
    concurrency: Concurrency = Field(Concurrency(), description="Limits on concurrency.")
    cap: Dollars | None = Field(
        None,
        description="Spending cap of the whole study, judges included, in dollars. A run with an unaffordable bound "
        "does not start.",
    )
    bound: Dollars | None = Field(
        None,
        description="Maximum spending of one run, judges included, in dollars; by default the maximum cost of its "
        "calls. A run that can't pay its next call stops, and resumes after an increase.",
    )
    attempts: int = Field(
        5,
        ge=1,
        le=1000,
        description="Give up a run after this many workers have died in it: it may be the cause.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            rule = f"{PLAIN_LETTERS}, digits, '.', '_' and '-', at most 100"
            raise ValueError(f"a name has {rule}; without 'name', it is the file's")
        return value

    @property
    def grids(self) -> list[tuple[Path, dict[str, list[Any]]]]:
        """All grids, with their paths in the file."""
        return [(("grid",), self.grid), *((("also", number), grid) for number, grid in enumerate(self.also))]

    def catalog(self) -> Catalog:
        """A catalog of the study's named models, to resolve its conditions."""
        connection = self.connection.model_dump(exclude={"models"})
        options = ModelOptions(**connection, max_concurrent_calls=self.concurrency.max_concurrent_calls)
        return Catalog(options, self.connection.models)

    def settings(self, catalog: Catalog | None = None) -> RunSettings:
        """The settings of its runs; `catalog` is the one that resolved the conditions, by default a new one."""
        catalog = catalog or full_catalog(self)
        given = {**dict(self), **dict(self.concurrency), "models": catalog.options()}
        shared = RunSettings.model_fields.keys() & given.keys()
        return RunSettings(**{name: given[name] for name in shared}).resolved(catalog)


def full_catalog(spec: StudySpec, source: Source | None = None) -> Catalog:
    """The catalog with the connections of all models of a study.

    Raises `UsageError` as `each_condition` does.
    """
    catalog = spec.catalog()
    if spec.connection.models or "?" in spec.model_dump_json():
        deque(checked_conditions(spec, source, catalog), maxlen=0)
    return catalog


def read_spec(source: Source) -> StudySpec:
    """Validate a study. Raises `UsageError` with one line per fault."""
    try:
        spec = StudySpec.model_validate(source.data)
    except ValidationError as error:
        raise source.error(_faults(error, StudySpec)) from error
    faults = list(_wrong_parameters(spec))
    if faults:
        raise source.error(faults)
    return _with_named(spec)


def mixing(source: Source) -> Source:
    """The study, allowed to continue runs that began with other prompts, rules or code."""
    return replace(source, data={**source.data, "allow_mixed": True})


def _with_named(spec: StudySpec) -> StudySpec:
    """The study with its entries of the models file, which other machines' workers may lack."""
    text = spec.model_dump_json()
    named = {
        name: entry
        for name, entry in named_entries().items()
        if name not in spec.connection.models and re.search(rf'["=,]{re.escape(name)}["?,]', text)
    }
    if not named:
        return spec
    connection = spec.connection.model_copy(update={"models": {**spec.connection.models, **named}})
    return spec.model_copy(update={"connection": connection})


def each_condition(
    spec: StudySpec, source: Source | None = None, catalog: Catalog | None = None
) -> Iterator[tuple[str, Condition]]:
    """Yield the distinct conditions of a study with their keys, in order of execution.

    `source` gives errors their line; `catalog` collects the connections of models. Raises `UsageError` if a combination
    of parameters is not a condition, or there are none or far too many.
    """
    for key, condition, _ in each_cell(spec, source, catalog, set()):
        yield key, condition


def each_cell(
    spec: StudySpec, source: Source | None, catalog: Catalog | None, seen: set[int]
) -> Iterator[tuple[str, Condition, dict[str, Any]]]:
    """Yield distinct conditions with their keys and their values as JSON data; see `each_condition`.

    `seen` collects the keys, as integers, which take half the memory of texts.
    """
    for condition in checked_conditions(spec, source, catalog or spec.catalog()):
        data = condition.model_dump(mode="json")
        key = condition.key_of(data)
        if (number := int(key, 16)) not in seen:
            seen.add(number)
            yield key, condition, data


def checked_conditions(spec: StudySpec, source: Source | None, catalog: Catalog) -> Iterator[Condition]:
    """Yield the conditions of a study, one per combination of values."""
    source = source or Source(spec.name, {}, {})
    total = 0
    for path, grid in spec.grids:
        size = max(1, len(spec.models))
        for field, values in grid.items():
            size *= len(values)
            if total + size > MOST_CONDITIONS:
                raise source.error([((*path, field), f"that makes over {MOST_CONDITIONS:,} conditions")])
        total += size
    return (_condition(spec, cell, source, catalog) for cell in _chosen(spec, source))


def _chosen(spec: StudySpec, source: Source) -> Iterator[dict[str, Any]]:
    """Yield the values of the varied parameters of each condition."""
    each = (dict(zip(grid, values, strict=True)) for _, grid in spec.grids for values in product(*grid.values()))
    models = [{"model": model} for model in spec.models] or [{}]
    if spec.sample is None:
        yield from ({**model, **cell} for cell in each for model in models)
        return
    cells = list(each)
    sample = spec.sample
    pools: list[tuple[str, list[dict[str, Any]]]] = [
        (model.get("model", ""), [{**model, **cell} for cell in cells]) for model in models
    ]
    if sample.per == "study":
        pools = [("", [cell for _, pool in pools for cell in pool])]
    for _, pool in pools:
        if sample.size > len(pool):
            text = f"{sample.size} cells can't be drawn without replacement: there are {len(pool)}"
            raise source.error([(("sample", "size"), text)])
    drawn = [_draw(pool, sample, derive(sample.seed, "sample", name)) for name, pool in pools]
    # Cell by cell, so that a stopped study is balanced over models.
    for place in range(sample.size):
        yield from (cells[place] for cells in drawn)


def _draw(pool: Sequence[dict[str, Any]], sample: Sample, seed: int) -> list[dict[str, Any]]:
    """A weighted sample without replacement (Efraimidis and Spirakis 2006, algorithm A)."""
    draw = random.Random(seed)

    def rank(cell: Mapping[str, Any]) -> float:
        weight = 1.0
        for field, weights in sample.weights.items():
            # Mappings are unhashable, so they can't be weighted.
            value = cell.get(field)
            weight *= weights.get(value, 1.0) if isinstance(value, Hashable) else 1.0
        return float(draw.random() ** (1 / weight))

    ranks = [rank(cell) for cell in pool]
    return [pool[i] for i in sorted(range(len(pool)), key=lambda i: -ranks[i])[: sample.size]]


def _condition(spec: StudySpec, cell: Mapping[str, Any], source: Source, catalog: Catalog) -> Condition:
    kind = EXPERIMENTS.get(spec.kind).condition
    try:
        condition: Condition = kind.model_validate({**spec.fixed, **cell}, context=catalog)
        condition = with_bill(condition, catalog)
    except ValidationError as error:
        faults = [(_path_of(spec, cell, fault["loc"]), plain_fault(fault)) for fault in error.errors()]
        raise source.error(faults) from error
    try:
        condition.check()
    except UsageError as error:
        raise source.error([(_path_of_quoted(spec, cell, str(error)), str(error))]) from error
    return condition


def _path_of(spec: StudySpec, cell: Mapping[str, Any], loc: Sequence[str | int]) -> Path:
    """The path of the value of a condition's field."""
    field = str(loc[0]) if loc else ""
    for path, grid in spec.grids:
        if grid.keys() <= cell.keys() and cell.get(field) in grid.get(field, ()):
            return (*path, field, grid[field].index(cell[field]))
    if field == "model" and spec.models:
        return ("models", spec.models.index(str(cell["model"])))
    return ("fixed", *loc) if field in spec.fixed else ()


def _path_of_quoted(spec: StudySpec, cell: Mapping[str, Any], error: str) -> Path:
    """The path of the value that an error quotes, whole or up to its colon."""
    quoted = re.findall("'([^']+)'", error)
    for name, value in {**spec.fixed, **cell}.items():
        if any(str(value) == text or str(value).startswith(f"{text}:") for text in quoted):
            return _path_of(spec, cell, (name,))
    return ()


def _wrong_parameters(spec: StudySpec) -> Iterator[tuple[Path, str]]:
    try:
        fields = EXPERIMENTS.get(spec.kind).condition.model_fields
    except UsageError as error:
        yield ("kind",), str(error)
        return
    try:
        check_base_url(spec.connection.base_url or OPENAI_URL)
    except UsageError as error:
        yield ("connection", "base_url"), str(error)
    if fault := approval_fault(dict(spec)):
        yield ("approve_in_viewer",), fault
    varied = [((*part, name), name, values) for part, grid in spec.grids for name, values in grid.items()]
    varied += [(("models",), "model", list(spec.models))] if spec.models else []
    for where, name, values in (*((("fixed", name), name, [value]) for name, value in spec.fixed.items()), *varied):
        if name not in fields:
            yield where, str(unknown_name("parameter", name, fields))
        if not values:
            yield where, "the list is empty; give at least one value, or leave the parameter out"
        for place, value in enumerate(values):
            if value in values[:place]:
                yield (*where, place), f"the value {value!r} is repeated"
        if name == "model" and spec.models and where != ("models",):
            yield where, "the models are already under 'models'"
        elif name in spec.fixed and where[0] != "fixed":
            yield where, "this parameter is fixed already"
    required = [name for name, field in fields.items() if field.is_required() and name not in spec.fixed]
    for part, grid in spec.grids:
        for name in required:
            if name not in grid and not (name == "model" and spec.models):
                where = part if part[0] == "also" else ()
                yield where, f"the parameter '{name}' is missing: put it under 'fixed' or '{part[0]}'"
    yield from _wrong_weights(spec, grouped((name, value) for _, name, values in varied for value in values))


def _wrong_weights(spec: StudySpec, varied: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Path, str]]:
    for name, weights in (spec.sample.weights if spec.sample else {}).items():
        if name not in varied:
            yield ("sample", "weights", name), str(unknown_name("part of the grid", name, varied))
            continue
        for value in weights:
            if value not in varied[name]:
                allowed = ", ".join(map(str, varied[name]))
                why = f"there is no value {value!r} in the grid (but {allowed})"
                yield ("sample", "weights", name, str(value)), why


def _faults(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Path, str]]:
    for fault in error.errors():
        path = tuple(fault["loc"])
        if fault["type"] == "extra_forbidden":
            yield path, str(unknown_name("key", str(path[-1]), _fields_at(model, path[:-1])))
        else:
            yield path, plain_fault(fault)


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {"sample": Sample, "concurrency": Concurrency, "connection": Connection}
    part = parts.get(str(path[0]), model) if path else model
    return list(part.model_fields)
