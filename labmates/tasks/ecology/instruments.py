"""Instruments of the ecology task: the crews' booklets, the archive that dates them, and the field guide."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from labmates.tasks.base import Division, Instruments
from labmates.tasks.ecology.findings import EcologyFindings, EcologyTruth
from labmates.tasks.evidence import canonical, check_runs, code_blocks, code_names, coded

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset

PAGES: Final = 6
"""Surveys in a booklet."""
METHODS: Final = ("A", "B", "C")
OTHER_BOOKLETS, SPARES = (9, 20), (1, 4)
"""Ranges of the numbers of booklets of another river, and of codes for other tallies."""
GAIN: Final = (0.0, 1.8)
"""Range of the natural logarithm of a method's tallies per individual."""

READINGS = f"""Field crews kept tallies of some species in booklets of {PAGES} surveys, two weeks apart.

- booklet, page: code of the booklet and number of the survey in it, from 0
- site: name of the site
- method: A, B or C, the same for a whole booklet
- code: of what was tallied
- tally: number of signs (calls, tracks, catches); empty if nobody looked

The archive tells when a booklet was kept. The field guide tells which species a code means, and trials of the methods \
how many signs one individual leaves. Some booklets and codes belong to another river."""

ARCHIVE = """The archive of the booklets in which field crews tallied some species.

- table blocks: first is the survey number of a booklet's first page; booklets that are not listed belong to another \
river

The tallies are held elsewhere, and so is what is known of codes and methods."""

GUIDE = """The field guide to the tallies that crews kept of some species.

- table names: name is the species behind a code; codes that are not listed mean something else
- table checks, with trials of the methods: code is that of a species, recorder the method (A, B or C), reference the \
true number of individuals, reading the tally (gain · reference, and a small error)

The tallies are held elsewhere, and so is the archive that tells when a booklet was kept."""


class EcologyInstruments(Instruments[EcologyTruth, EcologyFindings]):
    """Species are closed one by one."""

    explains = "guide"
    about: ClassVar = {"readings": READINGS, "archive": ARCHIVE, "guide": GUIDE}

    def units(self, data: Dataset[EcologyTruth]) -> tuple[str, ...]:
        """The species."""
        return tuple(data.truth.species)

    def known(self, truth: EcologyTruth, closed: Collection[str]) -> EcologyFindings:
        """The truth about open species, and the shifts if an open species shows them."""

        def open_(names: Collection[str]) -> list[str]:
            return [name for name in names if name not in closed]

        shifting = open_([*truth.declining_species, *truth.increasing_species])
        return EcologyFindings(
            shift_surveys=truth.shift_surveys if shifting else None,
            declining_species=open_(truth.declining_species),
            increasing_species=open_(truth.increasing_species),
            interactions=[i for i in truth.interactions if not {i.source, i.target} & set(closed)],
            warmth_gains=open_(truth.warmth_gains),
            warmth_loses=open_(truth.warmth_loses),
            forecast=[forecast for forecast in truth.forecast if forecast.species not in closed],
        )

    def divide(
        self,
        data: Dataset[EcologyTruth],
        other: Dataset[EcologyTruth],
        closed: Collection[str],
        rng: np.random.Generator,
    ) -> Division:
        """Divide the surveys: closed species are in booklets in random order, mixed with those of another river."""
        everything = set(closed) == set(data.truth.species)
        species = canonical(data.frame["species"], data.truth.species)
        mine = species.isin(closed)
        own, foreign = _tallies(data.frame[mine], species[mine]), _tallies(other.frame, None)
        own["site"] = canonical(own["site"])
        sites = sorted(own["site"].unique())
        strange = sorted(canonical(foreign["site"]).unique())
        foreign["site"] = canonical(foreign["site"]).map(dict(zip(strange, sites, strict=False)))
        spare = sorted(foreign["species"].unique())[: int(rng.integers(*SPARES))]
        codes = coded([*sorted(closed), *(f"spare {name}" for name in spare)], "S", rng)
        names = dict(zip(sorted(foreign["species"].unique()), sorted(codes), strict=False))
        extra = foreign[foreign["species"].isin(spare)].assign(species="spare " + foreign["species"])
        own = pd.concat([own, extra], ignore_index=True)
        foreign = foreign.assign(species=foreign["species"].map(names)).dropna(subset="species")
        if not everything:
            own, foreign = (table.drop(columns=["temperature", "rainfall_mm"]) for table in (own, foreign))
        places = sorted(set((own["survey"] // PAGES).tolist()))
        books = [(own, place) for place in places]
        books += [(foreign, place) for place in rng.permutation(places)[: rng.integers(*OTHER_BOOKLETS)].tolist()]
        booklets = [f"B{number + 1:02d}" for number in rng.permutation(len(books)).tolist()]
        scales = {
            (code, method): (0.0, float(np.exp(rng.uniform(*GAIN)))) for code in codes.values() for method in METHODS
        }
        written = {}
        for (table, place), booklet in zip(books, booklets, strict=True):
            rows = table[table["survey"] // PAGES == place]
            written[booklet] = _booklet(rows, booklet, str(rng.choice(METHODS)), codes, scales)
        return Division(
            None if everything else data.frame[~mine].reset_index(drop=True),
            {
                "readings": {
                    "readings": pd.concat([written[booklet] for booklet in sorted(written)], ignore_index=True)
                },
                "archive": {
                    "blocks": code_blocks(
                        {code: {"first": place * PAGES} for place, code in zip(places, booklets, strict=False)}
                    )
                },
                "guide": {
                    "names": code_names(codes, closed),
                    "checks": check_runs(scales, dict.fromkeys(codes.values(), (5.0, 300.0)), rng),
                },
            },
        )


def _tallies(frame: pd.DataFrame, species: pd.Series | None) -> pd.DataFrame:
    table = frame[["survey", "site", "count", "temperature", "rainfall_mm"]].copy()
    table["species"] = canonical(frame["species"]) if species is None else species
    return table.drop_duplicates(["survey", "site", "species"])


def _booklet(
    rows: pd.DataFrame,
    booklet: str,
    method: str,
    codes: dict[str, str],
    scales: dict[tuple[str, str], tuple[float, float]],
) -> pd.DataFrame:
    code = rows["species"].replace(codes)
    gain = code.map({name: scales[name, method][1] for name in codes.values()})
    table = pd.DataFrame({"booklet": booklet, "page": rows["survey"] % PAGES, "site": rows["site"], "method": method})
    table = table.assign(code=code, tally=(rows["count"] * gain).round())
    table = table.join(rows[[column for column in ("temperature", "rainfall_mm") if column in rows]])
    return table.sort_values(["page", "site", "code"])
