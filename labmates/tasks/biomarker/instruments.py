"""Instruments of the biomarker task: case records in lots, the randomisation list, and the laboratory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd

from labmates.tasks.base import Division, Instruments
from labmates.tasks.biomarker.data import MARKERS
from labmates.tasks.biomarker.records import NOT_DONE
from labmates.tasks.evidence import check_runs, code_blocks, code_names, coded

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset
    from labmates.tasks.biomarker.findings import BiomarkerFindings, BiomarkerTruth

OTHER_LOTS: Final = (8, 17)
"""Range of the number of lots of another trial."""
OFFSET, GAIN = 25.0, (0.6, 1.6)
"""Largest offset of a lot's forms, in points, and range of their gain."""
POWER: Final = (0.6, 1.4)
"""Range of the absolute exponent in the power law from concentration to readout."""
SPAN: Final = (-60.0, 60.0)

READINGS = """Case records are kept in lots of patients: each lot holds patients of one site and one arm, in the order \
of their numbers.

- lot, number: code of the lot and number of the patient in it, from 1
- columns M01, M02 …: raw readout of a marker; < or > marks one beyond the detection limit
- improvement (if it is in this table): as noted on the forms of the lot, which have an offset and a gain of their own

The randomisation list tells site and arm of a lot. The laboratory knows the markers behind the codes, how a readout \
follows the concentration, and offset and gain of the forms. Some lots belong to another trial."""

LIST = """The randomisation list of the lots in which case records are kept.

- table blocks: site is the number of the site, as in the first part of a patient's number, and arm the treatment; \
lots that are not listed belong to another trial. Patients of a lot are numbered in the order of their numbers at the \
site.

The case records are held elsewhere, and so is what is known of markers and forms."""

LABORATORY = """The laboratory's notes on markers and forms whose case records are kept in lots.

- table names: name is the marker behind a code
- table checks, with check runs: code is that of a marker, or improvement for the forms; recorder is the lot of the \
forms; reference is the true value, reading the readout. law says how they go together: linear (reading = offset + \
gain · reference) or power (the same of the natural logarithms); there is a small error.

The case records are held elsewhere, and so is the list that tells who was treated."""


