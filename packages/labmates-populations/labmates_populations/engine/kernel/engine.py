"""Games of many groups at once, round by round. No strategy's code runs here; processes of players make decisions.

A player that fails makes the fallback move of its attitude; it does not affect the game otherwise.
"""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.batches import Batch, Errors, Result
from labmates_populations.engine.kernel.hosts import History, Host, HostError, UnreadyError
from labmates_populations.engine.kernel.limits import MOST_SPENT
from labmates_populations.engine.kernel.players import FAILED, STOPPED, TIMEOUT
from labmates_populations.engine.kernel.source import Source
from labmates_populations.engine.kernel.tables import UNKNOWN, Table
from labmates_populations.engine.kernel.wire import send
from labmates_populations.machine import NativePlayers, Programs, Terms, load_machine
from labmates_populations.repeated import RepeatedGame

_AT_ONCE = 8
"""Number of players with separate processes that decide at the same time."""
_MOST_ALONE = 128
"""Maximum number of these processes; a player whose process was ended repeats its game up to the current round."""
_MOST_TABLES = 2
_NOISE = 1
"""Component of the seed of noise, in contrast to players' random numbers."""


def serve(connection: socket.socket, settings: dict[str, Any], requests: int) -> None:
    """Play batches until the connection closes; `requests` is the descriptor of the socket to the forking process."""
    send(connection, {"ready": True})
    with socket.socket(fileno=requests) as forks, Connection(connection.detach()) as link:
        engine = Engine(forks, settings)
        while True:
            try:
                sources, batch, native = link.recv()
            except EOFError:
                return
            engine.sources += sources
            try:
                link.send(engine.play(batch, native=native))
            except (HostError, UnreadyError) as error:
                link.send((str(error), isinstance(error, UnreadyError) and not error.confined))


