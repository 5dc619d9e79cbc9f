"""The judge without a model: completeness, heuristic quality and accuracy by rules on the words of a report.

Source: cooperative-profiles paper, section 4.1.2 (the metrics and their criteria); the rules are our own design.
Heuristic quality and accuracy by rules measure whether a report covers the right topics, not whether it is right: use
the judge ``verified`` for that. Accuracy by rules looks for words common to all papers on the task: a correct report on
other data passes more than half of the checks. Fenced blocks are ignored. Prompt injections can't influence rules, so
the full text counts; if passages are flagged, the details add the score without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from labmates.judges.base import Report, Score
from labmates.judges.prose import placed, read_prose, statements, words
from labmates.judges.sections import LEAST_WORDS as LEAST_SECTION
from labmates.judges.sections import find_sections

QUALITY: Final = "heuristic_quality"
"""The metric by rules on words; models' ratings are called quality."""
METRICS: Final = ("completeness", QUALITY, "accuracy")
LEAST_WORDS: Final = 5
"""Shorter statements don't count, so that bare lists of keywords or numbers earn no quality."""
MOST_PER_STATEMENT: Final = 2
"""Most new items of one kind that count in one statement."""


@dataclass(frozen=True)
class Aspect:
    """One part of quality: patterns by item, and the number of distinct items for full credit."""

    patterns: Mapping[str, str]
    enough: int

    def found_in(self, text: str) -> list[str]:
        """The items in a text, in order of the patterns."""
        return [item for item, pattern in self._compiled.items() if pattern.search(text)]

    @cached_property
    def _compiled(self) -> Mapping[str, re.Pattern[str]]:
        return {item: re.compile(pattern, re.IGNORECASE) for item, pattern in self.patterns.items()}


NUMBERS_ENOUGH: Final = 10
_NUMBER: Final = re.compile(r"(?<![\w.])[-−+]?\d+(?:\.\d+(?:e[-+]?\d+)?|\s?[%±]|e[-+]?\d+)", re.IGNORECASE)

METHODS: Final = Aspect(
    {
        "regression": r"regress(?:ion|ed)|least squares|\b(?:ols|lasso|ridge)\b",
        "mixed or additive model": r"mixed[- ]effects?|mixed models?|\bgams?\b|generali[sz]ed (?:linear|additive)",
        "time series model": r"arima|autoregress|\bvar\(|state[- ]space|kalman|exponential smoothing",
        "population model": r"lotka|ricker|gompertz|logistic growth",
        "tree ensemble": r"random forests?|gradient boost|xgboost|lightgbm|decision trees?",
        "clustering": r"k-?means|clustering|dbscan|gaussian mixtures?|hierarchical cluster",
        "dimension reduction": r"\bpca\b|principal components?|umap|t-sne|factor analysis",
        "change-point analysis": r"change[- ]?points?|cusum|pelt\b|binary segmentation|structural breaks?",
        "anomaly detector": r"isolation forests?|one-class|local outlier factor|autoencoder|z-scores?|median absolute",
        "decomposition": r"\bstl\b|seasonal decomposition|detrend|fourier|harmonics?|wavelet|deseasonali[sz]",
        "smoothing": r"rolling (?:mean|median|window|statistics?)|moving average|lowess|loess|splines?",
        "correlation analysis": r"correlations?\b|cross-correlat|mutual information",
        "spatial model": r"kriging|variogram|gaussian process|spatial (?:lag|error|regression)|moran",
        "classifier": r"support vector|\bsvm\b|logistic regression|neural networks?|nearest neighbou?rs?",
        "survival analysis": r"\bcox\b|kaplan|survival analysis",
        "imputation": r"imput(?:ed?|ation|ing)|interpolat",
        "validation": r"cross[- ]validat|h[oe]ld[- ]?out|train[- /]test|out[- ]of[- ]sample|back-?test|\bunseen\b"
        r"|left out|(?:first|other|second) half",
        "resampling": r"bootstrap|jackknife|monte carlo|simulat(?:ed|ions?)",
        "causality analysis": r"granger|transfer entropy|causal",
        "robust cleaning": r"winsor|robust|biweight|huber|de-?duplicat|outlier removal|unit conversion"
        r"|normali[sz]ation|standardi[sz]",
    },
    enough=5,
)
TESTS: Final = Aspect(
    {
        "p-value": r"\bp\s?[<=>≤]|p-values?|\bp\s(?:of\s)?0?\.\d",
        "confidence interval": r"(?:confidence|credible) intervals?|\b9[059]\s?%\s(?:[\w-]+\s){0,2}intervals?"
        r"|\b9[059]\s?%\s?ci\b|\bci\s?[\[(:]|\b9[059]\s?%[\s:]{1,2}(?:\w+\s)?[-−]?\d[\d.,]*\s(?:to|and|–)\s",
        "t-test": r"\bt-?tests?|student's t|welch",
        "rank test": r"mann[-– ]whitney|wilcoxon|kruskal|rank[- ]sum|spearman",
        "permutation test": r"permutation tests?|randomi[sz]ation tests?",
        "variance test": r"\banova\b|f-tests?|levene|bartlett",
        "chi-squared test": r"chi[- ]squared?|χ²|fisher's exact",
        "distribution test": r"kolmogorov|shapiro|anderson[-– ]darling",
        "time series test": r"dickey|\badf\b|kpss|ljung|durbin|granger|chow test",
        "likelihood comparison": r"likelihood ratio|log[- ]likelihoods?|\baic\b|\bbic\b|bayes factors?",
        "multiple testing": r"bonferroni|benjamini|false discovery rate|\bholm\b",
        "standard error": r"standard errors?|\bs\.e\.|\bse\s(?:of\s|about\s)?\d|\d\s?±\s?\d",
        "t or z statistic": r"\|[tz]\||\b[tz]\s?[=<>≤≥]?\s?[-−]?\d+\.\d",
    },
    enough=3,
)
TEAMS: Final = Aspect(
    {
        "data": r"data team|dataset_description",
        "model": r"model(?:l?ing)? team|model_architecture|experiment_results",
        "eval": r"eval(?:uation)? team|evaluation_report",
    },
    enough=3,
)
SINGLE: Final = 2
"""The stages of one group: its work and its paper."""


