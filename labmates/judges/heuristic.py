"""The judge without a model: completeness, quality and accuracy by rules on the words of a report.

Source: cooperative-profiles paper, section 4.1.2 (the metrics and what each looks for); the rules themselves are our
own design. Quality and accuracy by rules say whether a report talks about the right things, not whether it is right;
the judge ``verified`` does that. Above all, accuracy by rules looks for words that any paper on the task has: the right
report on other data passes more than half of the checks. Fenced blocks are not read. An order can't move a rule, so
the text is scored as written; where passages of it were flagged as orders, the score without them stands beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from labmates.judges.base import METRICS, Report, Score
from labmates.judges.prose import read_prose, statements, words
from labmates.judges.sections import find_sections

LEAST_WORDS: Final = 5
"""Shorter statements show nothing: a bare list of keywords or numbers earns no quality."""
MOST_PER_STATEMENT: Final = 2
"""Maximum number of different things of one kind that count in one statement."""


@dataclass(frozen=True)
class Aspect:
    """One part of quality: what is looked for, and how many different ones give full credit."""

    patterns: Mapping[str, str]
    enough: int


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
        "decomposition": r"\bstl\b|seasonal decomposition|detrend|fourier|wavelet|deseasonali[sz]",
        "smoothing": r"rolling (?:mean|median|window|statistics?)|moving average|lowess|loess|splines?",
        "correlation analysis": r"correlations?\b|cross-correlat|mutual information",
        "spatial model": r"kriging|variogram|gaussian process|spatial (?:lag|error|regression)|moran",
        "classifier": r"support vector|\bsvm\b|logistic regression|neural networks?|nearest neighbou?rs?",
        "survival analysis": r"\bcox\b|kaplan|survival analysis",
        "imputation": r"imput(?:ed?|ation|ing)|interpolat",
        "validation": r"cross[- ]validat|hold-?out|train[- /]test|out[- ]of[- ]sample|back-?test",
        "resampling": r"bootstrap|jackknife|monte carlo",
        "causality analysis": r"granger|transfer entropy|causal",
        "robust cleaning": r"winsor|de-?duplicat|outlier removal|unit conversion|normali[sz]ation|standardi[sz]",
    },
    enough=5,
)
TESTS: Final = Aspect(
    {
        "p-value": r"\bp\s?[<=>≤]|p-values?",
        "confidence interval": r"confidence intervals?|credible intervals?|\b9[059]\s?%\s?ci\b|\bci\s?[\[(:]",
        "t-test": r"\bt-?tests?|student's t|welch",
        "rank test": r"mann[-– ]whitney|wilcoxon|kruskal|rank[- ]sum|spearman",
        "permutation test": r"permutation tests?|randomi[sz]ation tests?",
        "variance test": r"\banova\b|f-tests?|levene|bartlett",
        "chi-squared test": r"chi[- ]squared?|χ²|fisher's exact",
        "distribution test": r"kolmogorov|shapiro|anderson[-– ]darling",
        "time series test": r"dickey|\badf\b|kpss|ljung|durbin|granger|chow test",
        "likelihood comparison": r"likelihood ratio|\baic\b|\bbic\b|bayes factors?",
        "multiple testing": r"bonferroni|benjamini|false discovery rate|\bholm\b",
        "standard error": r"standard errors?|\bs\.e\.",
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


def count_distinct(sentences: Sequence[str], aspect: Aspect) -> list[str]:
    """The different items of an aspect that the statements name, at most `MOST_PER_STATEMENT` new ones in each."""
    compiled = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in aspect.patterns.items()}
    names: dict[str, None] = {}
    for statement in sentences:
        new = [name for name, pattern in compiled.items() if name not in names and pattern.search(statement)]
        names.update(dict.fromkeys(new[:MOST_PER_STATEMENT]))
    return list(names)


def count_numbers(sentences: Sequence[str]) -> list[str]:
    """The different specific numbers (decimals, percentages, with an error), dampened likewise."""
    numbers: dict[str, None] = {}
    for statement in sentences:
        new = [number for number in dict.fromkeys(_NUMBER.findall(statement)) if number not in numbers]
        numbers.update(dict.fromkeys(new[:MOST_PER_STATEMENT]))
    return list(numbers)


def quality_parts(prose: str) -> dict[str, dict[str, object]]:
    """The four parts of quality, each with its credit in [0, 1] and what was found."""
    sentences = [one for one in dict.fromkeys(statements(prose)) if len(words(one)) >= LEAST_WORDS]
    parts: dict[str, dict[str, object]] = {}
    counted = {
        "specific numbers": (count_numbers(sentences), NUMBERS_ENOUGH),
        "standard methods": (count_distinct(sentences, METHODS), METHODS.enough),
        "statistical tests": (count_distinct(sentences, TESTS), TESTS.enough),
        "other teams' work": (count_distinct(sentences, TEAMS), TEAMS.enough),
    }
    for name, (things, enough) in counted.items():
        parts[name] = {"credit": min(1.0, len(things) / enough), "found": things[: 2 * enough]}
    return parts


class HeuristicJudge:
    """Completeness, quality and accuracy by rules."""

    name = "heuristic"
    version = "2"
    metrics = METRICS

    async def score(self, report: Report) -> list[Score]:
        """Completeness, quality and accuracy; all are 0 for a missing report."""
        if report.text is None or report.is_missing:
            return [self._score(metric, 0.0, "there is no report") for metric in METRICS]
        prose = read_prose(report.text)
        scores = self._of(prose.text, report)
        if not prose.injections:
            return scores
        without = self._of(prose.without, report)
        return [_beside(score, other, prose.injections) for score, other in zip(scores, without, strict=True)]

    def _of(self, prose: str, report: Report) -> list[Score]:
        return [self._completeness(prose), self._quality(prose), self._accuracy(prose, report)]

    def _score(self, metric: str, value: float, reason: str, **details: object) -> Score:
        return Score(self.name, self.version, metric, value, reason, {**details, "injections": []})

    def _completeness(self, prose: str) -> Score:
        sections = find_sections(prose)
        thin = [one.name for one in sections.values() if not one.has_substance]
        flags = {name: {"words": one.words, "substance": one.has_substance} for name, one in sections.items()}
        solid = len(sections) - len(thin)
        reason = f"{solid} of {len(sections)} sections have substance{_named('missing or thin', thin)}"
        value = solid / len(sections)
        return self._score("completeness", value, reason, sections=flags)

    def _quality(self, prose: str) -> Score:
        parts = quality_parts(prose)
        credits = [float(str(part["credit"])) for part in parts.values()]
        reason = ", ".join(f"{name} {credit:.2f}" for name, credit in zip(parts, credits, strict=True))
        value = sum(credits) / len(credits)
        return self._score("quality", value, reason, parts=parts)

    def _accuracy(self, prose: str, report: Report) -> Score:
        # Sentences of the project text say what was asked, not what was found.
        asked = {" ".join(words(one)) for one in statements(report.task.brief)}
        own = "\n".join(one for one in statements(prose) if " ".join(words(one)) not in asked)
        results = {check.name: check.holds(own) for check in report.task.checks(report.truth)}
        missed = [name for name, held in results.items() if not held]
        reason = f"{len(results) - len(missed)} of {len(results)} checks on words hold{_named('not', missed)}"
        value = 1 - len(missed) / len(results) if results else 0.0
        return self._score("accuracy", value, reason, checks=results, task=report.task_facts)


def _beside(score: Score, without: Score, flagged: Sequence[str]) -> Score:
    """A score with what it would be without the flagged passages."""
    assert score.value is not None
    assert without.value is not None
    difference = score.value - without.value
    text = f"; {without.value:.3f} without what was flagged as addressing the judge" if difference else ""
    details = {"injections": list(flagged), "without_flagged": without.value, "difference": difference}
    return replace(score, reason=score.reason + text, details={**score.details, **details})


def _named(lead: str, names: Iterable[str]) -> str:
    joined = ", ".join(names)
    return f"; {lead}: {joined}" if joined else ""
