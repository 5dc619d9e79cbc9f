"""Looking up claims in what was printed: who is named, which statistic, and whether the value is the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from pydantic import BaseModel

from labmates.judges.brackets import KEY
from labmates.judges.cells import Cell
from labmates.judges.meanings import PREFIX, Names, alike, has_all, same_word
from labmates.judges.printed import Line, Printed
from labmates.judges.rows import COARSE, NOTHING, Number, agree, read_numbers, words_of
from labmates.judges.stated import Asked, names_in
from labmates.tasks.scoring import plain_name

FEW: Final = 6
"""Most values of one subject and statistic among which the mean of two counts, and none is there by chance."""
MOST_BESIDE: Final = 6
"""A line with more decimals beside its names is a row of a matrix, and selects none of them."""
CHANCE: Final = 0.1
"""Least share of the whole numbers up to a claim that printed values cover, for one of them to be there by chance."""
NEAR: Final = 0.1
"""Largest relative distance from their mean of two values that may be averaged."""
FAR: Final = 3.0
"""Largest factor between a claim and a contradicting value."""
LONG: Final = 4
"""Digits of a number that stands for its entry."""
MOST_SHOWN: Final = 200
"""The characters of a line that are shown."""
Status = Literal["computed", "contradicted", "not found"]
_LABEL = re.compile(r"\W*(?:[^\W\d]{3,}\s+(?=\w{1,2}\b))?(\w{1,12})\s*[\[({:=]")
_LIMIT = re.compile(r"(?:ratio|change|factor)\b[^<>]{0,24}([<>])")
_SIGN = re.compile(r"[^\d\[({+-]*(?<!\w)([-+])\d*\.\d")
_TOLD_SIGN = re.compile(
    r"\bsign\b['\"]?[:= ]\s*['\"]?([-+−])|['\"]([-+−])['\"]|\s\s([-+−])(?=\s\s|\s+\d|\s*$)|\b(posi|nega)tive\b"
)
_SIGN_AFTER = re.compile(r"(?<!\w)(\w+)['\"]?[^\w+−-]{1,6}(?:sign\b['\"]?[:= ]*['\"]?)?([-+−]|(?=\d*\.\d))")
_BRACES = re.compile(r"\{[^{}]*\}?")
_PAIRED = re.compile(r"\(['\"]([^'\"]+)['\"],\s*([-+]?\d+(?:\.\d+)?)")
_KEYED = re.compile(r"['\"]([^'\"]+)['\"]\s*:\s*[(\[]?([-+]?\d+(?:\.\d+)?)")
_SIGNED = re.compile(r"(?<![\w.])[-−+]\d")
_ARROW = re.compile(r"->|→|\w>\w|\bsource\b.*\btarget\b")
_EFFECT = re.compile(r"->|→|\|")
_FITTED: Final = words_of("bic aic ll llf loglik")
_ERRORS = re.compile(r"[^:\d]{0,60}\b(?:se|sd|std|sem|stderr|standard errors?|standard deviations?):", re.IGNORECASE)
"""The label of a line of standard errors."""
_SPREADS: Final = words_of("se sd std error deviation")
_SPREAD: Final = words_of("sd std se sem min max count counts missing nan na dtype object float64 int64")
MOST_LISTED: Final = 0.7
"""A list without numbers that mentions a larger share of all names selects none."""
STATUSES: Final[tuple[Status, ...]] = ("computed", "contradicted", "not found")

_ESTIMATE: Final = words_of(
    "est estimate estimates b beta coef coefficient params effect effects slope fit final mean size strength value "
    "median restricted full model"
)
_COUNTED: Final = words_of("n number count counts rows len size unique total distinct sum")
_TESTED: Final = words_of("p pval pvalue t z f coef se bse tvalues pvalues slope params ratio r corr beta test anova")
_CHANCE: Final = words_of("p pval pvalue pvalues")
CLEAR: Final = 0.05
"""The p-value that parts yes from no."""
_PERCENT: Final = words_of("percent")
_RATIO: Final = words_of("t z tvalues tval tvalue zval")
CLEAR_RATIO: Final = 2.0
"""The same of the ratio of an estimate to its standard error."""
CLEAN: Final = 0.75
"""Least share of the stated names of a list that the values of a statistic put at one end."""
_OTHER: Final = words_of(
    "p pval pvalue pvalues t z tval tvalue zval se std sd err sem bse stderr error min max 25 50 75 q05 q95 lo hi ci "
    "lower upper interval intervals bounds 025 975 pb ps pip bic aic ll llf loglik r2 rmse mse mae f h kurt skew count "
    "counts n id index"
)
"""Words of statistics that are not the estimate itself."""


@dataclass(frozen=True)
class Claim:
    """What a stated finding says, its status, and the printed line that decided.

    `is_of_many` says that its subject and statistic have more than `FEW` values, and `outputs` where this one is;
    `is_coarse` that so few digits are stated that many of them agree.
    """

    finding: str
    text: str
    status: Status
    line: str = ""
    is_of_many: bool = False
    outputs: frozenset[int] = frozenset()
    is_coarse: bool = False


class Book:
    """The printed cells and lines of a run, with the names that they mention."""

    def __init__(self, printed: Printed, findings: BaseModel, columns: Iterable[str] = ()) -> None:
        self._printed = printed
        stated, columns = [*names_in(findings)], [*columns]
        kinds = words_of(" ".join(type(findings).model_fields))  # the column `rock` of the richest rock is no rock
        self._names = Names(stated)
        known = {plain_name(name) for name in stated}
        others = (name for name in columns if plain_name(name) not in known and not words_of(name) <= kinds)
        self._all = Names([*stated, *others])
        self._columns = frozenset(word for word in words_of(" ".join(columns)) if len(word) >= PREFIX)
        self._by_name: list[dict[str, Cell]] | None = None
        self._rows: dict[tuple[int, str], list[Cell]] = {}
        for cell in printed.cells:
            self._rows.setdefault((cell.output, cell.line), []).append(cell)
        self._peers = Counter(_peers_of(cell) for cell in printed.cells if cell.number.digits > 1)
        self._known_groups: dict[frozenset[str], bool] = {}
        self._known_labels: dict[frozenset[str], frozenset[str]] = {}

    def judge(self, asked: Asked) -> Claim:
        """Look up a claim."""
        if asked.value is None:
            line = self._telling(asked)
            return Claim(asked.finding, asked.text, "computed" if line else "not found", line or "")
        cells = [cell for cell in self._printed.cells if self._is_about(cell, asked)]
        if any(not cell.is_size and words_of(asked.finding) <= cell.near | cell.label for cell in cells):
            cells = [cell for cell in cells if not cell.is_size]
        claim = stated_number(asked.value, is_count=asked.is_count)
        if asked.names and not asked.is_part:
            cells = [cell for cell in cells if alike(cell.near | cell.label, asked.own)] or cells
        direct = [cell for cell in cells if asked.siblings and self._is_direct(cell, asked)]
        if not any(abs(cell.number.value - claim.value) <= NEAR * claim.value for cell in direct):
            cells = direct or cells  # what is named by the code alone may be that of a sibling
        found = [c for c in cells if _has_sign(c, asked) and is_like(c, asked) and agree(claim, c.number)]
        found = found or [c for c in self._printed.cells if agree(claim, c.number) and self._has_entry(c, asked)]
        is_of_many = _are_many(claim, cells)
        if found and not self._is_apart(claim, asked):
            outputs = frozenset(cell.output for cell in found)
            is_coarse = claim.half > COARSE * claim.value
            return Claim(asked.finding, asked.text, "computed", found[0].line, is_of_many, outputs, is_coarse)
        told = [cell for cell in cells if not cell.is_size and self._is_named(cell, asked)]
        if not (asked.is_count or (is_of_many and len(asked.names) > 1)) and (
            pair := self._mean_of(claim, [cell for cell in told if _has_sign(cell, asked)], asked)
        ):
            return Claim(asked.finding, asked.text, "computed", pair[0], is_of_many, pair[1])
        if others := [cell for cell in told if self._is_other(claim, cell, asked)]:
            return Claim(asked.finding, asked.text, "contradicted", others[0].line, is_of_many)
        return Claim(asked.finding, asked.text, "not found", "", is_of_many)

    def _mean_of(self, claim: Number, cells: Iterable[Cell], asked: Asked) -> tuple[str, frozenset[int]] | None:
        """Two neighbouring printed values of one statistic whose mean a claim is, in words, and their outputs."""
        near = dict[float, list[Cell]]()
        for cell in cells:
            words = cell.near | words_of(cell.line)
            if abs(cell.number.value - claim.value) <= NEAR * claim.value and (
                self.mentioned(cell.near | cell.label) if asked.names else has_all(words, asked.own)
            ):
                near.setdefault(cell.number.value, []).append(cell)
        for one, two in pairwise(sorted(near)) if len(near) <= FEW else ():
            words, others = (frozenset().union(*(c.near | c.label for c in near[value])) for value in (one, two))
            is_one = asked.names or words & others or words == others  # fits have names of their own
            if is_one and agree(claim, Number((one + two) / 2, 0.0, 1, "")):
                outputs = frozenset(cell.output for cell in [*near[one], *near[two]])
                return f"mean of {one:g} and {two:g}", outputs
        return None

    def _is_about(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell may hold the value of a claim: its subject and no other statistic than its own."""
        if cell.rank >= asked.among or (_ERRORS.match(cell.line) and not alike(_SPREADS, asked.words)):
            return False
        if cell.is_size:
            if not asked.is_count or asked.names or same_word(cell.near, asked.rivals - asked.own - asked.kin):
                return False
            return same_word(cell.near, asked.own | asked.kin) or self._has_all_of(cell, asked)
        own, near = asked.words | words_of(asked.finding), cell.near & _OTHER
        other = near if same_word(cell.near, asked.own) else near | cell.label & _OTHER
        fine = (NOTHING if asked.is_listed else _COUNTED) | _FITTED if asked.is_count else NOTHING
        if any(not alike(frozenset({w}), own) for w in other - fine):
            return False
        beside = cell.near | cell.label if asked.is_listed else cell.near
        if asked.is_count and beside & self._columns - own - words_of(" ".join(asked.names)):
            return False
        if asked.is_part:
            return self._is_part(cell, asked)
        if asked.is_count and not asked.is_listed and _is_index(cell, asked):
            return False
        if not asked.names:
            of_label = cell.label if asked.is_count and not asked.is_listed else NOTHING
            is_of_name = asked.rivals and self.mentioned((cell.near or cell.caption) | of_label)
            row = cell.label if cell.label <= cell.near else cell.label | cell.near
            is_many = self._peers[_peers_of(cell)] > MOST_BESIDE + asked.among
            is_other = is_of_name or (is_many and (asked.is_listed or _is_bare_list(cell)))
            is_other = is_other or _is_of_sibling(row, asked)
            return not is_other and self._is_named(cell, asked)
        here = cell.near | cell.label | cell.caption
        if not self._names_exactly(cell, asked.names) or _is_of_sibling(cell.near | cell.label, asked):
            return False
        if self._is_reversed(cell, asked):
            return False
        is_of_field = alike(cell.near | cell.label, asked.field)
        if not is_of_field and alike(cell.near, asked.others_terms):
            return False
        if not is_of_field and asked.terms and asked.siblings and not alike(here, asked.terms):
            return False
        return len(asked.names) > 1 or self._is_named(cell, asked) or cell.number.half > 0

    def _is_reversed(self, cell: Cell, asked: Asked) -> bool:
        """Whether a line gives the effect of the second name of a pair on the first."""
        if len(asked.pair) != 2 or not (_ARROW.search(cell.line) or _ARROW.search(cell.head)):
            return False
        told = [name for word in plain_name(cell.line).split() for name in self._names.meaning(word)]
        return {*told} == {*asked.pair} and told[0] != asked.pair[0]

    def _has_entry(self, cell: Cell, asked: Asked) -> bool:
        """Whether a row has all numbers of an entry without a name, and names another one of them."""
        row = self._rows.get((cell.output, cell.line), []) if asked.mates else []
        others = [one for one in row if one is not cell]
        held = [[(one, mate) for one in others if agree(_claimed(mate), one.number)] for mate in asked.mates]
        return bool(held) and all(held) and any(self._is_about(*pair) for pairs in held for pair in pairs)

    def _is_apart(self, claim: Number, asked: Asked) -> bool:
        """Whether lines with another long number of an entry without a name give this one another value only."""
        mates = [mate for each in asked.mates if (mate := _claimed(each)).digits >= LONG]
        # Of numbers that the code states as well, there are no cells, but they stand in the lines.
        lines = ((row, read_numbers(line)) for (_, line), row in (self._rows.items() if mates else ()))
        beside = [(row, told) for row, told in lines if any(agree(mate, number) for number in told for mate in mates)]
        if any(agree(claim, number) for _, told in beside for number in told):
            return False
        return any(
            same_word(c.near, asked.own) and 1 / FAR <= _ratio(claim, c) <= FAR for row, _ in beside for c in row
        )

    def _is_direct(self, cell: Cell, asked: Asked) -> bool:
        """Whether the words beside a cell name the finding, or, for a number of things, those after it."""
        noun = cell.after if asked.is_count else NOTHING
        return cell.is_size or alike(cell.near | cell.label | noun, asked.own)

    def _has_all_of(self, cell: Cell, asked: Asked) -> bool:
        """Whether a list has the names of the things that a finding counts, all that are stated and only those."""
        [listed] = cell.around or (NOTHING,)
        return bool(asked.things) and self.mentioned(listed) == asked.things == self._all.mentioned(listed)

    def gives(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell gives the subject and statistic of a claim some value, under a word of the finding's own.

        A row of a table or an arrow names the effect of one on another; a sentence may give each of two names a number.
        """
        is_effect = len(asked.names) > 1 and _EFFECT.search(cell.line) is not None
        return (is_effect or same_word(cell.near | cell.label, asked.own)) and self._is_about(cell, asked)

    def _is_other(self, claim: Number, cell: Cell, asked: Asked) -> bool:
        """Whether a cell gives another value for exactly the subject and statistic of a claim."""
        here = cell.near | cell.label
        if asked.is_listed or asked.is_part or cell.number.value in asked.given:
            return False
        if asked.is_count and not asked.names and not here & _COUNTED:
            return False
        if not (same_word(here, asked.own) and has_all(words_of(cell.line), asked.own)):
            return False
        return is_like(cell, asked) and 1 / FAR <= _ratio(claim, cell) <= FAR

    def _is_part(self, cell: Cell, asked: Asked) -> bool:
        """Whether a cell is about a group without a name: under a label of its members, or in a list of this name."""
        beside = next(filter(None, map(self.mentioned, cell.around)), NOTHING)
        if asked.is_count and cell.number.digits > 2 and beside and beside <= asked.names:
            return self._is_named(cell, asked)  # a place in the data, beside one of those that share it
        if not (self.are_members(beside, asked.names) if beside else self._is_told(asked.names)):
            return False
        if self._names_exactly(cell, asked.names):
            return self._is_named(cell, asked)
        labels, named = self._labels(asked.names), cell.near | cell.label
        if not self.mentioned(named) <= asked.names:
            return False
        is_share = cell.number.text.endswith("%") and alike(_PERCENT, asked.own)
        if (is_share or same_word(cell.near, asked.own)) and not any(len(word) == 1 for word in cell.near - labels):
            return True
        return bool(named & labels) and alike(named | cell.caption | cell.code, asked.own)

    def _labels(self, names: frozenset[str]) -> frozenset[str]:
        """The labels under which the members of a group were printed."""
        if names not in self._known_labels:
            lines = (line.text for line in self._printed.lines if self._holds(line, names))
            labels = (match[1].lower() for line in lines if (match := _LABEL.match(line)))
            self._known_labels[names] = frozenset(labels)
        return self._known_labels[names]

    def _holds(self, line: Line, names: frozenset[str]) -> bool:
        return self.are_members(self.mentioned(line.words - line.told), names)

    def _is_told(self, names: frozenset[str]) -> bool:
        """Whether a line holds the members of a group."""
        if names not in self._known_groups:
            lines = (line for line in self._printed.lines if not line.words & _SPREAD)
            self._known_groups[names] = any(self._holds(line, names) for line in lines)
        return self._known_groups[names]

    def are_members(self, mentioned: frozenset[str], names: frozenset[str]) -> bool:
        """Whether a text mentions the members of a group, and not many others."""
        return len(names & mentioned) >= CLEAN * len(names) and len(mentioned) <= 2 * len(names)

    def _names_exactly(self, cell: Cell, names: frozenset[str]) -> bool:
        near = self.mentioned(cell.near)
        if near == names:
            return True
        whole = near | self.mentioned(cell.label)
        if whole == names:
            return True
        return not whole and len(names) == 1 and names in map(self.mentioned, (words_of(cell.line), cell.caption))

    def _is_named(self, cell: Cell, asked: Asked) -> bool:
        """Whether the words beside a cell name the claim's statistic."""
        here = cell.near | cell.label
        if asked.names:
            return alike(here | cell.caption | cell.code, asked.words | _ESTIMATE)
        row = self._rows.get((cell.output, cell.line), ())
        is_apart = asked.is_count and not asked.is_listed and cell.near and not same_word(cell.near, asked.own)
        if is_apart and any(same_word(one.near, asked.own) for one in row):
            return False  # sites 480 rows 502
        for beside in (cell.near, cell.near if same_word(cell.near, asked.own) else here):
            is_own = all(alike(beside, frozenset({word})) for word in words_of(asked.finding) - {"n"})
            if same_word(beside, asked.rivals - asked.words | asked.siblings) and not is_own:
                return False
        if alike(here, asked.own):
            return True
        if asked.is_count and not asked.is_listed and same_word(cell.after, asked.own):
            return True  # the plant has 11 sensors
        if asked.is_count and not asked.is_listed and not here & _COUNTED:
            return False
        if alike(cell.caption, asked.own):
            return True
        if not alike(cell.code, asked.own) or same_word(here, asked.rivals):
            return False
        if asked.is_listed and any(same_word(one.near, asked.own) for one in row):
            return False  # another number of the line has the name
        if asked.is_listed:
            return cell.number.digits > 1 and (not asked.is_count or cell.near <= cell.label)
        return asked.is_count or alike(here, asked.words)

    def _telling(self, asked: Asked) -> str | None:
        """A printed line that holds a claim without a number; None if there is none."""
        if not asked.names:
            cells = [c for c in self._printed.cells if c.number.half and same_word(c.near | c.label, asked.own)]
            return next((c.line for c in cells if _decides(c, cells, asked)), None)
        if asked.is_part or len(asked.names) > 1:
            lines = (
                line for line in self._printed.lines if self._holds(line, asked.names) and not line.words & _SPREAD
            )
            return next((line.text for line in lines), None)
        parts = (part for line in self._printed.lines for part in line.parts)
        lists = [self.mentioned(inside) for inside, led in parts if words_of(asked.finding) <= led]
        is_left_out = any(lists) and not any(asked.names <= listed for listed in lists)
        return None if is_left_out else self._listing(asked) or self._selecting(asked)

    def _listing(self, asked: Asked) -> str | None:
        """A line that lists a name, but not most of all names, under a word of the finding."""
        most, most_of_all = MOST_LISTED * len(self._names.parts), MOST_LISTED * len(self._all.parts)
        for line in self._printed.lines:
            for inside, led in line.parts:
                mentioned = self.mentioned(inside - line.told)
                is_all = len(mentioned) > most and not (len(mentioned) > 1 and mentioned <= asked.fellows)
                if not asked.names <= mentioned or is_all or (inside | led) & _SPREAD:
                    continue
                if len(self._all.mentioned(inside)) > most_of_all:
                    continue
                beside = led | inside | (line.above - line.words)
                if _is_of_sibling(led, asked) or _is_other_way(line.text, asked) or _is_one_of_many(line.text, asked):
                    continue
                if self._is_signed_otherwise(line.text, asked):
                    continue
                if (effect := _SIGN.match(line.text)) and asked.direction == (1 if effect[1] == "-" else -1):
                    continue
                if (line.decimals <= MOST_BESIDE or not {*"[({;"}.isdisjoint(line.text)) and (
                    same_word(beside, asked.own) or (not line.decimals and alike(beside, asked.own))
                ):
                    return line.text
        return None

    def _is_signed_otherwise(self, line: str, asked: Asked) -> bool:
        """Whether a line gives the name of a claim one sign, and not that of the claim."""
        told = {
            sign.replace("−", "-") or "+"
            for word, sign in _SIGN_AFTER.findall(line)
            if self.mentioned(words_of(word)) == asked.names and (sign or _SIGNED.search(line))
        }
        return bool(asked.sign) and len(told) == 1 and asked.sign not in told

    def _selecting(self, asked: Asked) -> str | None:
        """A line with a name that the values of a statistic select: with those of its finding, it is at one end."""
        [name] = asked.names
        wanted, mine = asked.own | words_of(asked.finding) - self._columns, words_of(name)
        for series in self._series():
            if name in series and (cell := series[name]) and self._is_selected(series, asked):
                if _is_other_way(cell.line, asked) or self._is_signed_otherwise(cell.line, asked):
                    continue
                if not (cell.number.half or asked.is_listed or asked.is_of_counts):
                    continue
                here = cell.near | cell.label | cell.caption
                is_test = cell.near & _TESTED and not cell.near & _SPREAD and here & asked.words - _ESTIMATE
                if alike(here, wanted) or is_test or len((cell.near | cell.label) & asked.words - _ESTIMATE) > 1:
                    return cell.line
                is_whole = len(series.keys() & self._names.parts.keys()) >= CLEAN * len(self._names.parts)
                is_rival = same_word(here - mine, asked.rivals)
                # The words of the code may name the statistic of a table, but not of its row for a place or a number.
                beside = {word for word in cell.label if not self._names.meaning(word)}
                is_of_all = beside <= cell.code and not cell.line[:1].isdigit()
                if is_whole and is_of_all and cell.number.half and alike(cell.code, wanted) and not is_rival:
                    return cell.line
        return None

    def _is_selected(self, series: Mapping[str, Cell], asked: Asked) -> bool:
        stated = asked.fellows & series.keys()
        signed = {name: -cell.number.value if cell.negative else cell.number.value for name, cell in series.items()}
        [name] = asked.names
        direction = (asked.direction or 0) if not series[name].near & _CHANCE else 0
        if direction:
            ordered = sorted(signed, key=lambda one: -direction * signed[one])
        else:
            sign = 1 if series[name].near & _CHANCE else -1
            ordered = sorted(signed, key=lambda one: sign * abs(signed[one]))
        first = {*ordered[: len(stated)]}
        return len(first) < len(series) and name in first and len(first & stated) >= CLEAN * len(asked.fellows)

    def _series(self) -> list[dict[str, Cell]]:
        """The printed values of each statistic by name: those beside the same words."""
        if self._by_name is None:
            found: dict[tuple[object, ...], list[dict[str, Cell]]] = {}
            # Several numbers of a line without words of their own, or of a matrix, belong to no known statistic.
            plain = Counter(cell.line for cell in self._printed.cells if cell.near <= cell.label)
            pairs = {cell.line for cell in self._printed.cells if len(self.mentioned(cell.near | cell.label)) > 1}
            cells = [cell for cell in self._printed.cells if not cell.is_size]
            first = {cell.line: cell for cell in reversed(cells)}
            times = Counter[tuple[object, ...]]()  # a row may have a statistic twice: b 0.3 (p 0.1), c 0.2 (p 0.4)
            # The label of a row of a matrix is a column's too.
            rows = {cell.line for cell in cells if cell.near and cell.near == cell.label and first[cell.line] != cell}
            for cell in cells:
                if cell.line in rows or (cell.near <= cell.label and (plain[cell.line] > 1 or cell.line in pairs)):
                    continue
                here = cell.near | cell.label
                subject = self.mentioned(here) or self._all.mentioned(here)
                if not subject and cell.number.half:  # a name of the data that no finding states: of a row or a column
                    subject = frozenset(" ".join(sorted(words)) for words in (cell.label, cell.near - cell.label))
                elif len(subject) != 1:
                    continue
                for name in subject:
                    mine = words_of(name)
                    rest = [
                        frozenset(w for w in ws - mine if name not in self._all.meaning(w))
                        for ws in (cell.near - cell.label, cell.label)
                    ]
                    times[name, *rest, cell.line] += 1
                    tables = found.setdefault((*rest, cell.caption, cell.output, times[name, *rest, cell.line]), [{}])
                    if name in tables[-1]:
                        tables.append({})
                    tables[-1][name] = cell
            most = ((max(map(len, tables)), tables) for tables in found.values())
            # Tables of several sizes under the same words are rows of the data, each about some name.
            self._by_name = [table for size, tables in most for table in tables if len(table) == size]
        return self._by_name

    def mentioned(self, words: frozenset[str]) -> frozenset[str]:
        """The stated names that words mention without ambiguity."""
        return self._all.mentioned(words) & self._names.parts.keys()


def _is_of_sibling(words: frozenset[str], asked: Asked) -> bool:
    """Whether words name a finding of almost the same name, and not this one."""
    return same_word(words, asked.siblings) and not same_word(words, asked.field)


def _is_index(cell: Cell, asked: Asked) -> bool:
    """Whether a number tells which one of the things that a finding counts: subtype 4."""
    things = {word for word in asked.own if word.endswith("s")}
    return any(word[:-1] in cell.near for word in things) and not cell.near & (things | _COUNTED)


def _peers_of(cell: Cell) -> tuple[object, ...]:
    """What the numbers have in common that stand beside each other: the same brackets, and all whole or none."""
    return cell.output, cell.line, cell.around[:1], cell.number.half > 0


def _is_bare_list(cell: Cell) -> bool:
    """Whether a number stands in brackets on a line without keys."""
    return len(cell.around) > 1 and not KEY.search(cell.line)


def _is_one_of_many(line: str, asked: Asked) -> bool:
    """Whether a line gives several names a number each, and that of a finding's single name is at no end of them."""
    if asked.is_listed:
        return False
    for pairs in (*map(_KEYED.findall, _BRACES.findall(line)), _PAIRED.findall(line)):
        values: dict[str, float] = {}
        for name, value in pairs:
            values.setdefault(plain_name(name), float(value))  # other spellings of a name come later
        mine = [values[name] for name in map(plain_name, asked.names) if name in values]
        is_last, is_first = mine == [max(values.values(), default=0)], mine == [min(values.values(), default=0)]
        is_counts = all(value.is_integer() for value in values.values()) and not asked.is_of_counts
        if (
            len(values) > 1
            and mine
            and (is_counts or not ((is_last and asked.direction >= 0) or (is_first and asked.direction <= 0)))
        ):
            return True
    return False


def _is_other_way(line: str, asked: Asked) -> bool:
    """Whether a line selects by ratios above a limit for a finding about the smallest, or the reverse."""
    ways = set(_LIMIT.findall(line))
    return len(ways) == 1 and asked.direction == (1 if "<" in ways else -1)


def _decides(cell: Cell, cells: Iterable[Cell], asked: Asked) -> bool:
    """Whether a printed test says yes or no as stated: by the p-value of its line, else by its t-value."""
    beside = [other for other in cells if other.line == cell.line]
    if words_of(cell.line) & _CHANCE:
        values = [other.number.value for other in beside if other.near & _CHANCE]
        return (min(values or [other.number.value for other in beside]) < CLEAR) == (asked.text == "true")
    return bool(cell.near & _RATIO) and (cell.number.value >= CLEAR_RATIO) == (asked.text == "true")


def stated_number(value: float, *, is_count: bool) -> Number:
    """A stated value as a number: whole measures from ten on may be rounded, also to tens or hundreds."""
    [*_, number] = read_numbers(f"{abs(value):.10g}")
    if is_count or number.half:
        return number
    half = 0.5 if COARSE * abs(value) >= 0.5 else 0.05
    for unit in (10, 100):
        half = unit / 2 if value % unit == 0 and abs(value) >= 10 * unit else half
    return Number(number.value, half, number.digits, number.text)


def _claimed(asked: Asked) -> Number:
    return stated_number(asked.value or 0.0, is_count=asked.is_count)


def is_like(cell: Cell, asked: Asked) -> bool:
    """Whether a cell may count what a claim counts: decimals count nothing."""
    return not asked.is_count or cell.number.value.is_integer()


def _are_many(claim: Number, cells: Iterable[Cell]) -> bool:
    """Whether printed values are so many that one may agree by chance: of whole numbers, if they cover the range."""
    values = {cell.number.value for cell in cells}
    near = sum(claim.value / 2 <= value <= 2 * claim.value for value in values)
    return len(values) > FEW and (claim.half > 0 or near > CHANCE * claim.value)


def _ratio(claim: Number, cell: Cell) -> float:
    return claim.value / cell.number.value if cell.number.value else 0.0


def _has_sign(cell: Cell, asked: Asked) -> bool:
    """Whether a claim allows the sign of a printed value: sizes and effects of named things are printed with either."""
    told = _told_sign(cell.record or cell.line)
    if asked.sign and told and told != asked.sign:
        return False
    if asked.sign or (asked.names and not asked.is_part) or asked.value is None:
        if asked.sign == "-":
            return cell.negative or bool(told) or not _SIGNED.search(cell.line)
        return not (asked.sign == "+" and cell.negative)
    return (asked.value < 0) == cell.negative


def _told_sign(line: str) -> str:
    """The sign that a line writes beside or without numbers, if it writes only one."""
    told = {
        "".join(groups).replace("−", "-").replace("nega", "-").replace("posi", "+")
        for groups in _TOLD_SIGN.findall(line)
    }
    return told.pop() if len(told) == 1 else ""
