"""The sections of artifacts and papers, filled with results and other teams' work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from labmates.workflows.science.baselines.material import NO_ANALYSIS, TEST, Material
from labmates.workflows.science.baselines.stated import lines_with_numbers


def write_sections(sections: Iterable[tuple[str, str]], material: Material, most: int) -> str:
    """Sections with at most about `most` sentences each; one short sentence if 0."""
    return "\n\n".join(f"## {title}\n{_section(title, about, material, most)}" for title, about in sections)


def _section(title: str, about: str, material: Material, most: int) -> str:
    if material.step.analysis is None:
        return NO_ANALYSIS
    writer = next((write for begin, write in WRITERS.items() if title.lower().startswith(begin)), None)
    if writer is not None:
        return writer(material, most)
    sentences = material.facts()[: max(1, most)]
    return " ".join([f"This part covers {about or title.lower()}.", *sentences])


def _say(material: Material, most: int, *opening: str) -> str:
    """The opening sentences (only the first for a short text), then facts."""
    return " ".join([*opening[: 1 if most < 2 else None], *material.facts()[:most]])


def _first(most: int, *sentences: str) -> str:
    return " ".join(sentences[:most])


def _methods_of(material: Material) -> tuple[str, ...]:
    return material.step.analysis.methods if material.step.analysis else ()


def _lines(material: Material, most: int, pattern: str = "") -> str:
    lines = [line for line in material.printed if not pattern or re.search(pattern, line.lower())]
    return "".join(f"\n- {line}" for line in lines[:most])


def _questions(m: Material, most: int) -> list[str]:
    asked = [sentence for sentence in m.step.brief if sentence.endswith("?")][:most]
    return [f"The questions are: {' '.join(asked)}"] if asked else []


def _protocol(m: Material, most: int) -> str:
    giver = m.giver("model_architecture")
    source = f"the {giver} team's artifact" if giver else "the fitted models"
    claims = f"Claims were taken from {source} and tested anew on the cleaned data."
    return _first(
        max(1, most),
        claims if _claims_in(m) else "The main analysis was repeated, since no claim could be tested alone.",
        *_methods_of(m)[-2:],
    ).strip()


def _claims_in(material: Material) -> bool:
    """Whether claims were tested anew: the code says so in its output."""
    return any("claimed" in line for line in material.printed)


def _checks(m: Material, most: int) -> str:
    if not _claims_in(m):
        return "The same relations were computed anew:" + (_lines(m, most, r"p = ") or " none could be computed.")
    text = _say(m, most, "Each claim was tested once more.")
    return text + _lines(m, most, r"claimed|confirmed|same sign|rarer")


def _abstract(m: Material, most: int) -> str:
    teams = _listed([f"{'an' if team[0] in 'aeiou' else 'a'} {team}" for team in m.others])
    closing = (
        f"{teams[0].upper()}{teams[1:]} team worked one after the other; their artifacts are cited with each number."
        if teams
        else "One agent did all of the work; its artifacts are cited with each number."
    )
    return " ".join([*m.step.brief[:1], *m.facts()[: 1 + most // 2], closing])


def _sources(m: Material) -> tuple[str, ...]:
    if not m.others:
        return (
            "This paper brings together what was found in the data, in the models and in their evaluation.",
            "Every finding is given with its number and the artifact in which it stands.",
        )
    return (
        f"This paper brings together what {_listed([f'the {team} team' for team in m.others])} handed over.",
        "Every finding is given with its number and the team that it comes from.",
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _methods(m: Material, most: int) -> str:
    giver = m.giver("model_architecture")
    short = f"The {giver} team chose the methods." if giver else "The data decided on the methods."
    quoted = m.quote("model_architecture", most // 2) if most > 1 else short
    return " ".join([*_methods_of(m)[: 2 + most], quoted])


def _results(m: Material, most: int) -> str:
    estimated, checked = m.giver("model_architecture"), m.giver("evaluation_report")
    parts = [
        f"The findings, as the {estimated} team estimated and the {checked} team checked them:"
        if estimated and checked
        else "The findings, as they were estimated and checked:",
        *m.facts()[: 3 + most],
    ]
    texts = [m.artifacts.get(name, "") for name in ("model_architecture", "experiment_results")]
    tests = [line for text in texts for line in lines_with_numbers(text, 60) if TEST.search(line)]
    return " ".join(parts) + "".join(f"\n- {line}" for line in list(dict.fromkeys(tests))[:most])


WRITERS: Mapping[str, Callable[[Material, int], str]] = {
    "overview": lambda m, most: (
        _say(m, most, "One table was handed to the team.") + _lines(m, most // 2, r"time:|samples")
    ),
    "variables": lambda m, most: (
        "The columns, as they are in the raw table:"
        + (_lines(m, 3 * most, r"% missing") or " see the data dictionary.")
    ),
    "quality": lambda m, most: (
        _say(m, most, "Repeated rows were dropped first.", "Repairs were made on a copy; the raw table is as it was.")
        + _lines(m, most // 2, r"spelling|repair|stuck|convert|codes")
    ),
    "patterns": lambda m, most: (
        _say(m, most, "What the cleaned data show, before any model:")
        + _lines(m, most, r"correlation|drift|share of variance")
    ),
    "advice": lambda _, most: _first(
        max(1, most),
        "Work on the repaired data and make the same repairs.",
        "Model on a scale on which the noise is even, and allow for gaps.",
        "Keep a whole part of the data out of the fit, to test on.",
    ),
    "aim": lambda m, most: " ".join(["The model answers what the project asks.", *_questions(m, most // 2)]),
    "features": lambda m, most: _say(m, most, _methods_of(m)[0], "No feature uses the values that it is to explain."),
    "methods": _methods,
    "method": lambda m, most: " ".join(_methods_of(m)[1 : 2 + most]),
    "fit": lambda m, most: (
        _say(m, most + 3, "The fitted model says the following.")
        + _lines(m, most, r"t = |p = |->|shift|events|forecast|correlation|variogram|hot spot")
    ),
    "limits": lambda m, most: (
        _first(
            max(1, most),
            "Effects below the noise are missed, and thresholds decide what counts as found.",
            "Please test whether each stated finding holds in parts of the data and on data that were not fitted.",
        )
        + "".join(f"\n- {name} reported: {text}" for name, text in m.reported.items() if most > 4)
    ),
    "protocol": _protocol,
    "performance": lambda m, most: (
        _say(m, most, "Figures of the checks:") + (_lines(m, most, r"error|\d \| ") or _lines(m, most, r"p = "))
    ),
    "checks": _checks,
    "errors": lambda m, most: (
        "Where the models fail:"
        + (_lines(m, most, r"relative error|not confirmed|\d \| ") or " this was not looked into in this phase.")
    ),
    "verdict": lambda m, most: _say(m, most + 2, "The paper may state the following."),
    "abstract": _abstract,
    "introduction": lambda m, most: _first(2 + most, *m.step.brief[:1], *_questions(m, 1 + most // 2), *_sources(m)),
    "dataset": lambda m, most: (
        f"{m.quote('dataset_description', 1 + most)} The repairs that it lists were made before any analysis."
    ),
    "results": _results,
    "evaluation": lambda m, most: (
        m.quote("evaluation_report", 1 + most, tests=True)
        + (" The stated findings are what is left after these checks." if m.facts() else "")
    ),
    "conclusion": lambda m, most: _first(
        2 + most,
        "The questions of the project are answered as far as the data allow.",
        *m.facts()[: 1 + most // 3],
        "Weak effects may have been missed, and p-values rest on a model that holds only roughly.",
    ),
}
"""Writers of sections by the beginning of their title, tried in this order; other sections list facts."""
