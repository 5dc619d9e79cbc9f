"""Sources of a paper's numbers: the claims that occur in the output of the run's code.

Source: the papers rate the quality of a text by its words; this audit is our own. It uses rules, without a model:

- A *claim* is an informative number of the paper's prose or findings: written with a decimal point, a percent sign or
  at least three digits. Years, small whole numbers, bounds (``p < 0.01``), usual levels (95 %), numbers of the task's
  text and lines copied from the output don't count. Repeated numbers are one claim. A test or method named in a
  statement with a claim is a claim too.
- A number is *found* if the output of code holds it, to the digits of the coarser one, in a row that shares a word with
  the statement; four significant digits need no word. A test or method is found if executed code or its output names it
  and a number of the same statement is found. A number is *contradicted* if it is not found and a row of the output
  that has most of the words before it gives another value. Anything else is *not found*.
- Numbers also match by chance, more often in longer outputs. So each claim is also tried at other values (0.5 to 2
  times the original), and the share is corrected for their matches: with F claims found of N and C expected by chance,
  it is (F - C) / (N - C), not below 0. Fewer than `ENOUGH` claims earn in proportion, more than `MOST` in inverse
  proportion.

Limits: signs are ignored, numbers calculated by hand are not found, and code that prints invented numbers deceives the
audit.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Literal

from labmates.judges.base import Report
from labmates.judges.findings_rules import record_keys
from labmates.judges.heuristic import LEAST_WORDS, METHODS, TESTS
from labmates.judges.prose import read_prose, statements, words
from labmates.judges.rows import MOST_CHARS, Number, agrees_with_any, read_numbers, rows_of
from labmates.tasks.scoring import plain_name

METRIC: Final = "provenance"
ENOUGH: Final = 10
"""A paper with fewer claims earns in proportion."""
MOST: Final = 200
"""A paper with more claims earns in inverse proportion, against dumps of numbers."""
MOST_READ: Final = 1_000
"""Most claims that are looked up."""
MOST_PER_STATEMENT: Final = 16
"""Most claims of one statement or table row that can be found; the rest count as not found."""
PLAIN_DIGITS: Final = 4
"""Numbers with this many significant digits need no shared word."""
LEAST_WHOLE: Final = 100
STEM: Final = 5
MOST_TOLD: Final = 60
"""Most claims of each status listed in the details; counts include all."""
_TRIALS: Final = tuple(2 ** (step / 12) for step in range(-12, 13) if abs(step) > 1)
_NEAR: Final = 3.0
"""Largest factor between a claim and a contradicting value."""
_SHOWN: Final = 160
_MOST_STEMS: Final = 30
_MOST_NUMBERS: Final = 1_000
"""Most words and numbers read from one row of output."""

Status = Literal["found", "contradicted", "not found"]

_YEARS: Final = range(1900, 2101)
_USUAL: Final = {0.05, 0.01, 0.001, 0.95, 0.99, 0.9, 0.999, 1.0, 95.0, 99.0, 90.0, 100.0, 99.9}
_BOUND: Final = re.compile(r"(?:[<>≤≥]=?|less than|more than|at least|at most|below|above)\s*[-−+]?$", re.IGNORECASE)
_COMMON: Final = re.compile(
    r"the|and|for|with|that|this|from|are|was|were|has|have|had|not|but|all|its|their|than|then|there|which|when|where"
    r"|into|over|under|between|after|before|about|each|every|only|also|both|one|two|three|our|per|out|more|less|most"
    r"|least|been|being|can|could|may|will|would|who|how|what|these|those|they|them|very|such|other|others|same"
)

CODE: Final[Mapping[str, str]] = {
    "regression": r"linregress|polyfit|lstsq|linearregression|\bols\b|ridge|lasso|curve_fit|least_squares",
    "mixed or additive model": r"mixedlm|\bgam\b|\bglm\b",
    "time series model": r"arima|autoreg|kalman|sarimax|statespace",
    "tree ensemble": r"randomforest|gradientboosting|xgb|lgbm|decisiontree|extratrees",
    "clustering": r"kmeans|dbscan|gaussianmixture|agglomerative|linkage|fcluster",
    "dimension reduction": r"\bpca\b|truncatedsvd|tsne|umap|linalg\.svd",
    "change-point analysis": r"ruptures|cusum|cumsum|pelt|binseg|breakpoint",
    "anomaly detector": r"isolationforest|oneclasssvm|localoutlierfactor|zscore|z_score|\bmad\b|median_abs",
    "decomposition": r"\bstl\b|seasonal_decompose|\bfft\b|rfft|periodogram|detrend",
    "smoothing": r"rolling|ewm|lowess|savgol|spline|medfilt|uniform_filter|convolve",
    "correlation analysis": r"\.corr\b|corrcoef|pearsonr|spearmanr|kendalltau|correlate|mutual_info",
    "spatial model": r"krig|variogram|gaussianprocess|moran|semivar",
    "classifier": r"logisticregression|\bsvc\b|kneighbors|mlpclassifier|classifier",
    "survival analysis": r"kaplanmeier|coxph|lifelines",
    "imputation": r"fillna|interpolate|imputer",
    "validation": r"cross_val|kfold|\bfolds?\b|train_test_split|holdout|groupkfold|leaveoneout",
    "resampling": r"bootstrap|jackknife|resample|replace\s*=\s*true",
    "causality analysis": r"granger",
    "robust cleaning": r"drop_duplicates|duplicated|winsor|standardscaler|clip\(",
    "p-value": r"p_?val|ttest|mannwhitney|wilcoxon|permutation|pearsonr|spearmanr|linregress|\bp\s*=",
    "confidence interval": r"conf_int|quantile|percentile|\bci\b|bootstrap",
    "t-test": r"ttest|\bt\s*=\s*[-+]?\d",
    "rank test": r"mannwhitneyu|wilcoxon|kruskal|spearmanr|ranksums|rankdata",
    "permutation test": r"permutation|permuted|shuffle",
    "variance test": r"f_oneway|levene|bartlett|anova",
    "chi-squared test": r"chi2|chisquare|fisher_exact",
    "distribution test": r"kstest|ks_2samp|shapiro|anderson|normaltest",
    "time series test": r"adfuller|kpss|ljung|durbin|granger",
    "likelihood comparison": r"\baic\b|\bbic\b|llf|loglik",
    "multiple testing": r"multipletests|bonferroni|fdr|benjamini|false_discovery",
    "standard error": r"\bsem\b|std_err|stderr|\bbse\b",
}
"""Names in code of the methods and tests that papers name (`judges.heuristic`)."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: a number or the name of a test or method, with its statement (cut)."""

    text: str
    statement: str
    status: Status


