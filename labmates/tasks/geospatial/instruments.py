"""Instruments of the geospatial task: field sheets, the map room, and the instrument store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from labmates.tasks.base import Division, Instruments
from labmates.tasks.evidence import canonical, check_runs, code_blocks, code_names, coded
from labmates.tasks.geospatial.findings import GeospatialFindings, GeospatialTruth
from labmates.tasks.geospatial.soil import NO_DATA

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset

SIDE: Final = 2_000.0
"""Side of a map sheet, in metres."""
OTHER_SHEETS: Final = (7, 15)
"""Range of the number of sheets of another survey area."""
SCALE: Final = (0.6, 1.6)
"""Range of a sheet's enlargement."""
HALF: Final = 12
"""With this many closed sheets, about half, the open ones are not representative of the whole area."""
BASELINES: Final = 30
"""Lines between survey marks per sheet, measured on the ground and on the sheet."""
IN_SHEET: Final = ("sample_id", "sampled_on", "easting_m", "northing_m")
"""Columns that would reveal the place of a sample on a closed sheet."""

READINGS = f"""Crews plotted some samples on field sheets, each of a square of {SIDE:.0f} m, and read some covariates \
in raw units.

- table readings: samples of the sheets; sheet is the code of the sheet, u and v are the place on it, from its \
south-west corner, in units and in a direction of the sheet's own; rock is a code of the legend
- table profiles (if there is one): raw covariates of the samples in the table plain, by sample_id
- columns V01, V02 …: raw units of a covariate; {NO_DATA:.0f} has no value

The map room knows where the sheets lie, and the legend of rocks. The instrument store knows the covariates behind the \
codes, their offsets and gains, and how the sheets were drawn. Some sheets belong to another area."""

MAP_ROOM = """The map room's notes on the sheets on which crews plotted some samples.

- table blocks: easting and northing of the south-west corner of a sheet, in metres; sheets that are not listed belong \
to another area

The field sheets are held elsewhere, and so is what is known of covariates, rocks and the drawing of the sheets."""

STORE = """The instrument store's notes on field sheets, rocks and covariates.

- table names: name is the rock or covariate behind a code
- table checks, with check runs: code is that of a covariate, reference its true value, reading the raw value (offset \
+ gain · reference, and a small error); a gain may be negative
- table baselines: lines between survey marks; east and north are their true components in metres, u and v those on \
the sheet: sheets are turned, and enlarged or reduced

The field sheets are held elsewhere, and so is the register that tells where they lie."""


class GeospatialInstruments(Instruments[GeospatialTruth, GeospatialFindings]):
    """Map sheets and covariates are closed one by one."""

    about: ClassVar = {"sheets": READINGS, "map room": MAP_ROOM, "store": STORE}
    explains = "store"

    def units(self, data: Dataset[GeospatialTruth]) -> tuple[str, ...]:
        """The sheets with samples, and the covariates."""
        return (*sorted(_placed(data.frame)["sheet"].unique()), *_covariates(data.frame))

    def known(self, truth: GeospatialTruth, closed: Collection[str]) -> GeospatialFindings:
        """The truth about open sheets and covariates; the variogram needs half of the sheets."""
        shut = sum(unit.startswith("sheet") for unit in closed)
        fields = ("range_m", "anisotropy_azimuth", "anisotropy_ratio", "nugget_share")
        numbers = {name: getattr(truth, name) for name in fields} if shut < HALF else {}
        return GeospatialFindings(
            covariates=[driver for driver in truth.covariates if driver.name not in closed],
            hot_spots=[spot for spot in truth.hot_spots if _sheet(spot.x, spot.y) not in closed],
            richest_rock=truth.richest_rock if shut < HALF else None,
            n_sites=None if shut else truth.n_sites,
            **numbers,
        )

    def divide(
        self,
        data: Dataset[GeospatialTruth],
        other: Dataset[GeospatialTruth],
        closed: Collection[str],
        rng: np.random.Generator,
    ) -> Division:
        """Divide the samples: closed sheets use local places, mixed with sheets of another area."""
        own, foreign = _placed(data.frame), _placed(other.frame)
        covariates = [name for name in _covariates(own) if name in closed]
        codes, strange = coded(covariates, "V", rng), _covariates(foreign)
        foreign = foreign.drop(columns=strange).assign(
            **{name: foreign[strange[place % len(strange)]] for place, name in enumerate(_covariates(own))}
        )
        legend = coded(sorted({*own["rock"], *foreign["rock"]}), "R", rng)
        scales = {(code, "all"): _scale(own[name], rng) for name, code in codes.items()}
        sheets = sorted(unit for unit in closed if unit in set(own["sheet"]))
        mine = own["sheet"].isin(sheets)
        raw, strange_raw = _raw(own, codes, scales), _raw(foreign, codes, scales)
        pages = [(raw, sheet) for sheet in sheets]
        extra = rng.permutation(sorted(foreign["sheet"].unique()))[: rng.integers(*OTHER_SHEETS) if sheets else 0]
        pages += [(strange_raw, sheet) for sheet in extra.tolist()]
        labels = [f"F{number + 1:02d}" for number in rng.permutation(len(pages)).tolist()]
        turns = {label: complex(rng.uniform(*SCALE) * np.exp(2j * np.pi * rng.random())) for label in labels}
        drawn = {
            label: _drawn(table[table["sheet"] == sheet], label, turns[label], legend)
            for label, (table, sheet) in zip(labels, pages, strict=True)
        }
        open_ = data.frame[~mine.to_numpy()].reset_index(drop=True)
        spans = {codes[name]: _span(own[name]) for name in covariates}
        records = {"readings": pd.concat([drawn[label] for label in sorted(drawn)], ignore_index=True)} if drawn else {}
        if len(open_) and covariates:
            profiles = _raw(open_[["sample_id", *covariates]].drop_duplicates("sample_id"), codes, scales)
            records["profiles"] = profiles[["sample_id", *sorted(codes.values())]]
        corners = {label: _corner(sheet) for label, sheet in zip(labels, sheets, strict=False)}
        rocks = {*own["rock"][mine]}
        store = {"names": code_names({**legend, **codes}, {*rocks, *covariates})} if rocks or covariates else {}
        if covariates:
            store["checks"] = check_runs(scales, spans, rng)
        if drawn:
            store["baselines"] = _baselines(turns, rng)
        room = {"blocks": code_blocks(corners)} if corners else {}
        plain = open_.drop(columns=covariates) if len(open_) else None
        return Division(plain, {"sheets": records, "map room": room, "store": store})


