"""Organisations as files: what they hold, and how faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import (
    ORGANISATIONS,
    find_organisation,
    read_organisation,
    source_of,
)
from labmates.errors import UsageError
from labmates.workflows.science.graph import lab_graph
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates_author.commands.organisations import copy_organisation
from tests.support.teams import ALONE, PIPELINE

PAIR = """\
name: pair
description: Two researchers, one of whom writes.
prompts: texts
steps: [work, talk, write]
flow: [pair]
teams:
  pair:
    artifact: final_paper
    sections: [Abstract, Results]
    seats:
      ana: {title: analyst, part: Look at the data.}
      ben: {title: writer, part: Write it down.}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "work.md").write_text("# Step: work\nTask: $task. Turns: $turns. Cost: $$1.\n")
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    return path


def changed(file: Path, old: str, new: str) -> str:
    assert old in PAIR
    file.write_text(PAIR.replace(old, new))
    with pytest.raises(UsageError) as told:
        read_organisation(file)
    return str(told.value)


def test_a_file_is_read_with_the_prompts_beside_it(file: Path) -> None:
    pair = find_organisation(str(file))
    assert (
        pair.render("work", task="count", turns=3, plan="not shown") == "# Step: work\nTask: count. Turns: 3. Cost: $1."
    )
    assert pair.render("last_reply") == PIPELINE.render("last_reply")
    assert [seat.id for seat in pair.teams["pair"].members] == ["ana", "ben"]
    assert Organisation.model_validate(pair.model_dump(mode="json")) == pair


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "steps: [work,",
            "steps: [walk,",
            "pair.yaml:5: flow.0.steps.0.do: unknown step 'walk'. Did you mean 'talk'? Known: bid, debate, plan,",
        ),
        ("flow: [pair]", "flow: [pear]", "pair.yaml:5: flow.0: there is no team 'pear'. Did you mean 'pair'?"),
        ("final_paper", "paper", "pair.yaml:8: teams.pair.artifact: the team that works last has to write final_paper"),
        ("title: analyst, ", "", "pair.yaml:11: teams.pair.seats.ana.title: this key is missing"),
        ("part: Look", "work: Look", "pair.yaml:11: teams.pair.seats.ana.work: unknown key 'work'"),
        (
            "part: Look at the data.",
            "part: ana.md",
            "pair.yaml:11: teams.pair.seats.ana.part: there is no file 'ana.md' beside the file",
        ),
        ("prompts: texts", "prompts: text", "pair.yaml:3: prompts: there is no folder 'text' beside the file"),
        (
            "prompts: texts",
            "prompts: pair.yaml",
            "pair.yaml:3: prompts: there is no folder 'pair.yaml' beside the file",
        ),
        ("prompts: texts", "prompts: .", "pair.yaml:3: prompts: no file in the folder '.' is a prompt (NAME.md)"),
        ("prompts: texts", "prompts: texts/../..", "pair.yaml:3: prompts: 'texts/../..' is outside the folder of this"),
        ("prompts: texts", "prompts: /tmp", "pair.yaml:3: prompts: '/tmp' is outside the folder of this file; put it"),
        (
            "part: Look at the data.",
            "part: ../ana.md",
            "pair.yaml:11: teams.pair.seats.ana.part: '../ana.md' is outside the folder of this file",
        ),
        ("flow: [pair]\n", "", "pair.yaml:1: flow: this key is missing"),
        (
            "    sections:",
            "    tokens: {input: 1000000000000000000000000}\n    sections:",
            "pair.yaml:9: teams.pair.tokens.input: must be at most 100000000, not 1000000000000000000000000",
        ),
        (
            "    sections:",
            "    without: [fly]\n    sections:",
            "pair.yaml:9: teams.pair.without: there is no tool 'fly'",
        ),
        ("      ben:", "      ana:", "pair.yaml:12: teams.pair.seats.ana: repeated key (first in line 11)"),
        (
            "teams:",
            "channels: {read: {ana: [bert]}}\nteams:",
            "pair.yaml:6: channels.read.ana: there is no seat or team 'bert'. Teams: pair; seats: ana, ben",
        ),
        ("teams:", "channels: {tell: some}\nteams:", "pair.yaml:6: channels.tell: 'some' is not all, none or lists"),
        ("teams:", "channels: some\nteams:", "pair.yaml:6: channels: 'some' is not all, none or lists for read"),
        ("teams:", "shares: half\nteams:", "pair.yaml:6: shares: 'half' is not pooled, equal or shares of seats"),
        ("teams:", "shares: {ana: 2}\nteams:", "pair.yaml:6: shares: the share of ana must be above 0 and at most 1"),
        ("teams:", "shares: {ana: 0.5}\nteams:", "pair.yaml:6: shares: the seat ben has no share; give it one"),
        ("teams:", 'shares: {"ana(": 0.5}\nteams:', "pair.yaml:6: shares.ana(: there is no seat or team 'ana('."),
        ("teams:", "shares: {bea: 0.5, all: 0.1}\nteams:", "pair.yaml:6: shares.bea: there is no seat or team 'bea'."),
        (
            "{title: analyst, ",
            "{human: true, python: a:b, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: it has both python and human; a seat has one agent",
        ),
        (
            "{title: analyst, ",
            "{a2a: worker, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: 'worker' is not an address such as http://",
        ),
        (
            "{title: analyst, ",
            "{a2a: 'http://me:secret@here/', title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: records would hold the password in the address; leave it out",
        ),
        (
            "{title: analyst, ",
            "{human: true, model: openai:m, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: a person asks no model; leave out model, or human",
        ),
        (
            "{title: analyst, ",
            "{python: agent, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: python: 'agent' is not module:function or file.py:function",
        ),
        (
            "{title: analyst, ",
            "{command: agent.py, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana.command: expected a list, e.g. [a, b]",
        ),
        (
            "{title: analyst, ",
            "{command: [''], title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana: command: its first word is empty; name a program",
        ),
        (
            "{title: analyst, ",
            "{seconds: 0, title: analyst, ",
            "pair.yaml:11: teams.pair.seats.ana.seconds: must be above 0",
        ),
        ("name: pair", "- pair", "pair.yaml:2: invalid YAML"),
        ("name: pair", "name: a b", "pair.yaml:1: name: a name has letters (A-Z and a-z, no accents), digits, '.'"),
        ("name: pair", "name: 5", "pair.yaml:1: name: expected a text, not 5"),
        ("flow: [pair]", "flow: pair", "pair.yaml:5: flow: expected a list, e.g. [a, b], not 'pair'"),
        ("flow: [pair]", "flow: [3]", "pair.yaml:5: flow.0: 3 is not a phase; write a team, or TEAM: [steps]"),
        ("flow: [pair]", "flow:", "pair.yaml:5: flow: expected a list, e.g. [a, b]; nothing stands here"),
        ("steps: [work,", "steps: [{talk: many},", "flow.0.steps.0.rounds: expected a whole number, not 'many'"),
        ("steps: [work,", "steps: [{talk: 99},", "flow.0.steps.0.rounds: must be at most 20, not 99"),
        ("steps: [work,", "steps: [{talk: 1, bid: 2},", "a step has one detail, e.g. {talk: 2}"),
        ("title: analyst, ", "title: analyst, count: 0, ", "ana: count is a whole number from 1 to 16, not 0"),
        ("title: analyst, ", "title: analyst, count: two, ", "ana: count is a whole number from 1 to 16, not 'two'"),
        ("title: analyst, ", "title: analyst, evidence: tapes, ", "ana.evidence: expected a whole number, not 'tapes'"),
        ("title: analyst, ", "titel: analyst, ", "unknown key 'titel'. Did you mean 'title'? Keys: title, part,"),
        ("      ana:", "      Ana B:", "seats.Ana B: a name has letters from a to z, digits and _"),
        ("    sections:", "    also: {final_paper: [A]}\n    sections:", "final_paper is the team's artifact already"),
        (
            "    sections:",
            "    memory: always\n    sections:",
            "expected 'step', 'phase' or 'conversation', not 'always'",
        ),
        (
            "    sections:",
            "    tokens: 5\n    sections:",
            "teams.pair.tokens: expected keys with values",
        ),
        ("teams:", "channels: [ana]\nteams:", "pair.yaml:6: channels: expected keys with values"),
        ("teams:", "channels: {hear: all}\nteams:", "channels.hear: unknown key 'hear'. Keys: read, tell, ask"),
        ("teams:", "size: 99\nteams:", "pair.yaml:6: size: must be at most 16, not 99"),
        ("teams:", "colour: red\nteams:", "pair.yaml:6: colour: unknown key 'colour'. Keys: name, description,"),
        ("teams:", "approve: [plans]\nteams:", "approve.0: expected 'plan', 'request' or 'write', not 'plans'"),
        (
            "teams:",
            "graph: work.py:work\nteams:",
            "pair.yaml:7: teams: an organisation as code has none; name its seats",
        ),
    ],
)
def test_a_fault_is_told_with_its_line_and_the_remedy(file: Path, old: str, new: str, told: str) -> None:
    assert told in changed(file, old, new)


