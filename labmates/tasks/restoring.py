"""Solver of divided evidence: what the holder of one part hands over, and how a receiver restores the whole table.

It needs numpy and pandas alone, so that scripted agents can send this file to a sandbox as it is. A part is one table
whose column ``table`` names the tables stacked in it (see ``tasks.evidence``).

The keys that are handed over are a JSON object of some tens of numbers:

- ``names``: the name behind each code of a sensor, species, marker, covariate or rock;
- ``blocks``: what each tape, booklet, lot or map sheet is; those not listed belong to another campaign;
- ``scales``: offset and gain of each instrument, fitted to its check runs, and the law that they follow;
- ``baselines``: enlargement and rotation of each map sheet, as a complex number.

Where keys are missing, the table is restored as well as can be without them: codes stand for names, blocks follow each
other in the order of their codes, and readings are standardised for each instrument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Keys = dict[str, Any]
"""What one holder hands over to the others, as a JSON object."""
Tables = Mapping[str, pd.DataFrame]
Scales = Mapping[str, Sequence[Any]]

DIGITS = 5
"""Significant digits of the numbers that are handed over."""


def tables_of(df: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of one part by name, each without the columns of the others."""
    if "table" not in df:
        return {"plain": df}
    parts = {str(name): part.drop(columns="table") for name, part in df.groupby("table", sort=False)}
    return {str(name): part.dropna(axis=1, how="all").reset_index(drop=True) for name, part in parts.items()}


def hand_over(df: pd.DataFrame) -> Keys:
    """The keys that the holder of a part can give to the others; empty if it holds readings alone."""
    tables, keys = tables_of(df), Keys()
    if "names" in tables:
        keys["names"] = dict(zip(tables["names"]["code"], tables["names"]["name"], strict=True))
    if "blocks" in tables:
        keys["blocks"] = tables["blocks"].set_index("code").to_dict("index")
    if "checks" in tables:
        runs = tables["checks"].groupby(["code", "recorder", "law"])
        keys["scales"] = {f"{code} {recorder}": [law, *_line(run, str(law))] for (code, recorder, law), run in runs}
    if "baselines" in tables:
        keys["baselines"] = {code: _turn(lines) for code, lines in tables["baselines"].groupby("code")}
    return keys


def restored(df: pd.DataFrame, received: Sequence[Keys] = ()) -> pd.DataFrame | None:
    """The whole table as far as a part's readings and the keys allow; None if the part holds no readings.

    Parameters
    ----------
    df
        The part of the agent who restores.
    received
        Keys that others handed over.
    """
    tables, keys = tables_of(df), hand_over(df)
    for others in received:
        keys.update(others)
    readings, plain = tables.get("readings"), tables.get("plain")
    if readings is None or (plain is not None and not keys):
        return plain
    restore = next(RESTORE[column] for column in RESTORE if column in readings)
    return restore(readings, plain, keys, tables)


def _line(run: pd.DataFrame, law: str) -> list[float]:
    reference, reading = run["reference"].to_numpy(float), run["reading"].to_numpy(float)
    if law == "power":
        reference, reading = np.log(reference), np.log(reading)
    gain, offset = np.polyfit(reference, reading, 1)
    return [float(f"{value:.{DIGITS}g}") for value in (offset, gain)]


def _turn(lines: pd.DataFrame) -> list[float]:
    true, drawn = (lines[a].to_numpy(float) + 1j * lines[b].to_numpy(float) for a, b in (("east", "north"), ("u", "v")))
    factor = (drawn * true.conj()).sum() / (abs(true) ** 2).sum()
    return [float(f"{value:.{DIGITS}g}") for value in (factor.real, factor.imag)]


def _unscaled(values: pd.Series, code: str, recorder: str, scales: Scales) -> pd.Series:
    """Readings in true units for one instrument; standardised if its scale is unknown."""
    scale = scales.get(f"{code} {recorder}")
    if scale is None:
        spread = 1.4826 * (values - values.median()).abs().median()
        return (values - values.median()) / (spread or 1.0)
    law, offset, gain = scale
    true = np.exp((np.log(values) - offset) / gain) if law == "power" else (values - offset) / gain
    return pd.Series(true)