class BiomarkerInstruments(Instruments["BiomarkerTruth", "BiomarkerFindings"]):
    """Markers are closed one by one; the last also closes the arms and the outcome."""

    about: ClassVar = {"records": READINGS, "list": LIST, "laboratory": LABORATORY}
    explains = "laboratory"

    def units(self, data: Dataset[BiomarkerTruth]) -> tuple[str, ...]:
        """The markers; closing all of them closes the arms and the outcome too."""
        columns = data.frame.columns.tolist()
        return tuple(columns[columns.index("score_baseline") + 1 : columns.index("improvement")])

    def known(self, truth: BiomarkerTruth, closed: Collection[str]) -> BiomarkerFindings:
        """The truth about open markers, and all about the patients; subtypes need half of the markers."""
        from labmates.tasks.biomarker.findings import BiomarkerFindings, Subtype

        def open_(names: Collection[str]) -> list[str]:
            return [name for name in names if name not in closed]

        subtypes = [
            Subtype(share=s.share, high=open_(s.high), low=open_(s.low), treatment_effect=s.treatment_effect)
            for s in (truth.subtypes if len(closed) < MARKERS / 2 else [])
        ]
        return BiomarkerFindings(
            n_patients=truth.n_patients,
            average_treatment_effect=truth.average_treatment_effect,
            prognostic_markers=[effect for effect in truth.prognostic_markers if effect.marker not in closed],
            predictive_markers=[effect for effect in truth.predictive_markers if effect.marker not in closed],
            benefit_share=truth.benefit_share,
            n_subtypes=len(subtypes) if subtypes else None,
            subtypes=subtypes or None,
            batch_markers=open_(truth.batch_markers),
            other_unit_markers=open_(truth.other_unit_markers),
        )

    def divide(
        self,
        data: Dataset[BiomarkerTruth],
        other: Dataset[BiomarkerTruth],
        closed: Collection[str],
        rng: np.random.Generator,
    ) -> Division:
        """Divide the records: closed markers are in lots in random order, mixed with lots of another trial."""
        units, strange = self.units(data), self.units(other)
        markers = [marker for marker in units if marker in closed]
        everything = len(markers) == len(units)
        codes = coded(markers, "M", rng)
        power = {code: _power(rng) for code in codes.values()}
        beside = {strange[units.index(marker)]: code for marker, code in codes.items()}
        own, foreign = _by_lot(data.frame, codes, power, everything), _by_lot(other.frame, beside, power, everything)
        chosen = rng.permutation(len(foreign))[: rng.integers(*OTHER_LOTS)].tolist()
        places = list(own)
        lots = [*own.values(), *(list(foreign.values())[place] for place in chosen)]
        labels = [f"L{number + 1:02d}" for number in rng.permutation(len(lots)).tolist()]
        forms = {("improvement", label): (rng.uniform(-OFFSET, OFFSET), rng.uniform(*GAIN)) for label in labels}
        written = {
            label: _on_forms(lot.assign(lot=label), *forms["improvement", label])
            for label, lot in zip(labels, lots, strict=True)
        }
        records = pd.concat([written[label] for label in sorted(written)], ignore_index=True)
        spans = {codes[marker]: _span(data.frame[marker]) for marker in markers}
        checks = [check_runs({(code, "all"): scale for code, scale in power.items()}, spans, rng, "power")]
        if everything:
            checks.append(check_runs(forms, {"improvement": SPAN}, rng))
        blocks = {label: {"site": site, "arm": arm} for label, (site, arm) in zip(labels, places, strict=False)}
        return Division(
            None if everything else data.frame.drop(columns=markers),
            {
                "records": {"readings": records[["lot", "number", *records.columns.drop(["lot", "number"])]]},
                "list": {"blocks": code_blocks(blocks)},
                "laboratory": {"names": code_names(codes, markers), "checks": pd.concat(checks)},
            },
        )


def _by_lot(
    frame: pd.DataFrame, codes: Mapping[str, str], power: Mapping[str, tuple[float, float]], everything: bool
) -> dict[Any, pd.DataFrame]:
    """The patients of each site and arm, once each, without identifying columns."""
    once = frame.drop_duplicates("patient").sort_values("patient", kind="stable")
    site, arm = once["patient"].str[:2].astype(int), once["arm"].str.strip().str.lower()
    read = {code: _readouts(once[name], *power[code]) for name, code in sorted(codes.items(), key=lambda pair: pair[1])}
    kept = once.drop(columns=[*codes, "patient", "site", "enrolled", "arm"]) if everything else once[[]]
    lots = kept.assign(**read).groupby([site, arm])
    return {key: rows.assign(number=range(1, len(rows) + 1)) for key, rows in lots}


def _power(rng: np.random.Generator) -> tuple[float, float]:
    return float(rng.uniform(-1, 5)), float(rng.uniform(*POWER) * rng.choice([-1.0, 1.0]))


def _span(column: pd.Series) -> tuple[float, float]:
    values = pd.to_numeric(column, errors="coerce")
    low, high = values[values > 0].quantile([0.05, 0.95])
    return float(low), float(high)


def _on_forms(lot: pd.DataFrame, offset: float, gain: float) -> pd.DataFrame:
    """A lot's records with the improvement, if included, in the points of its forms, empty for those who left."""
    if "improvement" not in lot:
        return lot
    points = lot["improvement"].mask(lot["improvement"] == NOT_DONE)
    return lot.assign(improvement=(offset + gain * points).round(2))


def _readouts(column: pd.Series, offset: float, exponent: float) -> pd.Series:
    text = column.astype(str).str.strip()
    values = pd.to_numeric(text.str.lstrip("<"), errors="coerce").astype(float)
    amount = values.where(values > 0)
    read = (amount**exponent * np.exp(offset)).map("{:.6g}".format, na_action="ignore")
    marked: pd.Series = read.mask(text.str.startswith("<"), ("<" if exponent > 0 else ">") + read.astype(str))
    return marked