def test_a_part_may_be_a_file_which_new_copies_and_show_prints(file: Path, tmp_path: Path) -> None:
    (file.parent / "roles").mkdir()
    (file.parent / "roles" / "ana.md").write_text("Look at the data.\n")
    original = find_organisation(str(file))
    file.write_text(PAIR.replace("part: Look at the data.", "part: roles/ana.md"))
    assert find_organisation(str(file)) == original
    assert source_of(str(file))["roles/ana.md"] == "Look at the data.\n"
    copy = copy_organisation(str(file), "copied", tmp_path / "copy")
    assert find_organisation(str(copy)).teams == original.teams


def test_files_that_a_seat_names_stand_beside_the_file_and_in_its_key(file: Path) -> None:
    (file.parent / "agent.py").write_text("async def work(seat): ...")
    file.write_text(PAIR.replace("{title: analyst, ", "{python: agent.py:work, title: analyst, "))
    [ana, ben] = find_organisation(str(file)).teams["pair"].members
    assert ana.python == f"{file.parent / 'agent.py'}:work"
    assert (ana.outside, ben.outside) == ("python", "")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("work", "Cost: $", "work.md has a lone $; write $$ for a dollar sign"),
        ("work", "$taks", "work.md: there is no value $taks; values: $artifact,"),
        ("walk", "Go.", "walk.md is not a prompt of the lab"),
    ],
)
def test_a_prompt_that_cannot_be_filled_in_is_refused(file: Path, name: str, text: str, told: str) -> None:
    (file.parent / "texts" / f"{name}.md").write_text(text)
    with pytest.raises(UsageError, match=r"pair\.yaml:3: prompts: ") as error:
        read_organisation(file)
    assert told in str(error.value)