@dataclass(frozen=True)
class Provenance:
    """The result of an audit; `chance` is the number of claims found by chance."""

    value: float
    reason: str
    claims: tuple[Claim, ...] = ()
    chance: float = 0.0

    def count(self, status: Status) -> int:
        """The number of claims with a status."""
        return sum(claim.status == status for claim in self.claims)

    def as_json(self) -> dict[str, Any]:
        """The audit as JSON data: counts of all claims, and the first claims of each status."""
        statuses: tuple[Status, ...] = ("found", "contradicted", "not found")
        return {
            "claims": {status: self.count(status) for status in statuses},
            "chance": round(self.chance, 4),
            **{
                status.replace(" ", "_"): [
                    {"claim": claim.text, "in": claim.statement} for claim in self.claims if claim.status == status
                ][:MOST_TOLD]
                for status in statuses
            },
        }


@dataclass(frozen=True)
class _Place:
    """A number in context: the stems of its statement, and of the words that name it."""

    numbers: tuple[Number, ...]
    stems: frozenset[str]
    name: frozenset[str]
    statement: str
    methods: tuple[str, ...] = ()


@dataclass
class _Outputs:
    """Printed output of code: numbers by the stems in their row, and rows by stem."""

    by_stem: dict[str, list[Number]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[str, list[tuple[frozenset[str], tuple[Number, ...]]]] = field(default_factory=lambda: defaultdict(list))
    names: str = ""
    lines: set[str] = field(default_factory=set)


def audit(report: Report, findings: Mapping[str, Any] | None = None) -> Provenance:
    """Look up the claims of a report in the outputs of the run's code.

    Parameters
    ----------
    findings
        The report's readable findings.
    """
    if report.is_missing:
        return Provenance(0.0, "there is no report")
    traces = [trace for trace in report.trail if trace.kind == "output"]
    if not any(trace.text.strip() for trace in traces):
        return Provenance(0.0, "no output of code is recorded that could support the paper")
    records = record_keys(report.task.findings)
    outputs = _read_outputs([(trace.text, trace.code) for trace in traces], records)
    in_brief = {number.text for number in read_numbers(report.task.brief)}
    original = [line for line in (report.text or "")[:MOST_CHARS].split("\n") if plain_name(line) not in outputs.lines]
    places = dict(islice(_places("\n".join(original), findings or {}, in_brief, records).items(), MOST_READ))
    if not places:
        return Provenance(0.0, "the paper states no number that could be looked up")
    return _judge(places, outputs)


def _judge(places: Mapping[str, Sequence[_Place]], outputs: _Outputs) -> Provenance:
    claims, chance, found_in = [], 0.0, set[str]()
    for text, all_ in places.items():
        place = next((place for place in all_ if _is_found(place.numbers, place.stems, outputs)), None)
        if place is not None:
            claims.append(Claim(text, all_[0].statement, "found"))
            found_in.add(place.statement)
        else:
            at_odds = any(_is_contradicted(place, outputs) for place in all_)
            claims.append(Claim(text, all_[0].statement, "contradicted" if at_odds else "not found"))
        chance += _chance(all_, outputs)
    named: dict[str, set[str]] = defaultdict(set)
    for all_ in places.values():
        for place in all_:
            for method in place.methods:
                named[method].add(place.statement)
    for method, statements_ in named.items():
        is_run = bool(statements_ & found_in) and _pattern(method).search(outputs.names) is not None
        claims.append(Claim(method, min(statements_), "found" if is_run else "not found"))
        chance += (chance / max(1, len(places))) if is_run else 0.0
    confirmed = sum(claim.status == "found" for claim in claims)
    all_claims = len(claims)
    share = max(0.0, (confirmed - chance) / (all_claims - chance)) if all_claims - chance > 1e-9 else 0.0
    value = share * min(1.0, all_claims / ENOUGH) * min(1.0, MOST / all_claims)
    result = Provenance(round(min(1.0, value), 6), "", tuple(claims), chance)
    return replace(result, reason=_reason_text(result))


def _reason_text(result: Provenance) -> str:
    all_claims = len(result.claims)
    reason = (
        f"{result.count('found')} of {all_claims} claims stand in what the code printed "
        f"({result.chance:.1f} expected by chance), {result.count('contradicted')} contradicted"
    )
    if all_claims < ENOUGH:
        reason += f"; {ENOUGH} claims are due"
    return reason + (f"; more than {MOST} claims are no paper" if all_claims > MOST else "")


def _places(
    text: str, findings: Mapping[str, Any], in_brief: set[str], records: frozenset[str]
) -> dict[str, list[_Place]]:
    """The places of each claimed number, by its text."""
    places: dict[str, list[_Place]] = {}
    for statement in dict.fromkeys(statements(read_prose(text).text)):
        of_statement = 0
        for place in _of_statement(statement):
            key = place.numbers[0].text.strip()
            if not _claims(place.numbers[0]) or key in in_brief:
                continue
            of_statement += key not in places
            beyond = of_statement > MOST_PER_STATEMENT or (len(words(statement)) < LEAST_WORDS and "|" not in statement)
            places.setdefault(key, []).append(replace(place, stems=frozenset(), name=frozenset()) if beyond else place)
    for row in rows_of(json.dumps(findings, default=str), records) if findings else ():
        name = _stems(row.words)
        for numbers in _grouped(row.numbers):
            key = numbers[0].text.strip()
            if _claims(numbers[0]) and key not in in_brief:
                places.setdefault(key, []).append(
                    _Place(numbers, name, name, f"findings: {row.words.strip()}"[:_SHOWN])
                )
    return places


def _of_statement(statement: str) -> Iterator[_Place]:
    stems, methods, end = _stems(statement), tuple(name for name in _names() if _prose(name).search(statement)), 0
    for numbers in _grouped(read_numbers(statement)):
        at = statement.find(numbers[0].text, end)
        if _BOUND.search(statement[max(0, at - 20) : at]):
            end = at + len(numbers[0].text)
            continue
        before = re.split(r"[;:(|]|, ", statement[end:at])
        end = at + len(numbers[0].text)
        yield _Place(numbers, stems, _stems(" ".join(before[-2:])), statement.strip()[:_SHOWN], methods)


def _grouped(numbers: Iterable[Number]) -> Iterator[tuple[Number, ...]]:
    """Each number with its other reading: a percentage is also a share."""
    group: list[Number] = []
    for number in numbers:
        if group and not (number.text == group[0].text and number.text.endswith("%") and len(group) == 1):
            yield tuple(group)
            group = []
        group.append(number)
    if group:
        yield tuple(group)


def _claims(number: Number) -> bool:
    """Whether a number is informative about the data."""
    if round(number.value, 6) in _USUAL:
        return False
    if number.half > 0:
        return number.value != 0
    is_year = number.value in _YEARS and len(number.text.strip()) == 4
    return number.value >= LEAST_WHOLE and not is_year


def _is_found(numbers: Sequence[Number], stems: frozenset[str], outputs: _Outputs) -> bool:
    return any(_is_met(number, stems, outputs) for number in numbers)


def _is_met(number: Number, stems: frozenset[str], outputs: _Outputs) -> bool:
    if not stems:
        return False
    number = replace(number, half=number.half or 0.5)  # A large whole number may be rounded.
    plain = _significant(number) >= PLAIN_DIGITS
    return any(
        agrees_with_any(number, outputs.by_stem[stem]) for stem in ({""} if plain else stems) if stem in outputs.by_stem
    )


def _chance(places: Sequence[_Place], outputs: _Outputs) -> float:
    """The probability of finding a claim by chance: the share of found other values, written alike."""
    hits = tries = 0
    for factor in _TRIALS:
        moved = [
            (tuple(_moved(number, factor) for number in place.numbers), place.stems)
            for place in places
            if abs(_moved(place.numbers[0], factor).value - place.numbers[0].value) > 2 * place.numbers[0].half
        ]
        if moved:
            tries += 1
            hits += any(_is_found(numbers, stems, outputs) for numbers, stems in moved)
    return hits / tries if tries else 0.0


def _moved(number: Number, factor: float) -> Number:
    unit = 2 * number.half or 1.0
    return replace(number, value=round(number.value * factor / unit) * unit)


def _is_contradicted(place: _Place, outputs: _Outputs) -> bool:
    if len(place.name) < 2:
        return False
    seen = (row for stem in place.name for row in outputs.rows.get(stem, ()))
    for stems, numbers in seen:
        if len(place.name & stems) >= max(2, (len(place.name) + 1) // 2):
            for number in place.numbers:
                if any(_is_other(number, source) for source in numbers):
                    return True
    return False


def _is_other(claim: Number, source: Number) -> bool:
    like = (claim.half > 0) == (source.half > 0)
    return like and source.value > 0 and 1 / _NEAR <= claim.value / source.value <= _NEAR


def _significant(number: Number) -> int:
    mantissa = re.split(r"[eE]", number.text)[0]
    return len("".join(char for char in mantissa if char.isdigit()).lstrip("0"))


def _read_outputs(texts: Iterable[tuple[str, str]], records: frozenset[str]) -> _Outputs:
    """The output of code, row by row; a line without numbers is a header of the lines below it."""
    outputs, names = _Outputs(), []
    for text, code in dict.fromkeys(texts):
        names += [text, code]
        outputs.lines.update(plain_name(line) for line in text.split("\n") if any(map(str.isdigit, line)))
        header = frozenset[str]()
        for row in rows_of(text, records, prose=False):
            stems = _stems(row.words)
            if not row.numbers:
                header = stems
                continue
            _add_row(outputs, stems | header, row.numbers)
    outputs.names = "\n".join(names).lower()
    for numbers in outputs.by_stem.values():
        numbers.sort(key=attrgetter("value"))
    return outputs


def _add_row(outputs: _Outputs, stems: frozenset[str], numbers: tuple[Number, ...]) -> None:
    stems, numbers = frozenset(islice(sorted(stems), _MOST_STEMS)), numbers[:_MOST_NUMBERS]
    for stem in (*stems, ""):
        outputs.by_stem[stem] += numbers
    for stem in stems:
        outputs.rows[stem].append((stems, numbers))


def _stems(text: str) -> frozenset[str]:
    """Stems of the informative words."""
    rare_words = (word for word in plain_name(text).split() if not _COMMON.fullmatch(word))
    return frozenset(
        word[:STEM]
        for word in rare_words
        if len(word) > 2 or (len(word) == 2 and any(map(str.isdigit, word)))
        if not word.isdigit()
    )


@cache
def _names() -> tuple[str, ...]:
    return (*METHODS.patterns, *TESTS.patterns)


@cache
def _prose(name: str) -> re.Pattern[str]:
    return re.compile({**METHODS.patterns, **TESTS.patterns}[name], re.IGNORECASE)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """The pattern of a method or test in code and its output."""
    return re.compile("|".join(filter(None, (_prose(name).pattern, CODE.get(name)))), re.IGNORECASE)
