"""Contradictions between a paper's text and its stated findings.

The text is read as if code had printed it, statement by statement (`judges.printed`). Contradicted is

- a value, where the text gives its subject and statistic another one (or sign) and never the stated one, or more often;
  or gives it the value that is stated for a finding of almost the same name;
- a value of a list, where a statement that gives other entries as stated gives this one another value;
- a value of a group, where a statement about its members has another number in its place; a number of a list, where the
  text speaks of the finding and never mentions the number;
- a name, where the text speaks of the finding and mentions none of its names, or others of their kind beside them; or
  says more often that it falls than that it rises, or the reverse;
- a yes or no, where a p-value beside it says the opposite.

Differences of a few percent are rounding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import BaseModel

from labmates.judges.cells import Cell
from labmates.judges.lookup import CLEAR, FAR, MOST_SHOWN, Book, stated_number
from labmates.judges.meanings import alike, has_all, same_word
from labmates.judges.printed import Printed, read_outputs
from labmates.judges.prose import read_prose, statements
from labmates.judges.rows import Number, agree, read_numbers, without_objects, words_of
from labmates.judges.stated import Asked, claims_of
from labmates.tasks.scoring import plain_name
from labmates.tasks.words import WORDS

COMMON: Final = 3
"""A word in the names of so many findings names no topic of theirs."""
CLOSE: Final = 0.05
"""Relative difference that is no contradiction."""
MOST_BETWEEN: Final = 4
"""Most words from the name of a finding to its value."""


_SHARE = words_of("share fraction proportion percent")
AtOdds = tuple[str, str, str]
"""A finding, its claim, and the statement at odds with it."""
_SIGN_CELL = re.compile(r"\|\s*([-+−–])\s*\|")
_RISES = re.compile(
    r"\b(?:increas|r[io]se|rising|gr[eo]w|more common|gain|favou?r|benefit|help|faster|speed)\w*", re.IGNORECASE
)
_FALLS = re.compile(
    r"\b(?:decreas|declin|fall|fell|drop|lower(?!\s+than)|reduc|rarer|los[et]|harm|hurt|slow|suffer)\w*", re.IGNORECASE
)
_BOUND: Final = r"\b(?:at least|at most|more than|less than|fewer than|up to)"
_SENTENCE, _CLAUSE = re.compile(r"[;:.](?=\s|$)"), re.compile(r",(?=\s|$)")
_PART = re.compile(r"[,;()](?=\s|$|\W)|\b(?:and|but|against|while|whereas)\b")
_IN_WORDS = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def contradictions(text: str, findings: BaseModel) -> Mapping[str, tuple[float, str]]:
    """The contradicted findings of a paper: the share of their claims, and a statement at odds with them."""
    prose, _ = without_objects(read_prose(text).text)  # bare findings are no statements
    said = read_outputs(((_in_digits(one), "") for one in statements(prose)), ())
    book, asked = Book(said, findings), claims_of(findings)
    entries = [one for one in asked if one.value is not None and (one.names or one.is_part)]
    told = ((cell, words_of(cell.line)) for cell in said.cells)
    own = frozenset(cell for cell, words in told if any(_is_of(cell, one, words) for one in entries))
    at_odds = [(one.finding, one.text, place) for one in asked if (place := _contrary(one, said, book, own))]
    at_odds += _unmentioned([one for one in asked if one.value is None and len(one.names) == 1], said, book)
    at_odds += [*_among_peers(asked, said, book), *_reversed(asked, said, book), *_replaced(asked, said, book)]
    at_odds += _exchanged([one for one in asked if one.value is not None and not (one.names or one.is_listed)], said)
    claims = {(finding, claim) for finding, claim, _ in at_odds}
    counts, places = Counter(name for name, _ in claims), {name: place for name, _, place in reversed(at_odds)}
    whole = Counter(one.finding for one in asked)
    return {finding: (count / whole[finding], places[finding][:MOST_SHOWN]) for finding, count in counts.items()}


def _in_digits(statement: str) -> str:
    return _IN_WORDS.sub(lambda match: str(WORDS.index(match[0].lower())), statement)


def _contrary(asked: Asked, said: Printed, book: Book, entries: frozenset[Cell]) -> str:
    """A statement that contradicts a number, or a yes or no; empty if none does. Numbers of `entries` don't."""
    if asked.value is None:
        return "" if asked.names else _denied(asked, said)
    if asked.is_listed or asked.is_part:
        return ""
    is_whole = not asked.names and asked.value.is_integer()
    stated = stated_number(asked.value, is_count=is_whole)
    numbers = [cell for cell in said.cells if not cell.is_size and cell.number.value not in asked.given]
    numbers = [cell for cell in numbers if not _is_bound(cell)]
    if not asked.names:
        numbers = [cell for cell in numbers if cell not in entries]
    about = [cell for cell in numbers if _is_about(cell, asked, book, is_whole=is_whole)]
    exact = [cell for cell in about if agree(stated, cell.number)]
    turned = [cell.line for cell in exact if _is_signed_otherwise(cell, asked) or _is_turned(cell, asked)]
    if 2 * len(turned) > len(exact):
        return turned[0]
    others = [cell for cell in about if _is_far(cell, asked.value)]
    others += [cell for cell in about if cell not in others and _is_signed_otherwise(cell, asked)]
    close = {cell.number.value for cell in others if (is_whole and _is_counted(cell, asked)) or _is_close(cell, asked)}
    agreeing = len(about) - len(others)
    agreeing += sum(
        agree(stated, cell.number) and not (is_whole and cell.number.half)
        for cell in numbers
        if cell not in about
        and (asked.names or same_word(words_of(cell.line), asked.own))
        and not same_word(cell.near | cell.after, asked.rivals)
    )
    most = max((count for value, count in Counter(c.number.value for c in others).items() if value in close), default=0)
    return next(cell.line for cell in others if cell.number.value in close) if most > agreeing else ""


