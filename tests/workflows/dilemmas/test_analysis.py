"""What is read out of stored cross-plays: ratings, tables, figures, labels of reasons."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from labmates.api import arun
from labmates.errors import UsageError
from labmates.records.events import DecisionEvent, Event, PayoffEvent
from labmates.stats.domains import SHARE
from labmates.stats.figures import new_figure, save_figure, svg_text, write_numbers
from labmates.stats.intervals import mean
from labmates.stats.ratings import Cell, Scale, rate, summarise
from labmates.stats.replicator import replicator_dynamics
from labmates.workflows.dilemmas import dot_figures
from labmates.workflows.dilemmas import figures as dilemma_figures
from labmates.workflows.dilemmas import frames as dilemma_frames
from labmates.workflows.dilemmas.records import CrossPlay, cross_plays, mechanism_labels, read_cross_play
from labmates.workflows.protocol.analysis import Runs

MODELS = "scripted:equilibrium,scripted:defect,scripted:cooperate"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/runs.db"
    for game, mechanism, terms in (
        ("prisoners", "mediation", {}),
        ("prisoners", "contract", {}),
        ("prisoners", "repetition", {"rounds": 4}),
        ("trust", "reputation", {"rounds": 4, "order": 3}),
        ("public-goods", "none", {}),
    ):
        condition: dict[str, Any] = {"game": game, "mechanism": mechanism, "terms": terms, "entrants": MODELS}
        [run] = asyncio.run(arun("dilemma", store=url, **condition))
        assert run.status == "completed", run.error
    return url


@pytest.fixture(scope="module")
def plays(url: str) -> list[CrossPlay]:
    return cross_plays(Runs(url))


def test_the_reference_comes_before_the_mechanisms_in_their_order(plays: list[CrossPlay]) -> None:
    assert [play.mechanism for play in plays] == ["none", "mediation", "contract", "repetition", "reputation+"]


def test_every_play_of_every_match_is_a_row_for_each_seat(plays: list[CrossPlay]) -> None:
    frame = dilemma_frames.matches_frame(plays)
    assert len(frame) == sum(len(each.models) for play in plays for each in play.rounds)
    for play in plays:
        mine = frame[frame["run"] == play.run]
        for each in play.rounds:
            rows = mine[mine["step"] == each.step].to_dict("records")
            assert [row["seat"] for row in rows] == [*range(1, len(each.models) + 1)]
            assert [row["model"] for row in rows] == list(each.models)
            assert tuple(row["action"] for row in rows) == each.actions
            assert tuple(row["payoff"] for row in rows) == each.payoffs
            assert [tuple(json.loads(row["mix"]).values()) for row in rows] == [*each.mixes]
            assert {row["match"] for row in rows} == {each.match}
    contracts = frame[frame["mechanism"] == "contract"]
    assert contracts["design"].notna().any()
    assert all(isinstance(json.loads(design), dict) for design in contracts["design"].dropna())
    assert frame[frame["mechanism"] == "none"][["design", "round"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("conditions", "labels"),
    [
        ([{"mechanism": "repetition", "terms": {"rounds": 5}}] * 2, ["repetition"] * 2),
        (
            [{"mechanism": "repetition", "terms": {"rounds": n, "memory": 3}} for n in (5, 15)]
            + [{"mechanism": "none"}],
            ["repetition(rounds=5)", "repetition(rounds=15)", "none"],
        ),
        (
            [{"mechanism": "none", "game": game, "reasoning": how} for game in "ab" for how in ("none", "cot")],
            ["none, reasoning=none", "none, reasoning=cot"] * 2,
        ),
        (
            [{"mechanism": "reputation", "terms": {"order": order, "rounds": 5}} for order in (1, 3)],
            ["reputation-", "reputation+"],
        ),
        (
            [{"mechanism": "none", "wording": "ours"}, {"mechanism": "none", "wording": "paper"}],
            ["none, wording=ours", "none, wording=paper"],
        ),
    ],
)
def test_runs_under_other_parameters_are_told_apart(conditions: list[dict[str, Any]], labels: list[str]) -> None:
    assert mechanism_labels(conditions) == labels


async def test_runs_under_other_terms_are_not_averaged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    for rounds in (2, 3):
        condition: dict[str, Any] = {"game": "prisoners", "mechanism": "repetition", "entrants": "scripted:random"}
        await arun("dilemma", store=url, terms={"rounds": rounds}, **condition)
    found = cross_plays(Runs(url))
    frame = dilemma_frames.actions_frame(found)
    assert set(frame["mechanism"]) == {"repetition(rounds=2)", "repetition(rounds=3)"}
    assert {one.mechanism for one in summarise([rate(play.cell()) for play in found])} == set(frame["mechanism"])
    [alone] = cross_plays(Runs(url, [found[0].run]))
    assert alone.mechanism == "repetition"


def row(frame: Any, **wanted: str) -> dict[str, Any]:
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    [found] = frame.to_dict("records")
    return dict(found)


def test_stored_runs_are_rated(plays: list[CrossPlay]) -> None:
    cells = {(play.mechanism, play.game): rate(play.cell()) for play in plays}
    public = cells["none", "public-goods"]
    # Who cooperates leaves half a unit with every choice.
    assert public.mean[2] == pytest.approx(public.mean[1] - 0.5)
    assert public.rank is not None
    assert public.rank.tolist() == [1.5, 1.5, 3.0]
    assert cells["reputation+", "trust"].fitness is None
    assert cells["mediation", "prisoners"].cell.scale is not None


def test_actions_and_answers_to_co_players_are_counted(plays: list[CrossPlay]) -> None:
    frame = dilemma_frames.actions_frame(plays)
    assert row(frame, mechanism="none", model="scripted:cooperate", action="A0")["share"] == 1
    assert row(frame, mechanism="none", model="scripted:cooperate", action="A0")["choices"] == 27
    assert row(frame, mechanism="mediation", model="scripted:defect", action="delegate")["share"] == 0
    answers = dilemma_frames.responses_frame(plays)
    who = {"mechanism": "repetition", "model": "scripted:equilibrium"}
    assert row(answers, **who, before="-", action="A0")["share"] == 1
    assert row(answers, **who, before="A1", action="A1")["share"] == 1
    assert row(answers, **who, before="A0", action="A0")["share"] == 1
    assert set(answers["mechanism"]) == {"repetition", "reputation+"}
    rows = answers[answers["mechanism"] == "repetition"][["model", "before"]].drop_duplicates().to_numpy().tolist()
    assert rows == [[model, before] for model in MODELS.split(",") for before in ("-", "A0", "A1")]


def test_votes_adoption_and_designs_are_counted(plays: list[CrossPlay]) -> None:
    adoption = dilemma_frames.adoption_frame(plays)
    honest = row(adoption, mechanism="contract", model="scripted:equilibrium")
    assert honest["proposes"] == honest["signs"] == 1
    assert honest["delegates"] != honest["delegates"]  # there is nothing to delegate to
    assert row(adoption, mechanism="contract", model="scripted:defect")["approves"] == 0
    outcomes = dilemma_frames.outcomes_frame(plays)
    assert row(outcomes, mechanism="contract")["votes"] == 9
    # Only where none defects do all sign.
    assert row(outcomes, mechanism="contract")["adopted"] == pytest.approx(4 / 9)
    designs = dilemma_frames.designs_frame(plays)
    assert row(designs, mechanism="mediation", model="scripted:equilibrium")["dominant"] == 1
    assert row(designs, mechanism="contract", model="scripted:defect")["nash"] == 0


def test_cooperation_is_pooled_over_models_and_evolves(plays: list[CrossPlay]) -> None:
    pooled = row(dilemma_frames.pooled_frame(plays), mechanism="none", game="public-goods", action="A0")
    by_model = dilemma_frames.actions_frame(plays)
    own = by_model[(by_model["mechanism"] == "none") & (by_model["action"] == "A0")]
    assert pooled["share"] == pytest.approx(np.average(own["share"], weights=own["choices"]))
    evolution = dilemma_frames.evolution_frame(plays)
    alone = row(evolution, mechanism="none", game="public-goods")
    assert alone["uniform"] == pytest.approx(pooled["share"])
    assert alone["evolved"] < 0.01 < alone["uniform"], "who cooperates dies out where nothing protects it"
    assert row(evolution, mechanism="contract", game="prisoners")["evolved"] > 0.9
    assert not set(evolution["mechanism"]) & {"reputation-", "reputation+"}


def test_multisets_evolve_as_all_their_seatings_do(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    for seating in ("all", "multisets"):
        models = "scripted:cooperate,scripted:defect,scripted:equilibrium"
        asyncio.run(arun("dilemma", store=url, game="public-goods", entrants=models, seating=seating))
    both = [dilemma_frames.evolution_frame([play]).to_dict("records")[0] for play in cross_plays(Runs(url))]
    for name in ("uniform", "evolved"):
        assert both[0][name] == pytest.approx(both[1][name])


def test_shares_have_intervals_over_runs_and_none_for_one_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    condition: dict[str, Any] = {"game": "prisoners", "mechanism": "contract", "entrants": "scripted:random"}
    asyncio.run(arun("dilemma", store=url, replicates=3, **condition))
    found = cross_plays(Runs(url))
    frames = {
        "share": dilemma_frames.actions_frame,
        "approves": dilemma_frames.adoption_frame,
        "tied": dilemma_frames.outcomes_frame,
        "uniform": dilemma_frames.evolution_frame,
    }
    for name, made in frames.items():
        [one, *_] = made(found).to_dict("records")
        assert one[f"{name}_low"] is None or one[f"{name}_low"] <= one[name] <= one[f"{name}_high"]
        [alone, *_] = made(found[:1]).to_dict("records")
        assert alone[f"{name}_reason"] == "one value"
    [action, *_] = dilemma_frames.actions_frame(found).to_dict("records")
    assert 0 < action["share_low"] < action["share"] < action["share_high"] < 1


def test_a_mediator_is_adopted_by_those_alone_who_agreed_on_it_and_delegated() -> None:
    condition = {"game": "prisoners", "mechanism": "reputation+mediation", "terms": {"pairing": "uniform"}}
    events: list[Event] = []
    # Two groups in each of two rounds; in the last nobody has proposed anything.
    for place, under, actions, tied in (
        ("all/1/0/mediation/", "", ["delegate", "A0"], 2),
        ("all/1/2/mediation/", "1/", ["A0", "A1"], 1),
        ("all/2/0/mediation/", "", ["A1", "A1"], 1),
        ("all/2/2/mediation/", "", ["A1", "A1"], 0),
    ):
        where: dict[str, Any] = {"match": "all", "round": int(place[4])}
        details: dict[str, Any] = {"entrants": [0, 0], "agents": [0, 1], "actions": actions}
        details |= {"expected": [1.0, 1.0], "weight": 0.5, "mixes": [[100, 0, 0], [0, 100, 0]]}
        events.append(PayoffEvent(step=f"{place}{under}play", payoffs={"1": 1.0, "2": 1.0}, details=details, **where))
        said: dict[str, Any] = {"entrants": [0, 0], "stable": [None, None], "signed": [], "tied": tied}
        said |= {"votes": [[0, 1], [0, 1] if tied > 1 else [0]], "proposals": [{}, {}], "winners": [0]}
        said |= {} if tied else {"votes": [[], []], "proposals": [None, None], "winners": []}
        events.append(DecisionEvent(step=f"{place}outcome", stage="agreement", decision=said, **where))
    play = read_cross_play("run", condition, ["m"], events)
    [found] = dilemma_frames.outcomes_frame([play]).to_dict("records")
    assert found["adopted"] == pytest.approx(1 / 4)
    assert found["votes"] == 3, "where nothing is proposed there is no vote"
    assert (found["tied"], found["unanimous"]) == (pytest.approx(1 / 3), 1)


def test_figures_are_drawn(plays: list[CrossPlay], tmp_path: Path) -> None:
    three, two, *_ = (play.cell() for play in plays)
    figures = {
        "two": dilemma_figures.payoffs_figure([two]),
        "three": dilemma_figures.payoffs_figure([three]),
        "population": dilemma_figures.population_figure([three]),
        "actions": dot_figures.actions_dots(dilemma_frames.actions_frame(plays))[0].figure(),
        "pooled": dot_figures.actions_dots(dilemma_frames.pooled_frame(plays))[0].figure(),
        "responses": dot_figures.actions_dots(dilemma_frames.responses_frame(plays))[0].figure(),
        "adoption": dot_figures.shares_dots(dilemma_frames.adoption_frame(plays), dot_figures.ADOPTION, "Votes")[
            0
        ].figure(),
    }
    assert len(figures["three"].axes) == 4
    for name, figure in figures.items():
        save_figure(figure, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_payoffs_of_four_players_are_drawn_as_means_over_the_fourth() -> None:
    payoffs = np.zeros((3, 3, 3, 3))
    for model, *others in np.ndindex(payoffs.shape):
        payoffs[model, *others] = 10 * model + sum(others)
    names = ("openai:$a$", "openai:$b_{", "openai:c")  # no formulas
    figure = dilemma_figures.payoffs_figure([Cell("run", "none", "four", names, payoffs)])
    drawn = [axes.images[0].get_array() for axes in figure.axes if axes.images][:3]
    assert [np.asarray(panel).shape for panel in drawn] == [(3, 3)] * 3, "and not as pictures of three colours"
    assert np.asarray(drawn[2])[1, 0] == pytest.approx(10 + 0 + 2 + 1)
    assert "mean over further co-players" in figure.get_suptitle()
    svg_text(figure)


def test_numbers_of_a_heat_map_are_white_on_dark_cells_and_black_on_light_ones() -> None:
    figure, [axes] = new_figure(3, 2)
    values = np.array([[0.0, 1.0]])
    axes.imshow(values, cmap="gray", vmin=0, vmax=1)
    write_numbers(axes, values)
    assert [text.get_color() for text in axes.texts] == ["white", "black"]
    svg_text(figure)


def test_responses_name_actions_alike_in_rows_and_legend(plays: list[CrossPlay]) -> None:
    names = dilemma_frames.action_names(plays)
    dots = dot_figures.actions_dots(dilemma_frames.responses_frame(plays), names)
    prisoners = next(each for each in dots if each.title.startswith("prisoners, "))
    rows = {row.partition(", after ")[2] for row in prisoners.rows}
    assert {action for row in rows if row for action in row.split(" + ")} <= {*names["prisoners"].values()}
    assert [*prisoners.series.values()] == ["A0 (cooperates)"]
    assert prisoners.xlabel == "mean probability of A0 (cooperates); the rest is A1 (defects)"
    assert next(iter(prisoners.rows)).endswith(", (first round)")


def test_cells_of_payoffs_have_their_interval_over_runs() -> None:
    payoffs = np.array([[1.0, 2.0], [3.0, 4.0]])
    cells = [Cell(f"{run}", "none", "two", ("a", "b"), payoffs + run * np.eye(2)) for run in range(3)]
    [heat, _] = dilemma_figures.payoffs_figure(cells).axes
    low, high = mean([1.0, 2.0, 3.0]).ends()
    texts = [text.get_text() for text in heat.texts]
    first, last = f"{low:.2f} to {high:.2f}", f"{low + 3:.2f} to {high + 3:.2f}"
    assert texts == ["2.00", first, "2.00", "2.00", "3.00", "3.00", "2.00", "5.00", last, "5.00"]
    [alone, _] = dilemma_figures.payoffs_figure(cells[:1]).axes
    drawn = [text.get_text() for text in alone.texts]
    assert drawn == ["1.00", "1.00", "2.00", "3.00", "3.00", "2.00", "4.00", "4.00"]
    names = tuple(map(str, range(35)))
    many = [Cell(f"{run}", "none", "two", names, np.ones((35, 35)) + run * np.eye(35)) for run in range(2)]
    [heat, _] = dilemma_figures.payoffs_figure(many).axes
    assert sum(" to " in text.get_text() for text in heat.texts) == 35


def test_an_evolution_is_the_mean_over_runs_with_its_interval() -> None:
    payoffs = np.array([[1.0, 0.0], [2.0, 0.5]])
    cells = [Cell(f"{run}", "none", "two", ("a", "b"), payoffs * (1 + run)) for run in range(3)]
    shares, _ = dilemma_figures.population_figure(cells, steps=100).axes
    paths = np.array([replicator_dynamics(cell.payoffs, steps=100).path for cell in cells])
    second = shares.containers[1]
    assert isinstance(second, ErrorbarContainer)
    drawn, [bars] = np.asarray(second.lines[0].get_xydata()), second.lines[2]
    for (step, value), segment in zip(drawn, bars.get_segments(), strict=True):
        expected = mean(paths[:, int(step), 1].tolist(), SHARE)
        assert value == pytest.approx(expected.value)
        assert segment[:, 1].tolist() == pytest.approx([*expected.ends()])
    assert len(drawn) > 5
    [alone, _] = dilemma_figures.population_figure(cells[:1], steps=100).axes
    assert np.asarray(alone.lines[0].get_ydata()).tolist() == pytest.approx(paths[0, :, 0].tolist())


def test_cells_of_payoffs_have_those_of_both_co_players() -> None:
    payoffs = np.arange(8.0).reshape(2, 2, 2)
    figure = dilemma_figures.payoffs_figure([Cell("run", "none", "three", ("a", "b"), payoffs)])
    first, second = ([text.get_text() for text in heat.texts] for heat in figure.axes[:2])
    assert first[2:4] == [f"{payoffs[0, 1, 0]:.2f}", f"{payoffs[1, 0, 0]:.2f}, {payoffs[0, 0, 1]:.2f}"]
    assert second[4:6] == [f"{payoffs[1, 0, 1]:.2f}", f"{payoffs[0, 1, 1]:.2f}, {payoffs[1, 1, 0]:.2f}"]


def test_actions_of_figures_say_what_they_do_and_rows_are_in_order(plays: list[CrossPlay]) -> None:
    names = dilemma_frames.action_names(plays)
    assert names["prisoners"] == {"A0": "A0 (cooperates)", "A1": "A1 (defects)"}
    dots = dot_figures.actions_dots(dilemma_frames.actions_frame(plays), names)
    figure = next(each for each in dots if each.title == "prisoners").figure()
    [drawn], [legend] = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A0 (cooperates)", "delegate"]
    assert legend.get_title().get_text() == "mean probability of the action; the rest is A1 (defects)", "one run each"
    rows = [label.get_text() for label in drawn.get_yticklabels()]
    mechanisms = dict.fromkeys(play.mechanism for play in plays if play.game == "prisoners")
    assert rows == [f"{mechanism}, {model}" for mechanism in mechanisms for model in plays[0].models]
    frame = pd.DataFrame([{"mechanism": name, "game": "trust", "nash": 1.0} for name in ("gifts", "none", "contract")])
    [designs] = dot_figures.shares_dots(frame, dot_figures.DESIGNS, "Designs")
    assert [*designs.rows] == ["none", "gifts", "contract"]


def test_figures_with_intervals_say_so() -> None:
    shares = {"mechanism": "none", "game": "trust", "nash": 0.5}
    frame = pd.DataFrame([{**shares, "nash_low": 0.2, "nash_high": 0.8}])
    figure = dot_figures.shares_dots(frame, dot_figures.DESIGNS, "Designs")[0].figure()
    assert figure.get_supxlabel() == "share, with 95 % intervals over runs"


def test_colours_of_payoffs_tell_all_payoffs_apart() -> None:
    payoffs = np.array([[2.0, 0.0], [3.0, 1.0]])
    cell = Cell("run", "none", "prisoners", ("a", "b"), payoffs, scale=Scale(defect=1.0, cooperate=2.0))
    heat, _ = dilemma_figures.payoffs_figure([cell]).axes
    assert heat.images[0].get_clim() == (0.0, 3.0)


def test_equal_shares_do_not_cover_each_other() -> None:
    frame = pd.DataFrame([{"mechanism": "contract", "game": "trust", "model": "m:a", "nash": 1.0, "dominant": 1.0}])
    [axes] = dot_figures.shares_dots(frame, dot_figures.DESIGNS, "Designs")[0].figure().axes
    nash, dominant = (line.get_xydata() for line in axes.lines[:2])
    assert np.abs(np.asarray(nash) - np.asarray(dominant)).max() > 0.2


def test_runs_of_other_kinds_have_no_cross_play(url: str) -> None:
    with pytest.raises(UsageError, match="no run"):
        cross_plays(Runs(url, ["0123456789"]))
    with pytest.raises(UsageError, match="no run"):
        cross_plays(Runs(url, study="nothing"))