def _by_recorder(
    readings: pd.DataFrame, column: str, recorder: pd.Series, keys: Keys, marks: Sequence[float] = ()
) -> pd.Series:
    values = pd.to_numeric(readings[column]).astype(float)
    kept = values.isin(marks)
    parts = [
        _unscaled(group.mask(kept), column, str(name), keys.get("scales", {}))
        for name, group in values.groupby(recorder)
    ]
    return pd.Series(pd.concat(parts).reindex(values.index).where(~kept, values))


def _blocks(readings: pd.DataFrame, column: str, keys: Keys, length: int = 0) -> dict[str, dict[str, Any]]:
    """The blocks that belong to the campaign; without a register all of them, one after the other."""
    codes = sorted(readings[column].unique())
    listed: dict[str, dict[str, Any]] = keys.get("blocks", {})
    return listed or {code: {"first": place * length} for place, code in enumerate(codes)}


def _named(table: pd.DataFrame, columns: Collection[str], keys: Keys) -> pd.DataFrame:
    """The table with names for codes; a register lists the codes that belong to the campaign."""
    names = keys.get("names")
    return table if not names else table.drop(columns=[c for c in columns if c not in names]).rename(columns=names)


def _sensors(readings: pd.DataFrame, plain: pd.DataFrame | None, keys: Keys, _: Tables) -> pd.DataFrame:
    length = int(readings["step"].max()) + 1
    blocks = _blocks(readings, "tape", keys, length)
    readings = readings[readings["tape"].isin(blocks)].reset_index(drop=True)
    channels = [c for c in map(str, readings) if c not in ("tape", "step", "recorder")]
    values = {c: _by_recorder(readings, c, readings["recorder"], keys, (-999.0,)) for c in channels}
    first = readings["tape"].map({code: block["first"] for code, block in blocks.items()})
    frame = pd.DataFrame(
        {"sample": (first + readings["step"]).astype(int), **{c: v.round(4) for c, v in values.items()}}
    )
    frame = _named(frame, channels, keys).drop_duplicates("sample").sort_values("sample")
    return frame if plain is None else plain.merge(frame, on="sample", how="left")


def _panel(readings: pd.DataFrame, plain: pd.DataFrame | None, keys: Keys, _: Tables) -> pd.DataFrame:
    blocks, names = _blocks(readings, "booklet", keys, int(readings["page"].max()) + 1), keys.get("names")
    readings = readings[readings["booklet"].isin(blocks)]
    if names:
        readings = readings[readings["code"].isin(names)]
    readings = readings.reset_index(drop=True)
    first = readings["booklet"].map({code: block["first"] for code, block in blocks.items()})
    tallies = readings.rename(columns={"code": "species"}).drop(columns=["booklet", "page", "tally", "method"])
    tallies.insert(0, "survey", (first + readings["page"]).astype(int))
    tallies["count"] = _tallies(readings, keys.get("scales")).round(2)
    if names:
        tallies["species"] = tallies["species"].map(names)
    tallies = tallies.sort_values(["survey", "site", "species"], kind="stable").reset_index(drop=True)
    return tallies if plain is None else pd.concat([plain, tallies], ignore_index=True)


def _tallies(readings: pd.DataFrame, scales: Scales | None) -> pd.Series:
    """Counts in individuals; without scales each method is brought to the same median for each code."""
    groups = readings.groupby(["code", "method"])["tally"]
    if not scales:
        return readings["tally"] / groups.transform("median").clip(lower=1) * 50
    used = readings["code"] + " " + readings["method"]
    return readings["tally"] / used.map({name: scale[2] for name, scale in scales.items()})