class Engine:
    """Plays batches; `forks` is the socket to the forking process, for `settings` see `players.serve`."""

    def __init__(self, forks: socket.socket, settings: Mapping[str, Any]) -> None:
        self.sources: list[Source] = []
        self.alone: set[int] = set()
        """Compiled strategies that exceeded the shared memory, and have separate processes from then on."""
        self._forks = forks
        self._settings = dict(settings)
        self._together: Host | None = None
        self._tables: dict[Any, Table] = {}
        self._programs: Programs | None = None
        self._learned = 0
        self._facts = np.zeros((0, 4), bool)

    def _programs_for(self, batch: Batch) -> Programs | None:
        """Programs of the machine; None if it is not installed or does not support the batch."""
        if batch.given is not None:
            return None
        if self._programs is None and (machine := load_machine(self._settings["machine"])) is not None:
            self._programs = machine.load()
        if self._programs is not None:
            self._programs.learn([source.program for source in self.sources[self._learned :]])
            self._learned = len(self.sources)
        return self._programs

    def facts(self, strategies: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Facts of strategies: whether each may be run, is compiled, has the paper's form, and draws random numbers.

        The shape is ``(4, strategies)``.
        """
        new = self.sources[len(self._facts) :]
        if new:
            rows = [(source.playable, source.compiled, source.found.paper, source.found.random) for source in new]
            self._facts = np.concatenate([self._facts, np.array(rows, bool)])
        return self._facts[strategies].T

    def play(self, batch: Batch, *, native: bool) -> Result:
        """Play one game in each group, with the machine if `native`.

        Raises
        ------
        HostError
            If a process of players dies for a reason other than a strategy.
        UnreadyError
            If a process of players can't be started.
        """
        began = time.process_time()
        play = _Play(batch, self, self._programs_for(batch) if native else None)
        try:
            for t in range(batch.rounds):
                play.round(t)
        except BaseException:
            self.end_together()
            raise
        finally:
            play.close()
        if batch.anew:
            self.end_together()
        own = play.own_seconds
        seconds = own + time.process_time() - began
        errors = {strategy: error.trimmed() for strategy, error in play.errors.items()}
        return Result(play.actions, errors, own, seconds)

    def together(self) -> Host:
        """The process of compiled players."""
        if self._together is None:
            self._together = self.host()
        return self._together

    def host(self, *, alone: bool = False) -> Host:
        """A new process of players, or of one player `alone`."""
        return Host(self._forks, self._settings, alone)

    @property
    def most_seconds(self) -> float:
        """Limit of the processor time of a strategy with separate processes in a batch."""
        return float(2 * MOST_SPENT * self._settings["seconds"])

    def end_together(self) -> None:
        """End the process of compiled players; the next one starts afresh."""
        if self._together is not None:
            self._together.close()
            self._together = None

    def table(self, game: RepeatedGame) -> Table:
        """The cached moves of a game."""
        table = self._tables.pop(game, None) or Table(game.n_players)
        self._tables[game] = table  # least recently used first
        if len(self._tables) > _MOST_TABLES:
            del self._tables[next(iter(self._tables))]
        return table


def terms_of(game: RepeatedGame) -> Terms:
    """What a game is to players of the machine."""
    parameters = {"n_players": game.n_players, "n_rounds": game.n_rounds, **game.parameters}
    return Terms(game.n_rounds, 0 if game.is_binary else len(game.labels), game.start(1) is not None, parameters)


def _slips(batch: Batch) -> NDArray[np.uint8] | None:
    """Shifts of moves by noise, ``(groups, rounds, players)``; each group draws from its own seed."""
    if not batch.game.noise:
        return None
    shape = batch.game.n_rounds, batch.groups.shape[1]
    numbers = batch.group_numbers.tolist()
    drawn = [np.random.default_rng([batch.seed, group, _NOISE]).random(shape) for group in numbers]
    slips = np.array(drawn) / batch.game.noise  # uniform below 1 if there is a slip
    return np.where(slips < 1, 1 + slips * (len(batch.game.labels) - 1), 0).astype(np.uint8)


class _Play:
    """The state of a batch in play."""

    def __init__(self, batch: Batch, engine: Engine, programs: Programs | None) -> None:
        self._batch, self._engine, game = batch, engine, batch.game
        self._strategies = batch.groups.reshape(-1)
        places, rounds, others = len(self._strategies), game.n_rounds, game.n_players - 1
        playable, self._compiled, of_paper, random = engine.facts(self._strategies)
        paper = bool(of_paper.any())
        kind: Any = np.bool_ if game.is_binary else np.uint8
        theirs = (
            (np.zeros((places, rounds, others), kind), np.zeros((places, rounds, others))) if paper else (None, None)
        )
        self.actions = np.empty((len(batch.groups), rounds, batch.groups.shape[1]), kind)
        self.errors: dict[int, Errors] = {}
        self._spent: Counter[int] = Counter()
        """Players of each strategy that exceeded a limit, or ended their process."""
        self.own_seconds = 0.0
        self._stock = game.start(len(batch.groups))
        cooperate = np.isin(self._strategies, list(batch.cooperate))
        self._fallback = cooperate if game.is_binary else np.where(cooperate, 0, len(game.labels) - 1).astype(kind)
        self._running = ~np.isin(self._strategies, list(batch.broken))
        self._running &= playable
        for place in np.flatnonzero(~self._running).tolist():
            self._fail(place, -1, "is not run", over=True)
        self._compiled &= ~np.isin(self._strategies, list(engine.alone))
        # Players of a strategy are consecutive, so its code stays in the processor's cache.
        self._order = np.empty(places, np.int64)
        self._order[np.argsort(self._strategies, kind="stable")] = np.arange(places)
        self._hosts: dict[int, Host] = {}
        self._used: defaultdict[int, float] = defaultdict(float)
        """Processor time of the players of each strategy that have separate processes."""
        self._told = {
            "game": {"name": game.name, "n_players": game.n_players, "n_rounds": rounds, "parameters": game.parameters},
            "moves": len(game.labels),
            "seed": batch.seed, "seats": batch.groups.shape[1], "paper": paper,
        }  # fmt: skip
        same = self._running & ~random & ~of_paper
        # With noise, a move does not follow from the player's observations.
        same &= game.is_binary and game.noise == 0 and batch.given is None and not game.sources
        self._begun = False
        self._slips = _slips(batch)
        self._native: NativePlayers | None = None
        payoffs: NDArray[np.float64] = np.zeros((places, rounds))
        by_action = () if game.is_binary else (len(game.labels),)
        counts: NDArray[np.int64] = np.zeros((places, rounds, *by_action), np.int64)
        if programs is not None:
            able, seats = self._running & self._compiled, batch.groups.shape[1]
            numbers = batch.group_numbers
            self._native = programs.players(terms_of(game), self._strategies, able, batch.seed, numbers, seats)
            same &= ~self._native.playing
            payoffs, counts = self._native.payoffs, self._native.counts
        self._table = engine.table(game)
        self._nodes = self._table.start(self._strategies, same & (not batch.anew), rounds)
        stocks = None if game.start(1) is None else np.zeros((places, rounds))
        self._history = History(np.zeros((places, rounds), kind), payoffs, counts, stocks, *theirs)

    def round(self, t: int) -> None:
        """Play a round: decisions of all players, then payoffs."""
        game, groups = self._batch.game, self._batch.groups
        if self._stock is not None and self._history.stocks is not None:
            self._history.stocks[:, t] = np.repeat(self._stock, groups.shape[1])
        chosen: NDArray[Any] = self._fallback.copy()
        waiting = self._running
        if self._native is not None:
            stocks = None if self._history.stocks is None else self._history.stocks[:, t]
            self._native.decide(t, chosen, stocks)
            waiting = waiting & ~self._native.playing
        known = self._table.moves(self._nodes)
        chosen[known != UNKNOWN] = known[known != UNKNOWN]
        waiting = waiting & (known == UNKNOWN)
        if waiting.any():
            self._decide(t, np.flatnonzero(waiting), chosen)
        if self._batch.given is not None and t < self._batch.given.shape[1]:
            chosen = self._batch.given[:, t].reshape(-1)
        elif self._slips is not None:
            slips = self._slips[:, t].reshape(-1)
            chosen = chosen ^ slips.astype(bool) if game.is_binary else (chosen + slips) % len(game.labels)
        own = chosen.reshape(groups.shape)
        actions, paid, counts = self._outcome(t, own)
        self._stock = game.next_stock(self._stock, paid)
        self.actions[:, t] = own
        counts = counts.reshape(-1, *self._history.counts.shape[2:])
        self._write(t, actions, paid, counts)
        self._nodes = self._table.after(self._nodes, counts)

    def _outcome(self, t: int, own: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
        """The moves and payoffs of a round, of the strategies first, and the moves of others that each of them sees."""
        game, opponents = self._batch.game, self._batch.opponents
        if opponents is None:
            return own, game.payoffs(own, self._stock), game.others(own, own)
        actions = np.concatenate([own, opponents[np.arange(len(own)) % len(opponents), t]], axis=1)
        return actions, game.payoffs(actions, self._stock), game.others(actions, own)

    def _write(self, t: int, actions: NDArray[Any], paid: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add a round to the players' observations."""
        history, seats = self._history, self._batch.groups.shape[1]
        history.actions[:, t] = actions[:, :seats].reshape(-1)
        if self._native is not None:
            self._native.actions[:, t] = history.actions[:, t]
        history.payoffs[:, t] = paid[:, :seats].reshape(-1)
        history.counts[:, t] = counts
        if history.their_actions is not None and history.their_payoffs is not None:
            for seat in range(seats):
                history.their_actions[seat::seats, t] = np.delete(actions, seat, axis=1)
                history.their_payoffs[seat::seats, t] = np.delete(paid, seat, axis=1)

    def _decide(self, t: int, missing: NDArray[np.int64], chosen: NDArray[Any]) -> None:
        """Let players decide, only one of the players in the same node."""
        nodes = self._nodes[missing]
        if nodes.any():
            alone = -1 - np.arange(len(nodes))
            _, first, which = np.unique(np.where(nodes > 0, nodes, alone), return_index=True, return_inverse=True)
        else:
            first = which = np.arange(len(nodes))
        asked = missing[first]
        answers = self._answers(t, asked)
        failed = answers == FAILED
        chosen[missing[~failed[which]]] = answers[which][~failed[which]]
        self._table.keep(self._nodes[asked[~failed]], answers[~failed])
        if failed.any():
            # The other players in these nodes are asked too, because each failure counts separately.
            more = missing[np.isin(missing, asked, invert=True) & failed[which]]
            told = self._answers(t, more)
            chosen[more[told != FAILED]] = told[told != FAILED]
            self._nodes[more[told == FAILED]] = 0
        self._nodes[asked[failed]] = 0

    def _answers(self, t: int, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The players' answers; `FAILED` for those that have failed."""
        answers = np.full(len(places), FAILED, np.uint8)
        while True:
            compiled = self._compiled[places]
            if not compiled.any() or self._ask_together(t, places, np.flatnonzero(compiled), answers):
                break
        waiting = np.flatnonzero(~compiled).tolist()
        while waiting:
            wave = self._wave(places, waiting)
            self._ask_alone(t, places, wave, answers)
            waiting = [index for index in waiting if index not in wave]
        return answers

    def _wave(self, places: NDArray[np.int64], waiting: Sequence[int]) -> list[int]:
        """The players to ask next: per strategy, no more than may still exceed a limit before it is stopped."""
        wave: list[int] = []
        asked: Counter[int] = Counter()
        for index in waiting:
            strategy = int(self._strategies[places[index]])
            if self._is_stopped(strategy) or self._spent[strategy] + asked[strategy] < MOST_SPENT:
                asked[strategy] += 1
                wave.append(index)
            if len(wave) == _AT_ONCE:
                break
        return wave

    def _ask_together(
        self, t: int, places: NDArray[np.int64], which: NDArray[np.int64], answers: NDArray[np.uint8]
    ) -> bool:
        """Ask compiled players; False if a strategy gets separate processes from now on, and the others must repeat."""
        host = self._engine.together()
        if not self._begun:
            facts = self._facts(range(len(self._batch.groups)))
            host.begin(facts, self._batch.group_numbers, np.arange(len(self._strategies)))
            self._begun = True
        which = which[np.argsort(self._order[places[which]])]
        asked = places[which]
        host.ask(t, asked, self._strategies[asked], self._history, self._engine.sources)
        try:
            told, failures = self._taken(host)
            greedy = {int(self._strategies[asked[failure["index"]]]) for failure in failures if failure["memory"]}
        except HostError as error:
            if error.place < 0:
                raise
            greedy = {int(self._strategies[error.place])}
        if greedy:
            self._engine.alone |= greedy
            self._compiled &= ~np.isin(self._strategies, list(greedy))
            self._engine.end_together()
            self._begun = False
            return False
        answers[which] = told
        self._failed(asked, failures)
        return True

    def _taken(self, host: Host) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
        answers = host.answers()
        self.own_seconds += answers.seconds
        return answers.moves, answers.failures

    def _ask_alone(self, t: int, places: NDArray[np.int64], wave: Sequence[int], answers: NDArray[np.uint8]) -> None:
        """Ask players with separate processes."""
        hosts: list[tuple[int, int, Host]] = []
        for index in wave:
            place = int(places[index])
            if self._is_stopped(int(self._strategies[place])):
                self._over(place, t, STOPPED)
                continue
            host = self._alone(place)
            one = places[index : index + 1]
            host.ask(t, one, self._strategies[one], self._history, self._engine.sources)
            hosts.append((index, place, host))
        for index, place, host in hosts:
            strategy = int(self._strategies[place])
            try:
                told, failures = self._taken(host)
                answers[index] = told[0]
                self._failed(places[index : index + 1], failures)
                self._used[strategy] += host.used()
                if self._running[place] and self._used[strategy] > self._engine.most_seconds:
                    self._over(place, t + int(told[0] == FAILED), TIMEOUT, spent=True)
                    answers[index] = FAILED
            except HostError as error:
                self._used[strategy] += host.used()
                self._over(place, t, error.what, fatal=True)
            if not self._running[place]:
                self._hosts.pop(place).close()

    def _facts(self, groups: Sequence[int]) -> dict[str, Any]:
        """The description of a batch for a process of players: the game, and the code that players read."""
        if not self._batch.texts:
            return self._told
        members = {str(self._batch.group_numbers[group]): self._batch.groups[group].tolist() for group in groups}
        numbers = {number for seats in members.values() for number in seats}
        return {**self._told, "members": members, "texts": {str(one): self._batch.texts[one] for one in numbers}}

    def _alone(self, place: int) -> Host:
        """The process of one player."""
        host = self._hosts.pop(place, None)
        if host is None:
            if len(self._hosts) >= _MOST_ALONE:
                self._hosts.pop(next(iter(self._hosts))).close()
            host = self._engine.host(alone=True)
            facts = self._facts([place // self._batch.groups.shape[1]])
            host.begin(facts, self._batch.group_numbers, np.array([place]))
        self._hosts[place] = host
        return host

    def _failed(self, places: NDArray[np.int64], failures: Sequence[Mapping[str, Any]]) -> None:
        for failure in failures:
            over, t = failure["over"], failure["round"]
            if 0 <= t < self._batch.rounds - 1 and self._batch.given is not None and not over:
                continue
            place = int(places[failure["index"]])
            self._fail(place, t, failure["what"], over=over, spent=failure["spent"])
            self._running[place] &= not over

    def _is_stopped(self, strategy: int) -> bool:
        """Whether a strategy exceeded the limits of a batch, and is not run for its rest."""
        return self._spent[strategy] >= MOST_SPENT or self._used[strategy] > self._engine.most_seconds

    def _fail(self, place: int, t: int, what: str, *, over: bool, spent: bool = False, fatal: bool = False) -> None:
        """Count a player's error; with `over` it falls back for the rest of the game."""
        strategy = int(self._strategies[place])
        group, seat = divmod(place, self._batch.groups.shape[1])
        errors = self.errors.setdefault(strategy, Errors(t, what))
        cost = self._batch.game.n_rounds - max(t, 0) if over else 1
        errors.add(f"{self._batch.group_numbers[group]} {seat}", t, what, cost)
        errors.spent += spent
        errors.fatal |= fatal
        self._spent[strategy] += spent or fatal

    def _over(self, place: int, t: int, what: str, *, spent: bool = False, fatal: bool = False) -> None:
        self._fail(place, t, what, over=True, spent=spent, fatal=fatal)
        self._running[place] = False
        self._nodes[place] = 0

    def close(self) -> None:
        """End the separate processes of players."""
        for host in self._hosts.values():
            host.close()