def _sheet(easting: float, northing: float) -> str:
    """The sheet of a place, named by the kilometres of its south-west corner."""
    east, north = (int(SIDE * (metres // SIDE) / 1000) for metres in (easting, northing))
    return f"sheet {east} {north}"


def _corner(sheet: str) -> dict[str, float]:
    east, north = (1000 * int(word) for word in sheet.split()[1:])
    return {"easting": east, "northing": north}


def _placed(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples with coordinates in order, one spelling of rocks, and the sheet of each."""
    table = frame.copy()
    # Northings exceed eastings everywhere in the grid.
    low, high = table[["easting_m", "northing_m"]].min(axis=1), table[["easting_m", "northing_m"]].max(axis=1)
    sheets = [_sheet(east, north) for east, north in zip(low, high, strict=True)]
    return table.assign(easting_m=low, northing_m=high, rock=canonical(table["rock"]), sheet=sheets)


def _covariates(frame: pd.DataFrame) -> list[str]:
    columns = frame.columns.tolist()
    return [column for column in columns[columns.index("grade_ppm") + 1 :] if column != "sheet"]


def _span(values: pd.Series) -> tuple[float, float]:
    low, high = values[values != NO_DATA].quantile([0.02, 0.98])
    return float(low), float(high)


def _scale(values: pd.Series, rng: np.random.Generator) -> tuple[float, float]:
    """Offset and gain, either sign, of raw values near zero."""
    low, high = _span(values)
    gain = float(rng.choice([-1.0, 1.0]) * np.exp(rng.uniform(-0.5, 0.5)) * 100 / (high - low))
    return float(-gain * (low + high) / 2 + rng.uniform(-50, 50)), gain


def _raw(
    table: pd.DataFrame, codes: Mapping[str, str], scales: Mapping[tuple[str, str], tuple[float, float]]
) -> pd.DataFrame:
    raw = {}
    for name, code in sorted(codes.items(), key=lambda pair: pair[1]):
        offset, gain = scales[code, "all"]
        raw[code] = table[name].where(table[name] == NO_DATA, (offset + gain * table[name]).round(3))
    return table.drop(columns=list(codes)).assign(**raw)


def _drawn(rows: pd.DataFrame, label: str, turn: complex, legend: Mapping[str, str]) -> pd.DataFrame:
    corner = _corner(rows["sheet"].iloc[0])
    east, north = rows["easting_m"].to_numpy(float), rows["northing_m"].to_numpy(float)
    place = (east - corner["easting"] + 1j * (north - corner["northing"])) * turn
    kept = rows.drop(columns=[*IN_SHEET, "sheet"]).assign(rock=rows["rock"].map(legend))
    kept.insert(0, "sheet", label)
    kept.insert(1, "u", np.round(place.real, 2))
    kept.insert(2, "v", np.round(place.imag, 2))
    return kept


def _baselines(turns: Mapping[str, complex], rng: np.random.Generator) -> pd.DataFrame:
    lines = []
    for label, turn in sorted(turns.items()):
        true = SIDE * (rng.uniform(-1, 1, BASELINES) + 1j * rng.uniform(-1, 1, BASELINES))
        error = rng.standard_normal(BASELINES) + 1j * rng.standard_normal(BASELINES)
        on_sheet = true * turn + error
        columns = {"east": true.real, "north": true.imag, "u": on_sheet.real, "v": on_sheet.imag}
        lines.append(pd.DataFrame({"code": label, **{name: values.round(1) for name, values in columns.items()}}))
    return pd.concat(lines, ignore_index=True)
