"""The published data of CoopEval: cells with the authors' ratings, and cross-plays from their records.

A published folder is one cell: ``config.json`` (game, mechanism, models), ``matchup_payoffs.json`` (the payoffs of each
match, under reputation of each agent), the results of the authors' program (``agent_average_payoff.json``,
``replicator_dynamics_fitness.json`` and ``deviation_ratings.json``, each by agent), ``records.jsonl`` (a line for each
match: moves, votes and signatures; one line under reputation), and the proposals (``mediator_design.json`` or
``contract_design.json``). Folders of cells are in the folder of their run; the repository has three runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from labmates.errors import UsageError
from labmates.games.dilemmas import get_dilemma
from labmates.games.payoff_table import PayoffTable
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.negotiation import Negotiation
from labmates.mechanisms.registry import make_mechanisms
from labmates.mechanisms.repetition import discount_weights
from labmates.stats.deviation import ranks
from labmates.stats.domains import Domain
from labmates.stats.metagame import Array, metagame
from labmates.stats.ratings import Cell, Evolution, Rated, rate
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.records import Agreement, CrossPlay, Decided, Round, scale_of, shown_mechanism

PAYOFFS: Final = "matchup_payoffs.json"
RECORDS: Final = "records.jsonl"
RATINGS: Final = {
    "mean": "agent_average_payoff.json",
    "fitness": "replicator_dynamics_fitness.json",
    "deviation": "deviation_ratings.json",
}
GAMES: Final = {
    "PrisonersDilemma": "prisoners",
    "PublicGoods": "public-goods",
    "TravellersDilemma": "travellers",
    "TrustGame": "trust",
    "StagHunt": "stag-hunt",
    "MatchingPennies": "matching-pennies",
}
MECHANISMS: Final = {
    "NoMechanism": "none",
    "Repetition": "repetition",
    "ReputationFirstOrder": "reputation",
    "Reputation": "reputation(order=3)",
    "Mediation": "mediation",
    "Contracting": "contract",
}
DILEMMAS: Final = ("prisoners", "public-goods", "travellers", "trust")
"""The games of Table 2."""
DESIGNS: Final = {"Mediation": "mediator", "Contracting": "contract"}
"""What players agree on, by mechanism: the name of a proposal in its file, and of the index of the selected one."""
_COOPERATES: Final = ("COOPERATE", "CONTRIBUTE", "GIVE", "STAG", "HEADS")
"""Published names of the first action; others are the second, or end with their number."""
AGREE: Final = 1e-6
"""Maximum difference of equal ratings, as a share of the payoffs' range."""

T = TypeVar("T")


@dataclass(frozen=True)
class Published:
    """A cell, rated here and by the authors' program.

    Attributes
    ----------
    rated
        Our ratings.
    values
        The published ratings: ``mean``, ``fitness``, ``deviation`` and the resulting ``rank``, each in the order of the
        models; ratings without a file are missing.
    """

    path: Path
    rated: Rated
    values: Mapping[str, Array]

    def apart(self, rating: str) -> float | None:
        """The largest difference of a model's rating, as a share of the payoffs' range; None if unknown."""
        ours = getattr(self.rated, rating)
        if rating not in self.values or ours is None:
            return None
        return float(np.abs(ours - self.values[rating]).max()) / (float(np.ptp(self.rated.cell.payoffs)) or 1.0)

    @property
    def why(self) -> str:
        """Why ranks differ; empty if they don't."""
        theirs, ours = self.values.get("deviation"), self.rated.deviation
        if theirs is None or ours is None or (self.values["rank"] == self.rated.rank).all():
            return ""
        unit = float(np.ptp(self.rated.cell.payoffs)) or 1.0
        above, below = float((theirs - ours).max()) / unit, float((ours - theirs).max()) / unit
        if max(above, below) <= AGREE:
            return "ratings that are the same but for rounding"
        if _first_difference(theirs, ours, AGREE * unit) > 0:
            return "frozen early"
        return "ours are not the strictest" if below > AGREE else "unknown"