def test_an_unknown_name_and_a_missing_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown organisation 'pipelin'\. Did you mean 'pipeline'\?"):
        find_organisation("pipelin")
    with pytest.raises(UsageError, match=r"'team\.py' names no function; write team\.py:FUNCTION"):
        find_organisation("team.py")
    with pytest.raises(UsageError, match=r"can't read '.*none\.yaml': No such file"):
        find_organisation(str(tmp_path / "none.yaml"))


def condition(**values: object) -> ScienceCondition:
    return ScienceCondition.model_validate({"task": "ecology", "model": "scripted:diligent", **values})


def test_the_content_of_a_file_is_in_the_condition_and_its_key(file: Path) -> None:
    pair = condition(organisation=str(file))
    assert pair.model_dump(mode="json")["organisation"]["prompts"]["work"].startswith("# Step: work")
    again = condition(organisation=pair.model_dump(mode="json")["organisation"])
    file.write_text(PAIR.replace("Look at the data.", "Look twice."))
    assert again.key == pair.key != condition(organisation=str(file)).key
    assert again.organisation == pair.organisation


@pytest.mark.parametrize("count", ["", "count: 2, "])
def test_an_unknown_model_of_a_seat_is_told_with_its_line(file: Path, count: str) -> None:
    file.write_text(PAIR.replace("ana: {", f"ana: {{{count}model: 'openia:m', "))
    where = "pair.yaml:11: teams.pair.seats.ana.model"
    with pytest.raises(UsageError, match=f"^{where}: unknown model provider 'openia'. Did you mean 'openai'"):
        condition(organisation=str(file)).check()
    recorded = condition(organisation=str(file)).model_dump(mode="json")
    recorded["organisation"]["name"] = "of_another_process"
    with pytest.raises(UsageError, match=r"^organisation of_another_process: teams.pair.seats.ana(_1)?.model: unknown"):
        ScienceCondition.model_validate(recorded).check()
    condition(organisation=str(file), model_for={"pair": "scripted:silent"}).check()


