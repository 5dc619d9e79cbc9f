"""What was found, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from labmates.models.scripted.stated import Results, warmth

MOST_NAMES = 12
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def facts(results: Results) -> list[str]:
    """Return the sentences that `results` support, the most telling first; each has numbers in it."""
    told = (_shifts, _links, _moved, _warmth, _future, _events, _drift, _counted, _quality, _compared, _checked, _dated)
    return [sentence for tell in told for sentence in tell(results)]


def lines_with_numbers(text: str, most: int) -> list[str]:
    """Return the first sentences and lines of a text that state a number, without code, headings and list marks."""
    prose = FENCE.sub("", text)
    found: list[str] = []
    for raw in re.split(r"\n|(?<=[a-z%).\d][.!?])\s+(?=[A-Z\d])", prose):
        line = raw.strip().lstrip("-*> ").strip().removeprefix("Tests: ")
        if (
            25 <= len(line) <= 260
            and re.search(r"\d", line)
            and not line.startswith(("#", "|", "RESULT", "Budget:", "==="))
        ):
            found.append(line if line.endswith((".", "!", "?")) else f"{line}.")
    return list(dict.fromkeys(found))[:most]


def printed_lines(text: str, most: int) -> list[str]:
    """Return what code printed, without the lines that are for programs."""
    keep = [line.strip() for line in text.splitlines() if re.search(r"\d", line)]
    lines = [ln for ln in keep if not ln.startswith(("RESULT", "Budget:", "Traceback", "stopped:", "===", "[cut"))]
    return list(dict.fromkeys(lines))[:most]


def listed(names: list[str]) -> str:
    """Return names as an enumeration, cut where it gets too long."""
    shown = [str(name) for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "none"


def noun_of(results: Results) -> str:
    """Return what the units of the data are called."""
    return str(results.get("noun") or ("sensors" if results.get("channels") or results.get("events") else "series"))


def _counted(results: Results) -> Iterator[str]:
    names = results.get("entities") or results.get("channels") or []
    count = len(names) or results.get("count")
    if count:
        yield f"There are {count} {noun_of(results)}{f': {listed(names)}' if names else ' in the data'}."
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
    found = warmth(results)
    up, down = (results.get(f"warm_{way}", found.get(way, [])) for way in ("up", "down"))
    if up or down:
        yield f"Warmer temperature speeds up the growth of {listed(up)} and slows down that of {listed(down)}."


def _future(results: Results) -> Iterator[str]:
    if results.get("future"):
        told = ", ".join(f"{value:g} for {name}" for name, value in list(results["future"].items())[:MOST_NAMES])
        yield f"The predicted mean abundance is {told}."


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


def _compared(results: Results) -> Iterator[str]:
    errors = results.get("errors") or {}
    if errors:
        told = ", ".join(f"{value:.2f} with {name}" for name, value in errors.items())
        yield f"On a held-out year the mean relative error of the forecast is {told}."
    rows = results.get("comparison") or {}
    if rows:
        told = "; ".join(f"{name}: {', '.join(f'{v:g}' for v in values)}" for name, values in rows.items())
        yield f"Compared settings: {told}."


def _checked(results: Results) -> Iterator[str]:
    if results.get("checked"):
        yield f"Of {results['checked']} claims that were tested again, {results.get('held', 0)} hold."