def _first_difference(theirs: Array, ours: Array, least: float) -> float:
    """The first difference, theirs minus ours, between sorted gains, largest first; 0 if they are equal."""
    differences = np.sort(theirs)[::-1] - np.sort(ours)[::-1]
    differences = differences[np.abs(differences) > least]
    return float(differences[0]) if len(differences) else 0.0


@dataclass(frozen=True)
class Unread:
    """A folder that could not be rated, with the reason."""

    path: Path
    reason: str


def rate_published(folder: Path, evolution: Evolution) -> tuple[list[Published], list[Unread]]:
    """The rated cells of a checkout of the published data, and the unreadable folders; see `_each`."""
    rated, unread = _each(folder, lambda path: _rated(path, evolution), PAYOFFS)
    return sorted(rated, key=lambda each: _place(each.rated.cell.mechanism, each.rated.cell.game, each.path)), unread


def published_plays(folder: Path) -> tuple[list[CrossPlay], list[Unread]]:
    """The cross-plays of a checkout of the published data, and the unreadable folders; see `_each`.

    Records have drawn actions, not distributions, so an action has a share of 0 or 100 %. Unusable replies, which the
    authors' program asked for again, are not recorded.
    """
    plays, unread = _each(folder, _play, RECORDS)
    return [play for _, play in sorted(plays, key=lambda each: each[0])], unread


def _each(folder: Path, read: Callable[[Path], T], needs: str) -> tuple[list[T], list[Unread]]:
    """What is read of each cell of a checkout (of its main study, if present), and the unreadable ones.

    Raises
    ------
    UsageError
        If the folder has no such cells.
    """
    main = folder / "data" / "main_study"
    root = main if main.is_dir() else folder
    if not root.is_dir():
        raise UsageError(f"{folder} is not a folder")
    found: list[T] = []
    unread: list[Unread] = []
    for path in sorted(config.parent for config in root.rglob("config.json")):
        try:
            found.append(read(path))
        except UsageError as error:
            unread.append(Unread(path.relative_to(root), str(error)))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            reason = f"{needs} does not have the published form ({type(error).__name__}: {error})"
            unread.append(Unread(path.relative_to(root), reason))
    if not found:
        why = f"; the first of {len(unread)} unreadable ones: {unread[0].path}: {unread[0].reason}" if unread else ""
        raise UsageError(f"{root} has no folder with config.json and {needs} that can be read{why}")
    return found, unread


def _place(mechanism: str, game: str, path: Path) -> tuple[int, int, str]:
    return list(MECHANISMS.values()).index(mechanism), list(GAMES.values()).index(game), path.parent.name


def _what(path: Path) -> tuple[Mapping[str, Any], str, str]:
    """The configuration of a cell, its mechanism, by its published name, and our game."""
    config = _json(path / "config.json")
    try:
        mechanism, game = str(config["mechanism"]["type"]), str(config["game"]["type"])
    except (KeyError, TypeError) as error:
        raise UsageError("config.json has no mechanism or no game") from error
    for name, what, known in ((mechanism, "mechanism", MECHANISMS), (game, "game", GAMES)):
        if name not in known:
            raise UsageError(f"unknown {what} '{name}' (known: {', '.join(known)})")
    return config, mechanism, GAMES[game]


def _rated(path: Path, evolution: Evolution) -> Published:
    _, mechanism, name = _what(path)
    table = get_dilemma(name).game()
    low, high = float(table.table.min()), float(table.table.max())
    payoffs_of = _of_agents if mechanism.startswith("Reputation") else _of_matches
    models, payoffs = payoffs_of(_json(path / PAYOFFS))
    # Payments under a contract may leave the range of the game's table.
    domain = Domain(unit=high - low) if mechanism == "Contracting" else Domain(low, high)
    scale = scale_of(table) if name in DILEMMAS else None
    cell = Cell(path.parent.name, MECHANISMS[mechanism], name, models, payoffs, scale, domain=domain)
    rated = rate(cell, evolution)
    values = {
        rating: values_of_file
        for rating, file in RATINGS.items()
        if (values_of_file := _values(path / file, models)) is not None
    }
    if "deviation" in values:
        values["rank"] = ranks(values["deviation"], unit=float(np.ptp(cell.payoffs)))
    return Published(path, rated, values)


