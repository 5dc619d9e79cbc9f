"""Results as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from labmates.workflows.science.baselines.stated import Results, warmth

MOST_NAMES = 12
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def facts(results: Results) -> list[str]:
    """Sentences with numbers from `results`, the most informative first."""
    writers = (
        *(_shifts, _links, _moved, _warmth, _future, _events, _drift, _treatment, _markers, _subtypes),
        *(_drivers, _hotspots, _continuity, _validated),
        *(_counted, _quality, _compared, _checked, _dated),
    )
    return [sentence for tell in writers for sentence in tell(results)]


def lines_with_numbers(text: str, most: int) -> list[str]:
    """The first sentences and lines of a text with a number, without code, headings and list marks."""
    prose = FENCE.sub("", text)
    lines: list[str] = []
    for raw in re.split(r"\n|(?<=[a-z%).\d][.!?])\s+(?=[A-Z\d])", prose):
        line = raw.strip().lstrip("-*> ").strip().removeprefix("Tests: ")
        if (
            25 <= len(line) <= 260
            and re.search(r"\d", line)
            and not line.startswith(("#", "|", "RESULT", "Budget:", "==="))
        ):
            lines.append(line if line.endswith((".", "!", "?")) else f"{line}.")
    return list(dict.fromkeys(lines))[:most]


def printed_lines(text: str, most: int) -> list[str]:
    """Lines with numbers in the output of code, without lines for programs."""
    keep = [line.strip() for line in text.splitlines() if re.search(r"\d", line)]
    lines = [ln for ln in keep if not ln.startswith(("RESULT", "Budget:", "Traceback", "stopped:", "===", "[cut"))]
    return list(dict.fromkeys(lines))[:most]


def listed(names: list[str]) -> str:
    """Names as an enumeration, cut if too long."""
    shown = [str(name) for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"


def noun_of(results: Results) -> str:
    """Noun for the units of the data."""
    known = {"sensors": ("channels", "events"), "sites": ("sites", "hotspots", "drivers")}
    usual = next((noun for noun, keys in known.items() if any(results.get(key) for key in keys)), "series")
    return str(results.get("noun") or usual)


def _counted(results: Results) -> Iterator[str]:
    names = results.get("entities") or results.get("channels") or []
    count = len(names) or results.get("count")
    if count:
        yield f"There are {count} {noun_of(results)}{f': {listed(names)}' if names else ' in the data'}."
    if results.get("sites"):
        yield f"There are {results['sites']} distinct sites in the data."
    if "rows" in results:
        yield (
            f"The table has {results['rows']} rows and {results.get('columns', 'several')} columns; "
            f"{results.get('repeated', 0)} rows are repeated."
        )


def _quality(results: Results) -> Iterator[str]:
    if "slips" in results:
        yield (
            f"{results.get('gaps', 0)} values are missing, {results['slips']} decimal slips were set aside and "
            f"{results.get('converted', 0)} temperatures were converted from Fahrenheit."
        )
    if "swapped" in results:
        yield (
            f"East and north were exchanged in {results['swapped']} rows, {results.get('percent', 0)} batches were "
            f"converted from percent, and {results.get('below', 0)} grades lie below a detection limit."
        )
    if "dropout" in results:
        yield (
            f"{100 * results['gaps_share']:.1f} % of the marker values are missing, and so is the outcome for "
            f"{results['dropout'][0]} % of the treated patients and {results['dropout'][1]} % of the others."
        )
    if "batchy" in results or "other_unit" in results:
        yield (
            f"Levels differ between assay batches in {len(results.get('batchy', []))} markers "
            f"({listed(results.get('batchy', []))}); some batches give another unit for "
            f"{listed(results.get('other_unit', []))}."
        )
    if "codes" in results:
        yield (
            f"{results['codes']} readings are missing or error codes and {results.get('stuck', 0)} come from stuck "
            f"loggers; the unit changes in {listed(results.get('rescaled', []))}."
        )


def _shifts(results: Results) -> Iterator[str]:
    if results.get("breaks"):
        clock = results.get("clock") or "survey"
        begins = "A regime shift begins" if len(results["breaks"]) == 1 else "Regime shifts begin"
        yield f"{begins} at {clock} {listed(results['breaks'])}."
    elif "breaks" in results:
        yield "Regime shifts found: 0, since no time stands out from the noise."


def _moved(results: Results) -> Iterator[str]:
    if results.get("fallers") or results.get("risers"):
        yield (
            f"Across the shifts {len(results.get('fallers', []))} {noun_of(results)} became rarer by more than 25 % "
            f"({listed(results.get('fallers', []))}) and {len(results.get('risers', []))} more common "
            f"({listed(results.get('risers', []))})."
        )


def _links(results: Results) -> Iterator[str]:
    links = results.get("links") or []
    if not links:
        return
    strengths = {(a, b): v for a, b, v in links}
    both = [(a, b) for a, b in strengths if (b, a) in strengths]
    predation = [(a, b) for a, b in both if strengths[a, b] > 0 > strengths[b, a]]
    rivalry = [(a, b) for a, b in both if a < b and strengths[a, b] < 0 and strengths[b, a] < 0]
    gains = sum(v > 0 for v in strengths.values())
    yield (
        f"{len(links)} interactions between {noun_of(results)} are significant, {gains} positive and "
        f"{len(links) - gains} negative; of the pairs {len(predation)} look like predator and prey and {len(rivalry)} "
        "like competitors."
    )
    for a, b, v in links[:3]:
        yield f"{a} has a {'positive' if v > 0 else 'negative'} effect on {b} ({v:+.2f} per log unit)."


def _warmth(results: Results) -> Iterator[str]:
    trends = warmth(results)
    up, down = (results.get(f"warm_{way}", trends.get(way, [])) for way in ("up", "down"))
    if up or down:
        yield f"Warmer temperature speeds up the growth of {listed(up)} and slows down that of {listed(down)}."


def _future(results: Results) -> Iterator[str]:
    if results.get("future"):
        values = ", ".join(f"{value:g} for {name}" for name, value in list(results["future"].items())[:MOST_NAMES])
        yield f"The predicted mean abundance is {values}."


def _events(results: Results) -> Iterator[str]:
    kinds: dict[str, Any] = results.get("kinds") or {}
    if not kinds:
        return
    share = f"; {100 * results['share']:.1f} % of the samples are abnormal" if "share" in results else ""
    yield (
        f"{sum(kinds.values())} anomalies were found: {kinds.get('point', 0)} point anomalies (isolated spikes), "
        f"{kinds.get('contextual', 0)} contextual ones and {kinds.get('collective', 0)} collective ones{share}."
    )
    if results.get("worst"):
        yield f"Most anomalies involve sensor {results['worst']}."


def _dated(results: Results) -> Iterator[str]:
    for start, end, who, kind in (results.get("events") or [])[:4]:
        when = f"at sample {start}" if start == end else f"from sample {start} to sample {end}"
        yield f"A {kind} anomaly is dated {when} on {listed(who)}."


def _drift(results: Results) -> Iterator[str]:
    if results.get("drifting"):
        yield f"{len(results['drifting'])} sensors drift slowly over the whole time: {listed(results['drifting'])}."


def _treatment(results: Results) -> Iterator[str]:
    if "ate" in results:
        yield f"The average effect of the treatment is {results['ate']:.2f} points of the outcome."
    if "helped" in results:
        yield f"A benefit of the treatment can be expected for {100 * results['helped']:.1f} % of the patients."


def _markers(results: Results) -> Iterator[str]:
    for kind, does in (
        ("predictive", "the effect of the treatment depends on their level (interaction)"),
        ("prognostic", "they shift the outcome in both arms"),
    ):
        if kind in results:
            effects = listed([f"{name} ({value:+.2f} points per sd)" for name, value in results[kind]])
            yield f"{len(results[kind])} markers are {kind}, that is, {does}: {effects}."


def _subtypes(results: Results) -> Iterator[str]:
    count = len(results.get("subtypes", [])) or results.get("kinds_found")
    if count:
        yield f"The patients belong to {count} subtypes."
    for share, up, down, effect in results.get("subtypes", [])[:6]:
        yield (
            f"A subtype with {100 * share:.1f} % of the patients has high {listed(up)} and low {listed(down)}; the "
            f"treatment changes its outcome by {effect:+.2f} points."
        )


def _drivers(results: Results) -> Iterator[str]:
    drivers = results.get("drivers") or []
    if drivers:
        up, down = ([name for name, effect in drivers if effect * way > 0] for way in (1, -1))
        yield (
            f"{len(drivers)} covariates matter other things equal: the grade rises with {listed(up)} and falls with "
            f"{listed(down)}."
        )
    if results.get("rock"):
        yield f"With the same covariates the richest of the rocks (rank 1) is {results['rock']}."


def _hotspots(results: Results) -> Iterator[str]:
    spots = results.get("hotspots") or []
    if spots:
        yield f"{len(spots)} hot spots stand out from what surrounds them."
    for first in range(0, min(len(spots), 6), 2):
        places = [f"easting {x:.0f}, northing {y:.0f} (radius {r:.0f} m)" for x, y, r in spots[first : first + 2]]
        yield f"Hot spots lie at {' and at '.join(places)}."


def _continuity(results: Results) -> Iterator[str]:
    if "range" in results:
        yield f"The variogram of what covariates leave has a practical range of {results['range']:g} m."
    if "nugget" in results:
        yield f"The nugget is {100 * results['nugget']:.1f} % of the sill."
    if "azimuth" in results and "ratio" in results:
        yield (
            f"The direction of longest continuity is {results['azimuth']:g} degrees from north (anisotropy ratio "
            f"{results['ratio']:g})."
        )


def _validated(results: Results) -> Iterator[str]:
    r2 = results.get("r2") or {}
    if {"random", "block", "plain"} <= set(r2):
        yield (
            f"In cross-validation regression kriging reaches an R² of {r2['random']:.2f} in random folds but "
            f"{r2['block']:.2f} in left-out blocks, where covariates alone reach {r2['plain']:.2f}."
        )


def _compared(results: Results) -> Iterator[str]:
    errors = results.get("errors") or {}
    if errors:
        comparison = ", ".join(f"{value:.2f} with {name}" for name, value in errors.items())
        yield f"On a held-out year the mean relative error of the forecast is {comparison}."
    rows = results.get("comparison") or {}
    if rows:
        comparison = "; ".join(f"{name}: {', '.join(f'{v:g}' for v in values)}" for name, values in rows.items())
        yield f"Compared settings: {comparison}."


def _checked(results: Results) -> Iterator[str]:
    if results.get("checked"):
        yield f"Of {results['checked']} claims that were tested again, {results.get('held', 0)} hold."
