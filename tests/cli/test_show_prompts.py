"""``labmates show --prompts``: what models read before they reply."""

from __future__ import annotations

from tests.support.command_line import Labmates


def test_prompts_stand_before_replies_each_message_once(labmates: Labmates) -> None:
    run = ("run", "dilemma", "--game", "travellers", "--models", "scripted:equilibrium", "--wording", "paper")
    assert labmates(*run).code == 0
    story, prompts = labmates("show", "last", "--full").out, labmates("show", "last", "--full", "--prompts").out
    assert "reads (" not in story
    assert prompts.count("you are player 1 of this game") == prompts.count("you are player 2 of this game") == 1
    assert prompts.count("You are taking part in a decision game") == 1  # Both players read the same rules.
    assert prompts.index("reads (user)") < prompts.index("reply (")
    assert [line for line in prompts.splitlines() if line in story.splitlines()] == story.splitlines()
    short = labmates("show", "last", "--prompts").out
    assert "more characters)" in short
