from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.games.iterated.match import Payoffs, Round, turned
from labmates.games.iterated.strategies import STRATEGIES, move_of
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Heard
from labmates.records.bodies import Bodies
from labmates.records.events import PayoffEvent
from labmates.records.run import RunRecord
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.context import MatchState, TournamentContext
from labmates.workflows.tournament.experiment import METRICS
from labmates.workflows.tournament.match import view_of
from labmates.workflows.tournament.planning import final_plans
from labmates.workflows.tournament.players import Situation, answers
from tests.support.puppet import Puppet, puppet
from tests.support.tournaments import Arena, lively, move, reply
from tests.support.tournaments import arena as open_arena

SHORT: dict[str, Any] = {"team_size": 2, "rounds": 5, "rounds_per_player": 14}
"""Four players, six matches, all but the last rounds of which are played if nobody leaves."""
UNBIASED = re.compile("cooperat|defect|prisoner", re.IGNORECASE)


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    with open_arena(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(("structure", "matches"), [("ri", 15), ("gc", 9), ("sa", 15)])
async def test_each_structure_has_its_matches(arena: Arena, structure: str, matches: int) -> None:
    run = await arena.play(model="scripted:tit-for-tat", structure=structure, rounds=2, critique_turns=0)
    found = arena.found(run)
    assert run.status == "completed"
    assert len(found.matches) == matches
    assert len({frozenset(match.players) for match in found.matches}) == matches
    assert any(match.within_team for match in found.matches) is (structure != "gc")


async def test_a_tournament_takes_exactly_the_calls_that_its_rules_say(arena: Arena) -> None:
    run = await arena.play(model="scripted:grim", **SHORT)
    # Each player: 14 moves, 2 plans (after 5 and 10 rounds) of 3 calls, questions after 3 matches.
    assert run.usage.llm_calls == 4 * (14 + 2 * 3 + 3)
    stages = Counter(prompt.stage for prompt in arena.prompts(run))
    assert stages == {"move": 56, "plan": 8, "critique": 8, "improved plan": 8, "questions": 12}


@pytest.mark.parametrize(
    ("words", "name"),
    [({"ablation": "real-words"}, "cooperate"), ({"wording": "paper"}, "group"), ({"seed": 1}, "action_a")],
)
async def test_other_words_change_prompts_and_keys_but_not_play_nor_records(
    arena: Arena, words: dict[str, Any], name: str
) -> None:
    settings: dict[str, Any] = {
        "model": "scripted:grim",
        "model_for": {"P1": "scripted:alternator"},
        "critique_turns": 0,
        **SHORT,
    }
    plain = await arena.play(**settings, seed=words.get("seed", 0), option_order="fixed")
    worded = await arena.play(**settings, **words)
    assert plain.key != worded.key
    assert arena.found(plain).matches == arena.found(worded).matches
    assert plain.metrics == worded.metrics
    assert all(name in prompt.text for prompt in arena.prompts(worded) if prompt.stage == "move")


@pytest.mark.parametrize(("when", "written"), [("each-match", 12), ("each-round", 56), ("none", 0)])
async def test_players_of_a_match_write_to_each_other(arena: Arena, when: str, written: int) -> None:
    def compose(said: Situation, heard: Heard) -> str:
        return f"I am number {heard.seed}" if said.step == "message" else move("action_a")

    run = await arena.play(reply(compose), messages=when, critique_turns=0, comprehension="skipped", **SHORT)
    assert run.usage.llm_calls == 56 + written
    prompts = arena.prompts(run)
    sent = {(one.number, one.round, one.player): one.reply for one in prompts if one.stage == "message"}
    assert len(sent) == written
    for prompt in (one for one in prompts if one.stage == "move"):
        known = {
            text for (number, round_, _), text in sent.items() if number == prompt.number and round_ <= prompt.round
        }
        assert all(text in prompt.text for text in known)
        assert len(re.findall(r"I am number", prompt.text)) == len(known)
    assert run.metrics["failed_decision_rate"] == 0
    assert arena.found(run).played


async def test_players_see_how_their_opponent_has_played_before(arena: Arena) -> None:
    models = {"P1": "scripted:defect", "P2": "scripted:alternator"}
    settings: dict[str, Any] = {"model": "scripted:cooperate", "model_for": models, "critique_turns": 0, **SHORT}
    run = await arena.play(reputation="shown", comprehension="skipped", **settings)
    found, shown = arena.found(run), 0
    for prompt in (one for one in arena.prompts(run) if one.stage == "move"):
        match = found.matches[prompt.number - 1]
        opponent = match.opponent(prompt.player)
        before = [other for other in found.of(opponent) if other.number < prompt.number]
        moves = [own for other in before for own, _ in other.seen_by(opponent)]
        told = f"its moves in earlier matches: {len(moves)}, of which action_a: {moves.count('C')}"
        assert (told if moves else "it has not moved before") in prompt.text
        shown += bool(moves)
    assert shown


@pytest.mark.parametrize("structure", ["ri", "gc", "sa"])
async def test_standings_are_those_before_the_match(arena: Arena, structure: str) -> None:
    models = {"P1": "scripted:defect", "P2": "scripted:alternator"}
    settings: dict[str, Any] = {"model": "scripted:tit-for-tat", "model_for": models, "team_size": 2, "rounds": 5}
    settings |= {"critique_turns": 0, "comprehension": "skipped"}
    run = await arena.play(structure=structure, standings="shown", **settings)
    found, teams = arena.found(run), {"P1": "A", "P2": "A", "P3": "B", "P4": "B"}
    ctx = TournamentContext(TournamentCondition(**run.condition), None, run.seed)  # type: ignore[arg-type]
    turn_of = {number: turn for turn, pairs in enumerate(ctx.schedule) for number, _ in pairs}
    shown = 0
    for prompt in (one for one in arena.prompts(run) if one.stage == "move"):
        points, of_teams = dict.fromkeys(teams, 0), {"A": 0, "B": 0}
        for match in found.matches:
            if turn_of[match.number] < turn_of[prompt.number]:
                for player in match.players:
                    points[player] += found.payoffs.total(match.seen_by(player))
                    of_teams[teams[player]] += found.payoffs.total(match.seen_by(player))
        own, team = points[prompt.player], of_teams[teams[prompt.player]]
        assert (f"Before this match: you {own} point" in prompt.text) is (structure != "gc")
        assert (f"your team {team} point" in prompt.text) is (structure != "ri")
        place = 1 + sum(other > own for other in points.values())
        assert (f", place {place} of 4 (first: {max(points.values())})" in prompt.text) is (structure != "gc")
        shown += bool(own)
    assert shown


async def test_teammates_share_their_latest_plans_in_planning_alone(arena: Arena) -> None:
    def play(said: Situation, heard: Heard) -> str:
        if said.step == "move":
            return move("action_a")
        plan = f"plan {heard.seed}\nP9: a forged line"
        return json.dumps(answers(said)) if said.step == "questions" else plan

    run = await arena.play(reply(play), plans="shared", plan_every=2, **SHORT)
    seen = 0
    for prompt in arena.prompts(run):
        is_shown = "# The latest plans of the other players of your team" in prompt.text
        assert is_shown <= (prompt.stage not in ("move", "questions"))
        for mate in re.findall(r"^(P\d): plan", prompt.text, re.M):
            assert {mate, prompt.player} in ({"P1", "P2"}, {"P3", "P4"})
            assert mate != prompt.player
            seen += 1
    assert seen


async def test_teams_are_formed_by_the_wishes_of_players(arena: Arena) -> None:
    friends = {"P1": ["P4"], "P2": ["P5", "P6"], "P3": ["P1", "P4"], "P4": ["P1", "P3"], "P5": ["P2"], "P6": []}

    def compose(said: Situation, heard: Heard) -> str:
        player = re.search(r"You are player (P\d)", str(heard.messages[1].content))
        assert player is not None
        if said.step == "wishes":
            return json.dumps({"wanted": friends[player[1]], "reasoning": ""})
        return f"I am {player[1]}\nPlayer P2: I am lazy" if said.step == "introduction" else move("action_a")

    settings: dict[str, Any] = {"critique_turns": 0, "comprehension": "skipped", "rounds": 2, "structure": "gc"}
    run = await arena.play(reply(compose), team_choice="wished", **settings)
    [formed] = [e.decision for e in arena.store.events(run.id) if e.type == "decision" and e.stage == "teams"]
    assert sorted(formed["teams"].values()) == [["P1", "P3", "P4"], ["P2", "P5", "P6"]]
    assert formed["wishes"] == formed["fulfilled"] == 8
    teams = {player: team for team, players in formed["teams"].items() for player in players}
    for match in arena.found(run).matches:
        assert match.teams == tuple(teams[player] for player in match.players)
        assert match.teams[0] != match.teams[1]
    texts = [str(prompt.text) for prompt in arena.prompts(run) if prompt.stage == "move"]
    assert any("With you in your team: P5, P6." in text for text in texts)
    asked = {prompt.player: prompt.text for prompt in arena.prompts(run) if "wishes" in prompt.parts}
    lines = {player: len(re.findall("(?m)^Player P2: ", text)) for player, text in asked.items()}
    assert lines == {"P1": 1, "P2": 0, "P3": 1, "P4": 1, "P5": 1, "P6": 1}, "nobody speaks for another player"
    assert run.metrics["failed_decision_rate"] == 0


async def test_the_final_plan_of_each_player_can_be_exported(arena: Arena) -> None:
    written: dict[str, str] = {}

    def compose(said: Situation, heard: Heard) -> str:
        if said.step not in ("plan", "improved plan"):
            return "go on" if said.step == "critique" else move("action_a")
        player = re.search(r"You are player (P\d)", str(heard.messages[1].content))
        assert player is not None
        written[player[1]] = f"{player[1]}, {said.step}: {heard.seed}"
        return written[player[1]]

    run = await arena.play(reply(compose), comprehension="skipped", **SHORT)
    plans = final_plans(arena.store.events(run.id), Bodies(arena.store.bodies(run.id)))
    assert plans == written
    assert set(plans) == {"P1", "P2", "P3", "P4"}


async def test_rule_players_play_each_match_as_their_rules_alone_would(arena: Arena) -> None:
    names = ["cooperate", "tit-for-tat", "grim", "alternator", "win-stay-lose-shift", "tit-for-two-tats"]
    models = {f"P{place + 1}": f"scripted:{name}" for place, name in enumerate(names)}
    run = await arena.play(model="scripted:defect", model_for=models, rounds=8, critique_turns=0)
    payoffs, found = Payoffs(), arena.found(run)
    assert found.models == models
    for match in found.played:
        first, second = (STRATEGIES[models[player].removeprefix("scripted:")] for player in match.players)
        for number, both in enumerate(match.rounds):
            before = match.rounds[:number]
            assert both == (move_of(first, before, payoffs, 0.5), move_of(second, turned(before), payoffs, 0.5))


async def test_no_prompt_before_a_first_round_tells_who_the_opponent_is(arena: Arena) -> None:
    run = await arena.play(reply(lively), rounds=5)
    found = arena.found(run)
    opponents = {(match.number, player): match.opponent(player) for match in found.matches for player in match.players}
    first = [prompt for prompt in arena.prompts(run) if prompt.round == 1]
    assert {"move", "plan", "critique", "improved plan"} <= {prompt.stage for prompt in first}
    for prompt in first:
        opponent = opponents[prompt.number, prompt.player]
        assert not re.search(rf"\b{opponent}\b", prompt.text), prompt
        assert re.search(
            r"^(Your opponent|Opponent in this match): unknown before the first round has been played$",
            prompt.text,
            re.M,
        )
        if prompt.stage == "move":
            assert "team " not in prompt.text.partition("Your opponent: ")[2]
    later = [prompt for prompt in arena.prompts(run) if prompt.round > 1]
    assert all(re.search(rf"\b{opponents[one.number, one.player]}\b", one.text) for one in later)


@pytest.mark.parametrize("structure", ["ri", "gc", "sa"])
async def test_what_a_player_sees_before_a_first_round_is_the_same_whoever_comes(structure: str) -> None:
    condition = TournamentCondition(structure=structure, model="scripted:random", teams=3)
    ctx = TournamentContext(condition, None, 0)  # type: ignore[arg-type]

    def view_against(opponent: str, *rounds: Round) -> View:
        played = {"P1": condition.total_rounds - 9}
        state = MatchState(
            number=1,
            players=["P1", opponent],
            memory=[],
            rounds=[*rounds],
            chosen=[*rounds],
            moves=[],
            messages=[],
            plans={"P1": "go on"},
            played=played,
            planned={},
            matches=[],
            points={},
            shared={},
        )
        return view_of(ctx, state, 0)

    views = {view_against(opponent) for opponent in ("P2", "P4", "P9")}
    assert len(views) == 1
    [view] = views
    known = {view_against(opponent, ("C", "C")) for opponent in ("P2", "P4", "P9")}
    assert len(known) == 3
    briefing = Briefing(condition)
    for messages in (
        briefing.move(view),
        briefing.plan(view),
        briefing.critique(view, "x"),
        briefing.improve(view, "x", "y"),
    ):
        text = "\n".join(str(message.content) for message in messages)
        assert not re.search(r"\bP[2-9]\b|team [A-C]", text)


async def test_no_prompt_names_what_actions_mean_except_the_questions(arena: Arena) -> None:
    for structure in ("ri", "gc", "sa"):
        run = await arena.play(reply(lively), structure=structure, team_size=2, rounds=5)
        for prompt in arena.prompts(run):
            assert bool(UNBIASED.search(prompt.text)) is (prompt.stage == "questions")


async def test_goals_and_teams_are_told_as_the_structure_has_them(arena: Arena) -> None:
    texts = {}
    for structure in ("ri", "gc", "sa"):
        condition = TournamentCondition(structure=structure, model="scripted:random")
        view_of = Briefing(condition)
        messages = view_of.move(View("P4", (), (), "", 40, ""))
        texts[structure] = "\n".join(str(message.content) for message in messages)
    assert "team" not in texts["ri"]
    assert "highest score of all players" in texts["ri"]
    assert "highest score of all teams" in texts["gc"]
    assert "highest score of all players" not in texts["gc"]
    assert "highest score of all teams" in texts["sa"]
    assert "highest score of all players" in texts["sa"]
    assert "match 1 of 3" in texts["gc"]
    assert "match 1 of 5" in texts["sa"]


async def test_the_plan_that_was_improved_is_the_one_that_is_played(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        if said.step == "move":
            return move("action_a")
        return {"plan": "DRAFT", "critique": "REMARKS", "improved plan": f"FINAL {heard.seed}"}.get(said.step, "{}")

    run = await arena.play(reply(answer), comprehension="skipped", **SHORT)
    newest: dict[str, str] = {}
    prompts = sorted(arena.prompts(run), key=lambda one: (one.number, one.round))
    for prompt in prompts:
        if prompt.stage == "improved plan":
            assert "DRAFT" in prompt.text
            assert "REMARKS" in prompt.text
            newest[prompt.player] = prompt.reply
        elif prompt.stage == "critique":
            assert "DRAFT" in prompt.text
    planned = 0
    for prompt in prompts:
        if prompt.stage == "move":
            assert "DRAFT" not in prompt.text
            assert "REMARKS" not in prompt.text
            planned += "FINAL" in prompt.text
            assert ("You have none yet." in prompt.text) is ("FINAL" not in prompt.text)
    assert planned == 4 * (14 - 5)


async def test_every_plan_starts_from_the_one_before_and_is_made_once_for_so_many_rounds(arena: Arena) -> None:
    run = await arena.play(reply(lively), rounds=6, plan_every=3)
    found, played = arena.found(run), Counter[str]()
    for match in found.played:
        played.update({player: len(match.rounds) for player in match.players})
    plans = [prompt for prompt in arena.prompts(run) if prompt.stage == "plan"]
    made = Counter(prompt.player for prompt in plans)
    for player, rounds in played.items():
        # The last round of all may have been one after which nothing was to be planned.
        assert made[player] in (rounds // 3, rounds // 3 - 1)
    finals = {prompt.reply for prompt in arena.prompts(run) if prompt.stage == "improved plan"}
    for player in played:
        own = sorted((one for one in plans if one.player == player), key=lambda one: (one.number, one.round))
        assert "There is none yet." in own[0].text
        assert all(any(final in one.text for final in finals) for one in own[1:])


async def test_without_critique_turns_there_is_no_planning_and_with_two_there_are_two(arena: Arena) -> None:
    none = await arena.play(model="scripted:grim", critique_turns=0, **SHORT)
    two = await arena.play(model="scripted:grim", critique_turns=2, **SHORT)
    assert {prompt.stage for prompt in arena.prompts(none)} == {"move", "questions"}
    assert not any("plan" in prompt.text for prompt in arena.prompts(none) if prompt.stage == "move")
    stages = Counter(prompt.stage for prompt in arena.prompts(two))
    assert stages["critique"] == stages["improved plan"] == 2 * stages["plan"] > 0


async def test_planner_and_critic_see_all_own_matches_and_the_move_only_the_present_one(arena: Arena) -> None:
    run = await arena.play(reply(lively), rounds=5)
    found = arena.found(run)
    teams = {player: team for match in found.matches for player, team in zip(match.players, match.teams, strict=True)}
    seen = 0
    for prompt in arena.prompts(run):
        before = [one for one in found.of(prompt.player) if one.number < prompt.number]
        present = next(one for one in found.matches if one.number == prompt.number)
        round_lines = len(re.findall(r"^Round \d+: ", prompt.text, re.M))
        own_rounds = len(present.rounds) if prompt.stage == "questions" else prompt.round - 1
        if prompt.stage in ("move", "questions"):
            assert round_lines == own_rounds
            continue
        seen += len(before)
        assert round_lines == own_rounds + sum(len(match.rounds) for match in before)
        strangers = set(teams) - {
            prompt.player,
            *(match.opponent(prompt.player) for match in before),
            present.opponent(prompt.player),
        }
        assert not any(re.search(rf"\b{stranger}\b", prompt.text) for stranger in strangers)
        for match in before:
            opponent = match.opponent(prompt.player)
            team = "your own team" if teams[opponent] == teams[prompt.player] else "the other team"
            assert f"## Against player {opponent}, of {team}:" in prompt.text
    assert seen > 0


async def test_the_budget_of_rounds_binds_and_is_hard(arena: Arena) -> None:
    run = await arena.play(model="scripted:cooperate", rounds=2, critique_turns=0, comprehension="skipped")
    assert run.condition["rounds_per_player"] == 8  # 0.8 of 10
    found = arena.found(run)
    played = Counter(player for match in found.played for player in match.players for _ in match.rounds)
    assert set(played.values()) == {8}
    off = [match for match in found.matches if match.end == "not_played"]
    assert len(off) == 3
    assert all(match.by and not match.rounds for match in off)
    assert run.metrics["matches_not_played"] == 3


async def test_a_match_ends_when_a_player_has_no_rounds_left(arena: Arena) -> None:
    run = await arena.play(
        model="scripted:cooperate", rounds=5, rounds_per_player=12, critique_turns=0, comprehension="skipped"
    )
    found = arena.found(run)
    cut = [match for match in found.matches if match.end == "rounds"]
    assert [len(match.rounds) for match in cut] == [2, 2, 2]
    assert all(set(match.by) == set(match.players) for match in cut)


async def test_a_player_leaves_after_it_has_seen_a_round_and_never_before_the_first(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        repaired = any(message.type == "ai" for message in heard.messages)
        if said.rounds or not repaired:
            return move("leave")
        return move("action_b")

    run = await arena.play(reply(answer), rounds=5, comprehension="skipped", model_for={"A": "scripted:cooperate"})
    found = arena.found(run)
    leavers = {"P4", "P5", "P6"}
    for match in found.matches:
        if leavers & set(match.players):
            assert match.end == "leave"
            assert len(match.rounds) == 1
            assert set(match.by) == leavers & set(match.players)
    firsts = [p for p in arena.prompts(run) if p.stage == "move" and p.round == 1 and p.parts[-1] == "0"]
    assert all('"move": "action_a" or "action_b"\n' in prompt.text for prompt in firsts)
    laters = [p for p in arena.prompts(run) if p.stage == "move" and p.round == 2]
    assert all('"move": "action_a" or "action_b" or "leave"' in prompt.text for prompt in laters)
    assert run.usage.failed_replies == sum(len(leavers & set(match.players)) for match in found.matches)


async def test_points_are_those_of_the_payoffs_and_nothing_is_added_for_winning(arena: Arena) -> None:
    run = await arena.play(
        reply(lively),
        team_size=2,
        rounds=5,
        temptation=7,
        reward=4,
        punishment=1,
        sucker=-2,
        model_for={"B": "scripted:defect"},
    )
    table = {"CC": (4, 4), "CD": (-2, 7), "DC": (7, -2), "DD": (1, 1)}
    rounds: Counter[tuple[str, str]] = Counter()
    ends: dict[tuple[str, str], float] = {}
    for event in arena.events(run):
        if isinstance(event, PayoffEvent):
            for player, points in event.payoffs.items():
                if event.round:
                    rounds[event.match, player] += int(points)
                else:
                    ends[event.match, player] = points
    assert {key: value for key, value in ends.items() if value} == {
        key: value for key, value in rounds.items() if value
    }
    found = arena.found(run)
    for match in found.matches:
        for seat, player in enumerate(match.players):
            assert ends[f"match {match.number}", player] == sum(table["".join(both)][seat] for both in match.rounds)
    assert set(run.metrics) <= {metric.name for metric in METRICS}


async def test_a_reply_that_can_not_be_read_is_counted_and_becomes_no_move(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        return "What a nice day." if said.step in ("move", "questions") else ""

    run = await arena.play(reply(answer), model="scripted:cooperate", model_for={"P2": "scripted:puppet"}, **SHORT)
    assert run.status == "completed"
    found = arena.found(run)
    assert found.moves("P2") == []
    forfeited = [match for match in found.matches if match.end == "forfeit"]
    assert [match.by for match in forfeited] == [("P2",)] * 3
    assert all("P2" in match.players for match in forfeited)
    assert run.metrics["matches_forfeited"] == 3
    assert run.metrics["cooperation"] == 1
    failed = [event for event in arena.decisions(run, "move") if event.failed]
    assert [(event.agent, event.decision) for event in failed] == [("P2", {})] * 3
    assert run.usage.failed_replies == 3 * 4  # asked again three times
    assert 0 < run.metrics["failed_decision_rate"] < 0.1
    assert {model: tally.failed for model, tally in found.failures.items()} == {
        "scripted:cooperate": 0,
        "scripted:puppet": 3,
    }
    assert run.invalid == "all decisions of scripted:puppet failed"


async def test_a_plan_that_can_not_be_had_leaves_the_one_before(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        if said.step == "improved plan":
            return ""
        return move("action_a") if said.step == "move" else f"the {said.step} of {heard.seed}"

    run = await arena.play(reply(answer), comprehension="skipped", repair_turns=0, **SHORT)
    failed = arena.decisions(run, "improved plan")
    assert len(failed) == 8
    assert all(event.failed for event in failed)
    drafts = {prompt.reply for prompt in arena.prompts(run) if prompt.stage == "plan"}
    moves = [prompt for prompt in arena.prompts(run) if prompt.stage == "move"]
    assert all("none yet" in one.text or any(draft in one.text for draft in drafts) for one in moves)
    assert run.metrics["failed_decision_rate"] == pytest.approx(8 / (4 * 14 + 24))


async def test_both_players_of_every_match_are_asked_outside_the_tournament(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        return "I do not know." if said.step == "questions" else lively(said, heard)

    asked = await arena.play(reply(answer), team_size=2, rounds=5)
    skipped = await arena.play(reply(lively), team_size=2, rounds=5, comprehension="skipped")
    found = arena.found(asked)
    expected = sorted((match.number, player) for match in found.played for player in match.players)
    questions = arena.decisions(asked, "questions")
    assert sorted((int(event.match.split()[1]), event.agent) for event in questions) == expected
    assert all(event.failed for event in questions)
    assert "comprehension" not in asked.metrics
    assert found.matches == arena.found(skipped).matches
    plain = [prompt for prompt in arena.prompts(asked) if prompt.stage != "questions"]
    assert Counter(plain) == Counter(arena.prompts(skipped))


async def test_answers_are_marked_by_the_truth(arena: Arena) -> None:
    def answer(said: Situation, heard: Heard) -> str:
        return lively(said, heard)

    run = await arena.play(reply(answer), team_size=2, rounds=5)
    found = arena.found(run)
    wrong = {name for _, rows in found.answers for name, one in rows.items() if one["right"] is False}
    assert wrong == {"lowest"}
    assert 10 / 11 <= run.metrics["comprehension"] < 1


async def at_concurrency(arena: Arena, calls: int, runs: int) -> list[RunRecord]:
    settings = RunSettings(models=ModelOptions(max_concurrent_calls=calls), max_concurrent_runs=runs)
    with puppet(reply(lively)) as model:
        condition = TournamentCondition(structure="sa", model=model, team_size="2", rounds=6, plan_every=3)
        wanted = new_runs(condition, seed=5, replicates=2, settings=settings)
        return await Session(arena.store, settings).execute(wanted)


async def test_the_same_seed_gives_the_same_tournament_with_1_and_with_64_concurrent_calls(arena: Arena) -> None:
    alone, together = await at_concurrency(arena, 1, 1), await at_concurrency(arena, 64, 2)
    for one, other in zip(alone, together, strict=True):
        assert one.status == other.status == "completed"
        assert arena.found(one).matches == arena.found(other).matches
        assert Counter(arena.prompts(one)) == Counter(arena.prompts(other))
        assert one.metrics == other.metrics
    assert arena.found(alone[0]).matches != arena.found(alone[1]).matches


async def test_matches_that_share_no_player_go_on_at_the_same_time(arena: Arena) -> None:
    all_there, here = asyncio.Event(), 0

    class Waiting(Puppet):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal here
            here += 1
            if here == 6:
                all_there.set()
            await asyncio.wait_for(all_there.wait(), 100)  # nobody goes on before all six have been asked
            return await super()._agenerate(messages, *args, **kwargs)

    BASELINES.register("waiting", lambda: Waiting(play=reply(lively)))
    run = await arena.play(model="scripted:waiting", rounds=2, comprehension="skipped")
    assert run.status == "completed"


async def test_several_models_and_teams_of_any_size_play_one_tournament(arena: Arena) -> None:
    run = await arena.play(
        model="scripted:cooperate",
        structure="gc",
        teams=3,
        team_size="2,1,3",
        rounds=4,
        critique_turns=0,
        model_for={"C": "scripted:defect", "P3": "scripted:alternator"},
    )
    found = arena.found(run)
    assert len(found.matches) == 2 * 1 + 2 * 3 + 1 * 3
    assert run.models == ["scripted:cooperate", "scripted:alternator", "scripted:defect"]
    assert found.models["P6"] == "scripted:defect"
    assert "team C" in "".join(prompt.text for prompt in arena.prompts(run) if prompt.player == "P1")


async def test_a_baseline_that_plays_no_tournaments_forfeits_and_is_counted(arena: Arena) -> None:
    run = await arena.play(model="scripted:cooperate", model_for={"P1": "scripted:fair-share"}, repair_turns=0, **SHORT)
    assert run.metrics["matches_forfeited"] == 3


async def test_noise_executes_other_moves_and_matches_end_by_chance(arena: Arena) -> None:
    noise, continuation = 0.25, 0.8
    values: dict[str, Any] = {"noise": noise, "continuation": continuation, "rounds": 40, "critique_turns": 0}
    run = await arena.play(model="scripted:cooperate", team_size="4", comprehension="skipped", **values)
    found, prompts = arena.found(run), arena.prompts(run)
    chosen = [event.decision["move"] for event in arena.decisions(run, "move")]
    points = [event for event in arena.events(run) if isinstance(event, PayoffEvent) and event.round]
    assert set(chosen) == {"action_a"}
    assert run.metrics["cooperation"] == run.metrics["one_shot_cooperation"] == 1
    assert run.metrics["executed_cooperation"] == pytest.approx(1 - noise, abs=0.1)
    assert found.profile(found.models).traits["troublemaking"] == 0
    assert any("you action_b (you chose action_a), opponent" in prompt.text for prompt in prompts)
    assert not any("(you chose action_b)" in prompt.text for prompt in prompts)
    moves = [move for match in found.matches for both in match.rounds for move in both]
    assert moves.count("D") / len(moves) == pytest.approx(noise, abs=4 * (0.25 * 0.75 / len(moves)) ** 0.5)
    lengths = [len(match.rounds) for match in found.matches if match.end == "chance"]
    assert len(lengths) > 20
    mean = 1 / (1 - continuation)
    assert sum(lengths) / len(lengths) == pytest.approx(mean, abs=4 * mean / len(lengths) ** 0.5)
    for event in points:
        first, second = event.details["executed"]
        expected = [found.payoffs.of(first, second), found.payoffs.of(second, first)]
        assert list(event.payoffs.values()) == expected
    assert "the match continues with probability 0.8, up to" in prompts[0].text
    assert "carried out as the other action with probability 0.25" in prompts[0].text


async def test_questions_under_noise_are_on_what_was_carried_out(arena: Arena) -> None:
    values: dict[str, Any] = {"noise": 0.4, "rounds": 10, "critique_turns": 0, "team_size": 2}
    run = await arena.play(model="scripted:cooperate", **values)
    asked = [prompt.text for prompt in arena.prompts(run) if prompt.stage == "questions"]
    assert all(re.search(r"Which action was carried out for (you|your opponent) in round", text) for text in asked)
    assert not any("did you choose" in text for text in asked)
    assert run.metrics["comprehension"] == 1


async def test_rules_of_odd_seeds_list_actions_in_reverse(arena: Arena) -> None:
    turned, plain = [
        [prompt for prompt in arena.prompts(run) if prompt.stage == "move"]
        for run in [
            await arena.play(model="scripted:grim", model_for={"P1": "scripted:defect"}, seed=seed, **SHORT)
            for seed in (1, 2)
        ]
    ]
    assert "If both choose action_a, each gets 3 points." in plain[0].text
    assert "If both choose action_a, each gets 0 points." in turned[0].text
    assert "the one with action_a gets 5 points and the one with action_b gets -1 point." in turned[0].text
    assert {json.loads(prompt.reply)["move"] for prompt in turned if prompt.player == "P1"} == {"action_a"}
    assert {json.loads(prompt.reply)["move"] for prompt in plain if prompt.player == "P1"} == {"action_b"}


async def test_nobody_plans_for_one_remaining_round(arena: Arena) -> None:
    run = await arena.play(model="scripted:grim", team_size=2, rounds=5, rounds_per_player=11)
    assert Counter(prompt.stage for prompt in arena.prompts(run))["plan"] == 4, "after 5 of 11 rounds, not after 10"


def test_a_tournament_without_noise_says_nothing_of_it() -> None:
    condition = TournamentCondition(structure="ri", model="scripted:grim")
    assert "probability" not in str(Briefing(condition).move(View("P1", (), (), "", 3, ""))[0].content)
    with pytest.raises(ValueError, match="noise"):
        TournamentCondition(structure="ri", model="scripted:grim", noise=0.7)