def _trial(readings: pd.DataFrame, plain: pd.DataFrame | None, keys: Keys, _: Tables) -> pd.DataFrame:
    blocks = keys.get("blocks") or {code: {"site": code[1:], "arm": ""} for code in readings["lot"].unique()}
    readings = readings[readings["lot"].isin(blocks)].reset_index(drop=True)
    markers = [c for c in map(str, readings) if c[0] == "M" and c[1:].isdigit()]
    restored = readings.assign(**{c: _levels(readings[c], c, keys.get("scales", {})) for c in markers})
    for column in ("site", "arm"):
        restored[column] = readings["lot"].map({code: block[column] for code, block in blocks.items()})
    if "improvement" in restored:
        restored["improvement"] = _by_recorder(readings, "improvement", readings["lot"], keys).round(1)
        number = readings["number"].astype(int).map("{:04d}".format)
        restored.insert(0, "patient", restored["site"].astype(str).str.zfill(2) + "-" + readings["lot"] + number)
        return _named(restored.drop(columns=["lot", "number"]), markers, keys)
    if plain is None or not keys.get("blocks"):
        return restored if plain is None else plain
    restored["site"] = restored["site"].astype(int)
    own = plain.drop_duplicates("patient").reset_index(drop=True)
    own["_site"], own["_arm"] = own["patient"].str[:2].astype(int), own["arm"].str.strip().str.lower()
    own["_number"] = own.groupby(["_site", "_arm"]).cumcount() + 1
    restored = _named(restored, markers, keys).drop(columns="lot")
    restored = restored.rename(columns={"site": "_site", "arm": "_arm", "number": "_number"})
    both = own.merge(restored, on=["_site", "_arm", "_number"], how="left")
    return both.drop(columns=["_site", "_arm", "_number"])


def _levels(column: pd.Series, code: str, scales: Scales) -> pd.Series:
    """Concentrations of one marker; a reading beyond the detection limit keeps its mark."""
    if f"{code} all" not in scales:
        return column
    text = column.astype(str).str.strip()
    readouts = pd.to_numeric(text.str.lstrip("<>"), errors="coerce").astype(float)
    values = _unscaled(readouts, code, "all", scales).map("{:.5g}".format, na_action="ignore")
    limited = text.str.contains("^[<>]")
    return values.mask(limited, "<" + values.astype(str)) if limited.any() else pd.to_numeric(values)


def _survey(readings: pd.DataFrame, plain: pd.DataFrame | None, keys: Keys, tables: Tables) -> pd.DataFrame:
    sheets = keys.get("blocks") or {code: {"easting": 0.0, "northing": 0.0} for code in readings["sheet"].unique()}
    readings = readings[readings["sheet"].isin(sheets)].reset_index(drop=True)
    turns = {code: complex(*turn) for code, turn in keys.get("baselines", {}).items()}
    factor = np.array([turns.get(sheet, 1.0) for sheet in readings["sheet"]])
    place = (readings["u"].to_numpy(float) + 1j * readings["v"].to_numpy(float)) / factor
    for column, offset in (("easting", np.real(place)), ("northing", np.imag(place))):
        corner = readings["sheet"].map({code: sheet[column] for code, sheet in sheets.items()})
        readings[f"{column}_m"] = (corner + offset).round().astype(int)
    restored = readings.drop(columns=["sheet", "u", "v"])
    if plain is not None:
        profiles = tables.get("profiles")
        own = plain if profiles is None else plain.merge(profiles, on="sample_id", how="left")
        # Samples of the sheets have neither number nor date.
        restored = pd.concat([own.drop(columns=["sample_id", "sampled_on"]), restored], ignore_index=True)
    codes = [c for c in map(str, restored) if c[0] == "V" and c[1:].isdigit()]
    for code in codes:
        restored[code] = _by_recorder(restored, code, pd.Series("all", restored.index), keys, (-9999.0,)).round(4)
    if keys.get("names"):
        restored["rock"] = restored["rock"].replace(keys["names"])
    return _named(restored, codes, keys)


RESTORE = {"tape": _sensors, "booklet": _panel, "lot": _trial, "sheet": _survey}
"""The way to restore a table by the column that names its blocks."""