def _of_matches(played: Mapping[str, Any]) -> tuple[tuple[str, ...], Array]:
    """The models, and their payoffs in the metagame of all repetitions of their matches."""
    matches = [(list(map(_agent, match["players"])), match["payoffs"]) for match in played["profile"]]
    models = tuple(sorted({agent for agents, _ in matches for agent in agents}))
    totals = [
        ([models.index(agent) for agent in agents], _discounted(played, repetition).tolist())
        for agents, repetitions in matches
        for repetition in repetitions
    ]
    return models, metagame(len(models), totals)


def _of_agents(played: Mapping[str, Any]) -> tuple[tuple[str, ...], Array]:
    """The models, and the mean payoff of each model's agents, one for each seat of the game."""
    agents = grouped((_agent(agent["player"]), _discounted(played, agent["points"])) for agent in played["profile"])
    return tuple(sorted(agents)), np.array([np.mean(agents[name]) for name in sorted(agents)])


def _discounted(played: Mapping[str, Any], rounds: Sequence[Any]) -> Array:
    return np.asarray(discount_weights(float(played["discount"]), len(rounds)) @ np.array(rounds, dtype=float))


def _play(path: Path) -> tuple[tuple[int, int, str], CrossPlay]:
    """The place of a cell among all, and its cross-play."""
    config, mechanism, name = _what(path)
    models = tuple(sorted({_agent(agent) for agent in config["agents"]}))
    table = get_dilemma(name)
    labels = table.game().labels
    has_metagame = not mechanism.startswith("Reputation")
    discount = float(_json(path / PAYOFFS).get("discount", 0))
    thing = DESIGNS.get(mechanism, "")
    designs = _json(path / f"{thing}_design.json") if thing else {}
    rounds: list[Round] = []
    agreements: list[Agreement] = []
    for number, line in enumerate(_text(path / RECORDS).splitlines(), 1):
        played = json.loads(line)
        # Without a mechanism a line has the moves of one round, otherwise a list of rounds.
        entries = [played] if isinstance(played[0], dict) and "player" in played[0] else played
        together = len(entries[0]["moves"] if thing else entries[0])
        seen: Counter[int] = Counter()
        weights = discount_weights(discount, len(entries) if has_metagame else len(entries) // len(models))
        for at, entry in enumerate(entries):
            moves = entry["moves"] if thing else entry
            seats = [_seat(move["player"], models) for move in moves]
            # An agent is one of a model's, who keeps its seat.
            agents = tuple(range(together)) if has_metagame else tuple(who * together + seat for who, seat in seats)
            turn = seen[agents[0]]
            seen.update(agents)
            playing = tuple(models[who] for who, _ in seats)
            place = f"{number}/{at}/"
            names = tuple((*each, DELEGATE) if thing == "mediator" else each for each in labels)
            actions = tuple(
                DELEGATE if move.get("mediated") else own[_action(move["action"])]
                for own, move in zip(labels, moves, strict=True)
            )
            mixes = tuple(
                tuple(100 * (label == action) for label in each) for each, action in zip(names, actions, strict=True)
            )
            payoffs = tuple(float(move["points"]) for move in moves)
            rounds.append(
                Round(
                    step=f"{place}play",
                    round=turn,
                    agents=agents,
                    mixes=mixes,
                    actions=actions,
                    payoffs=payoffs,
                    expected=payoffs,
                    weight=float(weights[turn]),
                    match=str(number),
                    models=playing,
                    labels=names,
                    failed=(False,) * together,
                )
            )
            if thing:
                proposals = [_design(designs[move["player"]][thing], labels[0]) for move in moves]
                agreements.append(_agreement(entry, thing, str(number), place, playing, proposals, table))
    decided = [
        Decided(f"{each.step.removesuffix('play')}choose/{seat + 1}", who, seat, "choose", failed=False)
        for each in rounds
        for seat, who in enumerate(each.models)
    ]
    terms = {"order": 3 if mechanism == "Reputation" else 1} if not has_metagame else {}
    shown = shown_mechanism({"mechanism": MECHANISMS[mechanism].partition("(")[0], "terms": terms})
    what = (path.parent.name, shown, name, models, table, has_metagame)
    return _place(MECHANISMS[mechanism], name, path), CrossPlay(*what, tuple(rounds), tuple(agreements), tuple(decided))


def _agreement(
    entry: Mapping[str, Any],
    thing: str,
    match: str,
    place: str,
    models: tuple[str, ...],
    proposals: Sequence[Mapping[str, Any] | None],
    table: PayoffTable,
) -> Agreement:
    """The outcome of the proposals and votes of a match."""
    [mechanism] = make_mechanisms({"mediator": "mediation"}.get(thing, thing))
    assert isinstance(mechanism, Negotiation)
    votes = tuple(
        tuple(seat for seat in range(len(proposals)) if voter["votes"].get(str(seat + 1))) for voter in entry["votes"]
    )
    counts = Counter(seat for vote in votes for seat in vote)
    selected = entry.get(f"selected_{thing}_index")
    signatures = entry.get("signatures")
    return Agreement(
        match=match,
        place=place,
        models=models,
        proposals=tuple(proposals),
        stable=tuple(None if each is None else mechanism.stability(table.game(), each) for each in proposals),
        votes=votes,
        winners=() if selected is None else (int(selected) - 1,),
        tied=sum(count == max(counts.values()) for count in counts.values()),
        signed=(tuple(bool(each["agree"]) for each in signatures.values()),) if signatures else (),
    )


def _design(published: Any, labels: Sequence[str]) -> dict[str, Any] | None:
    """A proposal: the mediator's action for each number of delegators, or the payment for each action."""
    if published is None:
        return None
    if isinstance(published, list):
        return {str(number): labels[_action(action)] for number, action in published}
    return {labels[_action(action)]: payment for action, payment in published.items()}


def _action(name: str) -> int:
    """The index of a published action, ``PrisonersDilemmaAction.COOPERATE``."""
    action = name.partition(".")[2]
    number = action.rpartition("_")[2]
    return int(number) if number.isdigit() else int(action not in _COOPERATES)


def _seat(player: str, models: Sequence[str]) -> tuple[int, int]:
    """The model and the seat of a player, ``openai/gpt-5.2(CoT)#P2``."""
    model, _, seat = player.rpartition("#P")
    return models.index(model), int(seat) - 1


def _agent(player: Mapping[str, Any]) -> str:
    """An agent's name, as in the published files: ``openai/gpt-5.2(CoT)``."""
    return f"{player['llm']['model']}({str(player['type']).removesuffix('Agent')})"


def _values(path: Path, models: Sequence[str]) -> Array | None:
    """A published rating of each model; None if there is no such file."""
    if not path.exists():
        return None
    ratings = _json(path)
    try:
        values = [ratings[model]["fitness"] if isinstance(ratings[model], dict) else ratings[model] for model in models]
        return np.array(values, dtype=float)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path.name} has no number for each of {', '.join(models)}") from error


def _json(path: Path) -> Any:
    text = _text(path)
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path.name} is invalid JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path.name} is not a JSON object")
    return data


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"{path.name} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name} can't be read: {error}") from error
    if text.startswith("version https://git-lfs"):
        raise UsageError(f"{path.name} is a pointer of Git LFS: fetch the file itself (git lfs pull)")
    return text