def _is_about(cell: Cell, asked: Asked, book: Book, *, is_whole: bool) -> bool:
    if _is_counted(cell, asked) if is_whole else _is_followed(cell, asked):
        return True
    return (
        not asked.is_count
        and book.gives(cell, asked)
        and (bool(asked.names) or _has_most(words_of(cell.line), asked.own))
    )


def _is_bound(cell: Cell) -> bool:
    """Whether a number is only said to be passed or not: "at least 1 sensor"."""
    return re.search(rf"{_BOUND}\s+{re.escape(cell.number.text)}(?!\w)", cell.line, re.IGNORECASE) is not None


def _is_counted(cell: Cell, asked: Asked) -> bool:
    """Whether the words after a number are those of the counted things: "12 repeated rows"."""
    return asked.is_count and not cell.number.half and has_all(cell.after, asked.own)


def _is_followed(cell: Cell, asked: Asked) -> bool:
    """Whether the words after a number name a measure: "0.81 kg rainfed", "83 % can expect a benefit"."""
    is_share = asked.value is not None and 0 < asked.value < 1 and cell.number.text.endswith("%")
    is_measure = bool(cell.number.half) and not asked.is_count and not asked.names
    own = asked.own - _SHARE if is_share else asked.own
    return is_measure and has_all(cell.after, own) and (is_share or len(cell.after) <= MOST_BETWEEN)


def _has_most(words: frozenset[str], own: frozenset[str]) -> bool:
    """Whether a text has two thirds of the words of a finding's name: "the average effect" of a treatment."""
    return 3 * sum(same_word(words, frozenset({word})) for word in own) >= 2 * len(own)


def _is_signed_otherwise(cell: Cell, asked: Asked) -> bool:
    """Whether a number has the stated size with the other sign, in writing."""
    stated = asked.sign or ("-" if (asked.value or 0) < 0 else "+")
    return cell.negative if stated == "+" else f"+{cell.number.text}" in cell.line


def _is_turned(cell: Cell, asked: Asked) -> bool:
    """Whether the verb of a change has the other sign: "lowers the improvement by 2.8", for a finding about it."""
    way = _FALLS if (asked.value or 0) > 0 else _RISES
    said = re.search(rf"({way.pattern})\s(.*?)\sby\s[-+−]?{re.escape(cell.number.text)}", cell.line, re.IGNORECASE)
    what = said[2] if said else ""
    return same_word(words_of(what), asked.words) and not (_FALLS.search(what) or _RISES.search(what) or "loss" in what)


def _is_close(cell: Cell, asked: Asked) -> bool:
    """Whether a word of a finding's name stands shortly before a number."""
    if _is_followed(cell, asked):
        return True
    before = cell.line.partition(cell.number.text)[0].split()[-MOST_BETWEEN:]
    return bool(asked.names) or same_word(words_of(" ".join(before)), asked.own)


def _is_far(cell: Cell, value: float) -> bool:
    return _differs(cell.number, value)


