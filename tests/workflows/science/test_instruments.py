"""Who holds which instrument of divided evidence, and which organisations can bring them together."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.errors import UsageError
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.instruments import dead_end, holdings

NAMES = ("readings", "register", "workshop")
SEATS = {name: {"title": "analyst", "part": "Work."} for name in ("ana", "ben", "cho")}


def condition(organisation: Any, **values: Any) -> ScienceCondition:
    given = {"task": "anomaly", "model": "scripted:sharing", "evidence": "split:1", "organisation": organisation}
    return ScienceCondition.model_validate({**given, **values})


def crew(flow: list[Any], *, seats: dict[str, Any] = SEATS, **more: Any) -> Organisation:
    """An organisation of one team."""
    team = {"artifact": "final_paper", "sections": ["Abstract"], "seats": seats, **more.pop("team", {})}
    values = {"name": "mine", "size": 3, "flow": [{"all": steps} for steps in flow], "teams": {"all": team}, **more}
    return Organisation.model_validate(values)


@pytest.mark.parametrize(
    ("name", "size", "held"),
    [
        ("pipeline", 2, {"data_lead": 1, "data_engineer": 2, "ml_engineer": 0, "eval_lead": 0, "lead_author": None}),
        ("pipeline", 3, {"data_lead": 0, "data_engineer": 1, "domain_expert": 2, "ml_engineer": 0}),
        ("centralised", 4, {"coordinator": None, "member_1": 0, "member_2": 1, "member_3": 2}),
        ("hybrid", 5, {"coordinator": None, "member_1": 0, "member_2": 0, "member_3": 1, "member_4": 2}),
        ("decentralised", 3, {"peer_1": 0, "peer_2": 1, "peer_3": 2}),
        ("blackboard", 3, {"modeller": 0, "checker": 1, "explorer": 2}),
        ("independent", 2, {"researcher_1": 0, "researcher_2": 1}),
    ],
)  # fmt: skip
def test_keys_go_to_the_last_of_those_who_run_code_first_and_readings_to_all_others(
    name: str, size: int, held: dict[str, int | None]
) -> None:
    placed = holdings(find_organisation(name).of_size(size), 3)
    assert {seat: placed.get(seat) for seat in held} == held


def test_an_organisation_places_the_instruments_that_it_names() -> None:
    seats = {**SEATS, "ana": {**SEATS["ana"], "evidence": 3}, "ben": {**SEATS["ben"], "evidence": 1}}
    assert holdings(crew([["work", "write"]], seats=seats), 3) == {"ana": 2, "ben": 0, "cho": 1}
    assert holdings(crew([["work", "write"]], seats={"ana": SEATS["ana"]}), 3) == {"ana": 0}


def test_the_mute_arm_holds_what_the_team_holds() -> None:
    team, mute = condition("hybrid", team_size=4), condition("hybrid", team_size=4, arm="mute")
    assert team.holdings == {"member_1": 0, "member_2": 1, "member_3": 2}
    assert mute.holdings == {**team.holdings, "coordinator": 0}
    assert not condition("hybrid", evidence="shared").holdings


@pytest.mark.parametrize("name", ["pipeline", "centralised", "decentralised", "hybrid", "blackboard"])
def test_each_built_in_organisation_of_its_own_size_brings_the_instruments_together(name: str) -> None:
    condition(name).check()


@pytest.mark.parametrize("name", ["solo", "independent"])
def test_seats_that_reach_nobody_are_a_control_and_not_refused(name: str) -> None:
    condition(name).check()


def test_a_team_too_small_for_the_instruments_is_refused_with_the_size_that_would_do() -> None:
    small = condition("centralised", team_size=3)
    with pytest.raises(UsageError, match=r"nobody who runs code holds the workshop: 2 seats .* use --team-size 4$"):
        small.check()
    for other in ({"evidence": "split:0"}, {"evidence": "shared"}, {"arm": "mute"}, {"arm": "oracle"}):
        condition("centralised", **{"team_size": 3, **other}).check()


def test_keys_that_come_after_the_last_work_are_refused() -> None:
    once = crew([["work", "talk", "write"]])
    with pytest.raises(UsageError, match="those of ben come too late; give the organisation another phase"):
        condition(once).check()
    condition(crew([["work", "talk"], ["work", "write"]])).check()


WITHOUT = {"without": ["write_artifact", "append_artifact", "replace_section", "send_message"]}
BEN = {name: {**seat, "evidence": held} for (name, seat), held in zip(SEATS.items(), (2, 1, 3), strict=True)}
"""Seats of which the second holds the readings."""
TWICE: list[Any] = [["work", "talk"], ["work", "write"]]
QUIET: list[Any] = [["work"], ["work", "write"]]
FORGETFUL = {"work": "$task"}
"""A prompt without what was reported and said in the phases before."""


@pytest.mark.parametrize(
    ("organisation", "reason"),
    [
        (crew(QUIET), ""),  # by artifacts
        (crew(QUIET, channels={"read": "none"}), "come too late"),
        (crew(TWICE, channels={"read": "none"}, team={"memory": "conversation"}, seats=BEN), "never reaches"),
        (crew(TWICE, channels={"read": {"ana": "all"}}, team={"memory": "conversation"}), ""),  # by talk
        (crew(TWICE, team=WITHOUT), ""),  # the order to work repeats what was said
        (crew(QUIET, team=WITHOUT), ""),  # and what was reported
        (crew(TWICE, team=WITHOUT, prompts=FORGETFUL), "come too late"),
        (crew(TWICE, team={**WITHOUT, "memory": "conversation"}, prompts=FORGETFUL), ""),
        (
            crew(
                TWICE, channels={"tell": "none"}, team={**WITHOUT, "memory": "conversation"}, prompts=FORGETFUL
            ),
            "come too late",
        ),
        (crew(TWICE, channels={"tell": "none", "read": "none"}, team=WITHOUT), "come too late"),
        (crew(QUIET, team=WITHOUT, seats=BEN), ""),  # the author's order has the last reports
        (
            crew([["work"], ["plan", "work", "write"]], team=WITHOUT, prompts={"plan": "$so_far $member_lines"}),
            "",
        ),  # by reports to the lead and its plan
        (crew([["bid", "work"], ["bid", "work"], ["write"]]), "come too late"),
        (crew([["bid", "work"], ["bid", "work"], ["bid", "work"], ["write"]]), ""),
    ],
)  # fmt: skip
def test_keys_pass_by_the_channels_of_the_organisation_alone(organisation: Organisation, reason: str) -> None:
    found = dead_end(organisation, holdings(organisation, 3), NAMES, requests=2)
    assert reason in found
    assert bool(reason) == bool(found)


def test_a_request_brings_keys_back_to_an_earlier_team() -> None:
    def team(artifact: str, **seats: int) -> dict[str, Any]:
        described = {name: {"title": "analyst", "part": "Work.", "evidence": held} for name, held in seats.items()}
        return {"artifact": artifact, "sections": ["Abstract"], "seats": described}

    teams = {"first": team("notes", ana=1), "second": team("final_paper", ben=2, cho=3)}
    late = Organisation.model_validate(
        {"name": "late", "flow": ["first", "second"], "teams": teams, "steps": ["work", "write"]}
    )
    assert dead_end(late, holdings(late, 3), NAMES, requests=2) == ""
    assert "come too late" in dead_end(late, holdings(late, 3), NAMES, requests=0)
