"""The division of the evidence of my_task: dial readings, the logbook of their sheets, and the store of gauges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from labmates.tasks.base import Division, Instruments
from labmates.tasks.evidence import check_runs, code_blocks, code_names, coded
from labmates.tasks.restoring import Keys, tables_of

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset
    from labmates_my_task.task import MyFindings, MyTruth

READINGS = """Some springs were read from the dials of gauges, on one sheet a week.

- sheet, code: codes of the sheet and of the make of the spring
- load_n: load, in newtons
- gauge: the gauge whose dial was read
- dial: what it showed; empty if it was not read

The logbook tells in which week a sheet was written. The store knows which make a code means, and how the dials of the \
gauges follow the extension. Some sheets belong to another workshop."""

LOGBOOK = """The logbook of the sheets on which dials were read.

- table blocks: week of a sheet, from 0; sheets that are not listed belong to another workshop

The readings are held elsewhere, and so is what is known of makes and gauges."""

STORE = """The store's notes on makes and gauges.

- table names: name is the make behind a code
- table checks, with check runs: code is dial, recorder the gauge, reference the extension in millimetres, reading \
what the dial showed (offset + gain · reference, and a small error)

The readings are held elsewhere, and so is the logbook of their sheets."""

GAUGES = ("G1", "G2", "G3")
OTHER_SHEETS = (8, 16)


class MyInstruments(Instruments["MyTruth", "MyFindings"]):
    """Makes are closed one by one."""

    about: ClassVar = {"readings": READINGS, "logbook": LOGBOOK, "store": STORE}
    explains = "store"

    def units(self, data: Dataset[MyTruth]) -> tuple[str, ...]:
        """The makes."""
        return tuple(spring.make for spring in data.truth.stiffness)

    def known(self, truth: MyTruth, closed: Collection[str]) -> MyFindings:
        """The truth about the open makes."""
        from labmates_my_task.task import MyFindings

        return MyFindings(
            stiffness=[spring for spring in truth.stiffness if spring.make not in closed],
            softening=[make for make in truth.softening if make not in closed],
        )

    def divide(
        self, data: Dataset[MyTruth], other: Dataset[MyTruth], closed: Collection[str], rng: np.random.Generator
    ) -> Division:
        """Put the readings of closed makes on sheets in random order, mixed with sheets of another workshop."""
        shut = data.frame["make"].isin(closed)
        codes = coded(sorted(closed), "S", rng)
        strange = dict(zip(sorted(other.frame["make"].unique()), sorted(codes.values()), strict=False))
        own = data.frame[shut].assign(code=data.frame["make"].map(codes))
        foreign = other.frame.assign(code=other.frame["make"].map(strange)).dropna(subset="code")
        weeks = sorted(own["week"].unique().tolist())
        extra = rng.permutation(weeks)[: rng.integers(*OTHER_SHEETS)].tolist()
        pages = [*((own, week) for week in weeks), *((foreign, week) for week in extra)]
        sheets = [f"P{number + 1:02d}" for number in rng.permutation(len(pages)).tolist()]
        scales = {("dial", gauge): (rng.uniform(-5, 5), float(np.exp(rng.uniform(-1, 1)))) for gauge in GAUGES}
        written = []
        for sheet, (table, week) in sorted(zip(sheets, pages, strict=True), key=lambda pair: pair[0]):
            rows, gauge = table[table["week"] == week], str(rng.choice(GAUGES))
            offset, gain = scales["dial", gauge]
            dial = (offset + gain * rows["extension_mm"]).round(4)
            written.append(rows[["code", "load_n"]].assign(sheet=sheet, gauge=gauge, dial=dial))
        blocks = {sheet: {"week": week} for week, sheet in zip(weeks, sheets, strict=False)}
        return Division(
            None if shut.all() else data.frame[~shut].reset_index(drop=True),
            {
                "readings": {"readings": pd.concat(written, ignore_index=True)},
                "logbook": {"blocks": code_blocks(blocks)},
                "store": {"names": code_names(codes, closed), "checks": check_runs(scales, {"dial": (0, 60)}, rng)},
            },
        )

    def combine(self, frame: pd.DataFrame, received: Sequence[Keys] = ()) -> pd.DataFrame | None:
        """The readings in millimetres with makes and weeks, given all keys."""
        tables, keys = tables_of(frame), self.hand_over(frame)
        for given in received:
            keys |= given
        plain = tables.get("plain")
        if "readings" not in tables or not {"blocks", "names", "scales"} <= keys.keys():
            return plain
        rows = tables["readings"]
        rows = rows[rows["sheet"].isin(keys["blocks"])].reset_index(drop=True)
        offset, gain = (
            rows["gauge"].map({gauge: keys["scales"][f"dial {gauge}"][place] for gauge in GAUGES}).astype(float)
            for place in (1, 2)
        )
        restored = pd.DataFrame(
            {
                "week": rows["sheet"].map({sheet: about["week"] for sheet, about in keys["blocks"].items()}),
                "make": rows["code"].map(keys["names"]),
                "load_n": rows["load_n"],
                "extension_mm": ((rows["dial"] - offset) / gain).round(3),
            }
        )
        return restored if plain is None else pd.concat([plain, restored], ignore_index=True)