def _differs(number: Number, value: float) -> bool:
    return abs(number.value - abs(value)) > max(CLOSE * abs(value), number.half)


def _denied(asked: Asked, said: Printed) -> str:
    """A statement with a p-value that says the opposite of a yes or no."""
    tested = (cell for cell in said.cells if "p" in cell.near and same_word(cell.label, asked.own))
    return next((cell.line for cell in tested if (cell.number.value < CLEAR) != (asked.text == "true")), "")


def _unmentioned(names: Iterable[Asked], said: Printed, book: Book) -> list[AtOdds]:
    """The names of findings of which a text speaks without mentioning any of them."""
    mentioned = frozenset[str]().union(*(book.mentioned(line.words) for line in said.lines))
    known = {asked.finding for asked in names if asked.names <= mentioned}
    found = []
    for asked in names:
        spoken = next((line.text for line in said.lines if same_word(line.words, asked.own)), "")
        if spoken and asked.finding not in known:
            found.append((asked.finding, asked.text, spoken))
    return found


def _among_peers(claims: Sequence[Asked], said: Printed, book: Book) -> Iterator[AtOdds]:
    """Values that the text gives otherwise where it gives others of their list, or of their group, as stated."""
    of_line: dict[str, list[Cell]] = {}
    for cell in said.cells:
        if not cell.is_size:
            of_line.setdefault(cell.line, []).append(cell)
    valued = [one for one in claims if one.value is not None and one.names]
    for asked in valued:
        peers = [one for one in valued if one.finding == asked.finding and one.own == asked.own and one is not asked]
        group = [one for one in valued if one.finding == asked.finding and one.names == asked.names]
        elsewhere = [one for one in valued if one.finding != asked.finding and one.names == asked.names]
        found, places = False, list[str]()
        for line, cells in of_line.items():
            if asked.is_part:
                its = cells if book.are_members(book.mentioned(words_of(line)), asked.names) else []
                known = [cell for cell in its if any(_gives(cell, one) for one in group)]
                others = [
                    cell for cell in its if cell not in known and cell.number.half and _is_comparable(cell, asked)
                ]
                is_told = bool(known)
            else:
                its = [c for c in _beside(cells, asked, book) if not any(_is_of(c, one, c.near) for one in elsewhere)]
                others = [
                    c for c in its if not _gives(c, asked) and (_is_comparable(c, asked) or _is_opposite(c, asked))
                ]
                is_told = any(_gives(cell, one) for one in peers for cell in _beside(cells, one, book))
                is_told = is_told and len(asked.names) == 1
            found = found or any(_gives(cell, asked) for cell in its)
            if len(asked.names) > 1 and not asked.is_part and _has_other_sign(line, its, asked, group):
                yield asked.finding, asked.text, line
            if is_told and others:
                places.append(line)
        if places and not found:
            yield asked.finding, asked.text, places[0]


def _exchanged(claims: Sequence[Asked], said: Printed) -> Iterator[AtOdds]:
    """Values that clauses of the text give to each other's findings: 0.8 irrigated and 0.2 rainfed."""
    texts = [line.text for line in said.lines if "respectively" not in line.words]
    clauses = [(words_of(part), read_numbers(part), text) for text in texts for part in _PART.split(text)]
    for asked in claims:
        for other in claims:
            places: dict[bool, list[str]] = {True: [], False: []}
            for words, numbers, text in clauses if other.own & asked.siblings else ():
                if same_word(words, asked.own) and not same_word(words, other.own):
                    near = {one.finding for one in (asked, other) for n in numbers if not _differs(n, one.value or 0.0)}
                    if len(near) == 1:
                        places[other.finding in near].append(text)
            if len(places[True]) > len(places[False]):
                yield asked.finding, asked.text, places[True][0]


def _beside(cells: Iterable[Cell], asked: Asked, book: Book) -> list[Cell]:
    """The first number after the name of a claim in a statement, or all numbers of a pair."""
    its = [cell for cell in cells if book.mentioned(cell.near) == asked.names]
    its = its or [cell for cell in cells if book.mentioned(cell.near | cell.label) == asked.names]
    return its if len(asked.names) > 1 else its[:1]


def _gives(cell: Cell, asked: Asked) -> bool:
    assert asked.value is not None
    return not _is_far(cell, asked.value) and not _is_signed_otherwise(cell, asked)


def _is_of(cell: Cell, asked: Asked, words: frozenset[str]) -> bool:
    """Whether a number is the value of a claim of whose finding these words tell."""
    return _gives(cell, asked) and same_word(words, asked.field)