@lru_cache(maxsize=64)
def _sentences(brief: str) -> frozenset[str]:
    """The words of each statement of a project text."""
    return frozenset(" ".join(words(text)) for text in statements(brief))


def _distinct(sentences: Sequence[str], find: Callable[[str], Iterable[str]]) -> list[str]:
    """The distinct items in the statements, at most `MOST_PER_STATEMENT` new ones in each."""
    items: dict[str, None] = {}
    for statement in sentences:
        new = [item for item in dict.fromkeys(find(statement)) if item not in items]
        items.update(dict.fromkeys(new[:MOST_PER_STATEMENT]))
    return list(items)


def _teams(report: Report) -> Aspect | None:
    """What to call other teams' work; None for one group, which has no other teams."""
    if not report.stages:
        return TEAMS
    if len(report.stages) <= SINGLE:
        return None
    named = {team: rf"\b{re.escape(team)}\w*\s(?:team|group)" for team in report.stages[:-1]}
    named |= {name: re.escape(name) for name in report.artifacts}
    return Aspect(named, min(3, len(named)))


def quality_parts(prose: str, teams: Aspect | None = TEAMS) -> dict[str, dict[str, object]]:
    """The parts of quality, each with its credit in [0, 1] and its items; without `teams` there are three."""
    aspects = {"standard methods": METHODS, "statistical tests": TESTS} | (
        {"other teams' work": teams} if teams else {}
    )
    sentences = [text for text in dict.fromkeys(statements(prose)) if len(words(text)) >= LEAST_WORDS]
    counted = {"specific numbers": (_distinct(sentences, _NUMBER.findall), NUMBERS_ENOUGH)}
    counted |= {name: (_distinct(sentences, aspect.found_in), aspect.enough) for name, aspect in aspects.items()}
    return {
        name: {"credit": min(1.0, len(items) / enough), "found": items[: 2 * enough]}
        for name, (items, enough) in counted.items()
    }


class HeuristicJudge:
    """Completeness, heuristic quality and accuracy by rules."""

    name = "heuristic"
    version = "5"
    metrics = METRICS

    async def score(self, report: Report) -> list[Score]:
        """Completeness, heuristic quality and accuracy; all are 0 for a missing report."""
        if report.text is None or report.is_missing:
            return [self._score(metric, 0.0, "there is no report") for metric in METRICS]
        prose = read_prose(report.text)
        scores = self._of(prose.text, report)
        if not prose.injections:
            return scores
        without = self._of(prose.without, report)
        return [_beside(score, other, prose.injections) for score, other in zip(scores, without, strict=True)]

    def _of(self, prose: str, report: Report) -> list[Score]:
        return [self._completeness(prose), self._quality(prose, _teams(report)), self._accuracy(prose, report)]

    def _score(self, metric: str, value: float, reason: str, **details: object) -> Score:
        return Score(self.name, self.version, metric, value, reason, {**details, "injections": []})

    def _completeness(self, prose: str) -> Score:
        sections = find_sections(prose)
        thin = [section.name for section in sections.values() if not section.has_substance]
        flags = {name: {"words": s.words, "substance": s.has_substance} for name, s in sections.items()}
        solid = len(sections) - len(thin)
        lack = _named(f"missing or under {LEAST_SECTION} words", thin)
        reason = f"{solid} of {len(sections)} sections have substance{lack}"
        value = solid / len(sections)
        return self._score("completeness", value, reason, sections=flags)

    def _quality(self, prose: str, teams: Aspect | None) -> Score:
        parts = quality_parts(prose, teams)
        credits = [float(str(part["credit"])) for part in parts.values()]
        reason = ", ".join(f"{name} {credit:.2f}" for name, credit in zip(parts, credits, strict=True))
        value = sum(credits) / len(credits)
        return self._score(QUALITY, value, reason, parts=parts)

    def _accuracy(self, prose: str, report: Report) -> Score:
        # Sentences copied from the project text are questions, not findings.
        brief = _sentences(report.task.brief)
        own = ((lead, text) for lead, text in placed(prose) if " ".join(words(text)) not in brief)
        original = "\n".join(f"{lead} / {text}" if lead else text for lead, text in own)
        results = {check.name: check.holds(original) for check in report.task.checks(report.truth)}
        missed = [name for name, holds in results.items() if not holds]
        reason = f"{len(results) - len(missed)} of {len(results)} checks on words hold{_named('not', missed)}"
        value = 1 - len(missed) / len(results) if results else 0.0
        return self._score("accuracy", value, reason, checks=results, task=report.task_facts)


def _beside(score: Score, without: Score, flagged: Sequence[str]) -> Score:
    """A score, with the score without flagged passages in its details."""
    assert score.value is not None
    assert without.value is not None
    difference = score.value - without.value
    text = f"; {without.value:.3f} without what was flagged as addressing the judge" if difference else ""
    details = {"injections": list(flagged), "without_flagged": without.value, "difference": difference}
    return replace(score, reason=score.reason + text, details={**score.details, **details})


def _named(lead: str, names: Iterable[str]) -> str:
    joined = ", ".join(names)
    return f"; {lead}: {joined}" if joined else ""