def test_an_organisation_by_its_short_form_has_the_same_key() -> None:
    assert condition(organisation="pipeline").key == condition().key
    assert condition(organisation="solo").key == condition(solo=True).key
    assert condition(solo=True).organisation == ALONE
    assert condition(organisation=PIPELINE).key == condition().key


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"organisation": "pipeline", "solo": True}, "solo.*contradicts the organisation pipeline; leave it out"),
        (
            {"organisation": "hybrid", "team_size": 4, "shares": {"member": 0.4, "all": 0.1}},
            "the shares of its 4 seats add up to 1.3",
        ),
        ({"model_for": {"kitchen": "scripted:silent"}}, "unknown team or seat 'kitchen'. Teams: data, model"),
    ],
)
def test_a_condition_that_does_not_fit_its_organisation_is_refused(values: dict[str, object], told: str) -> None:
    if shares := values.pop("shares", None):
        values["organisation"] = {**find_organisation(str(values["organisation"])).model_dump(), "shares": shares}
    with pytest.raises(ValueError, match=f"(?s){told}"):
        condition(**values)


@pytest.mark.parametrize("name", ORGANISATIONS.names())
def test_a_built_in_organisation_has_a_graph_with_its_seats(name: str) -> None:
    organisation = find_organisation(name)
    drawing = lab_graph(organisation).get_graph(xray=True).draw_mermaid()
    seats = [seat for team in organisation.teams.values() for seat in team.seats]
    assert all(seat in drawing for seat in seats)
    assert len(set(seats)) == len(seats)
    assert organisation.description


def test_channels_say_who_may_read_tell_and_ask_whom(file: Path) -> None:
    channels = "channels: {read: {ana: ben}, tell: {pair: all}, ask: none}\nteams:"
    file.write_text(PAIR.replace("teams:", channels))
    pair = read_organisation(file)
    reached = {
        verb: [
            (who, whom) for who, whom in (("ana", "ben"), ("ben", "ana"), ("ana", "pair")) if pair.may(verb, who, whom)
        ]
        for verb in ("read", "tell", "ask")
    }
    assert reached["read"] == [("ana", "ben"), ("ana", "pair")]
    assert reached["tell"] == [("ana", "ben"), ("ben", "ana"), ("ana", "pair")]
    assert reached["ask"] == [("ana", "pair")]
    assert Organisation.model_validate(pair.model_dump(mode="json")) == pair


def test_a_counted_seat_is_named_by_its_stem_in_channels() -> None:
    crew = find_organisation("centralised")
    assert crew.may("read", "member_2", "coordinator")
    assert crew.may("read", "coordinator", "member_2")
    assert not crew.may("read", "member_2", "member_1")
    assert crew.may("read", "member_2", "member_2")


def test_shares_are_equal_or_go_by_the_first_name_that_stands_for_a_seat(file: Path) -> None:
    assert find_organisation("hybrid").of_size(4).share_of_seats() == {}
    file.write_text(PAIR.replace("teams:", "shares: equal\nteams:"))
    assert read_organisation(file).share_of_seats() == {"ana": 0.5, "ben": 0.5}
    file.write_text(PAIR.replace("teams:", "shares: {ben: 0.7, pair: 0.2}\nteams:"))
    assert read_organisation(file).share_of_seats() == {"ana": 0.2, "ben": 0.7}