def _is_comparable(cell: Cell, asked: Asked) -> bool:
    assert asked.value is not None
    return abs(asked.value) <= FAR * cell.number.value and cell.number.value <= FAR * abs(asked.value)


def _is_opposite(cell: Cell, asked: Asked) -> bool:
    assert asked.value is not None
    return not _is_far(cell, asked.value) and _is_signed_otherwise(cell, asked)


def _has_other_sign(line: str, cells: Sequence[Cell], asked: Asked, pair: Sequence[Asked]) -> bool:
    """Whether a row of a table gives an effect's size with the other sign, and is no row of the reverse effect."""
    signs = {"+" if sign == "+" else "-" for sign in _SIGN_CELL.findall(line)}
    given = [one for one in pair if any(not _is_far(cell, one.value or 0.0) for cell in cells)]
    return len(signs) == 1 and asked in given and not any({one.sign} == signs for one in given)


def _reversed(claims: Sequence[Asked], said: Printed, book: Book) -> Iterator[AtOdds]:
    """Names that the text says to fall where they are stated to rise, or the reverse."""
    fields = {one.finding: words_of(one.finding) for one in claims}
    uses = Counter(word for words in fields.values() for word in words)
    directed = [one for one in claims if one.value is None and len(one.names) == 1 and one.direction]
    topics = {one.finding: frozenset(w for w in fields[one.finding] - one.own if uses[w] < COMMON) for one in directed}
    turned = {(topics[one.finding], -one.direction) for one in directed}
    for asked in (one for one in directed if (topics[one.finding], one.direction) in turned):
        topic, others = topics[asked.finding], frozenset().union(*topics.values()) - topics[asked.finding]
        lines = [line for line in said.lines if alike(line.words, topic) or not (topic or alike(line.words, others))]
        turns = [(_turn(line.text, asked, book), line.text) for line in lines]
        against = [text for turn, text in turns if turn == -asked.direction]
        if len(against) > sum(turn == asked.direction for turn, _ in turns):
            yield asked.finding, asked.text, against[0]


def _turn(text: str, asked: Asked, book: Book) -> int:
    """Whether a statement says that a name rises (1) or falls (-1): by the verb before its names, or the one after."""
    for sentence in _SENTENCE.split(text):
        verbs, named = _verbs(sentence), _named(sentence, book)
        leads = bool(verbs and named) and verbs[0][0] < named[0][0]
        for clause in [sentence] if leads else _CLAUSE.split(sentence):
            verbs, its = _verbs(clause), [place for place, names in _named(clause, book) if names == asked.names]
            ways = [way for place, way in verbs if its and (place < its[0]) is leads]
            if ways:
                return ways[-1] if leads else ways[0]
    return 0


def _verbs(text: str) -> list[tuple[int, int]]:
    ways = ((_RISES, 1), (_FALLS, -1))
    return sorted((match.start(), way) for pattern, way in ways for match in pattern.finditer(text))


def _named(text: str, book: Book) -> list[tuple[int, frozenset[str]]]:
    found = ((match.start(), book.mentioned(words_of(match[0]))) for match in re.finditer(r"\w+", text))
    return [(place, names) for place, names in found if names]


def _replaced(claims: Sequence[Asked], said: Printed, book: Book) -> Iterator[AtOdds]:
    """Names that a text never mentions where it lists others of their kind, and numbers of a list that it never has."""
    mentioned = frozenset[str]().union(*(book.mentioned(line.words) for line in said.lines))
    stated = {plain_name(name) for one in claims for name in one.names}
    values = {cell.number.value for cell in said.cells}
    for asked in claims:
        if asked.is_listed and asked.is_count and not asked.names:
            place = next((cell.line for cell in said.cells if same_word(words_of(cell.line), asked.own)), "")
            if place and asked.value not in values and asked.own <= words_of(asked.finding):
                yield asked.finding, asked.text, place
        elif asked.value is None and len(asked.names) == 1 and not asked.names & mentioned:
            [name] = asked.names
            kind = re.compile(re.sub(r"\d", r"\\d", re.escape(plain_name(name))))
            for line in said.lines if any(map(str.isdigit, name)) else ():
                strangers = {word for word in line.words if kind.fullmatch(word)} - stated
                if strangers and len(asked.fellows & book.mentioned(line.words)) >= len(asked.fellows) / 2:
                    yield asked.finding, asked.text, line.text
                    break
