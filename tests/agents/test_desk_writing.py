"""Writing on a desk: new versions, additions, sections, and what is kept of a cut call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.agents.sections import continued, named_sections, sections_of, with_section
from labmates.agents.tools import ToolError
from labmates.agents.workspace import MOST_ARTIFACT_CHARS, Workspace
from labmates.models.reply import ToolCall
from tests.support.teams import PIPELINE

PAPER = """# The paper

## Abstract
Short.

## Methods
All.

### Code
```python
# Results
print(1)
```

## Results
Many.
"""


def workspace(**artifacts: str) -> Workspace:
    return Workspace(PIPELINE, "writing", artifacts, {})


def test_sections_are_found_by_their_headings_and_not_within_code() -> None:
    titles = [(section.title, section.level) for section in sections_of(PAPER)]
    assert titles == [("The paper", 1), ("Abstract", 2), ("Methods", 2), ("Code", 3), ("Results", 2)]
    [methods] = named_sections(PAPER, "**methods**:")
    assert PAPER[methods.begin : methods.end].endswith("```\n\n")


@given(st.lists(st.sampled_from(["# A", "## B", "### C", "```", "~~~", "text", ""]), max_size=12), st.data())
def test_replacing_a_section_leaves_the_rest_as_it_is(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines)
    sections = sections_of(text)
    if not sections:
        return
    section = data.draw(st.sampled_from(sections))
    changed = with_section(text, section, "new")
    assert changed.startswith(text[: section.begin])
    assert changed.endswith(text[section.end :])
    assert "\nnew\n" in changed


def test_a_section_is_replaced_with_or_without_its_heading_in_the_new_text() -> None:
    for content in ("Better.", "## Methods\nBetter.", "\n\n## methods\n\nBetter."):
        paper = workspace(final_paper=PAPER)
        paper.replace_section("final_paper", "Methods", content)
        text = paper.text("final_paper")
        assert [section.title.lower() for section in sections_of(text)] == [
            "the paper",
            "abstract",
            "methods",
            "results",
        ]
        assert "Better.\n\n## Results\nMany." in text
        assert "All." not in text


@pytest.mark.parametrize(
    ("heading", "says"),
    [
        ("Conclusion", "no section 'Conclusion'. Its sections: 'The paper', 'Abstract', 'Methods', 'Code', 'Results'"),
        ("", "has no section"),
    ],
)
def test_an_unknown_section_is_refused_with_those_that_there_are(heading: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        workspace(final_paper=PAPER).replace_section("final_paper", heading, "x")


def test_a_heading_that_stands_twice_is_refused() -> None:
    with pytest.raises(ToolError, match="has 2 sections called 'A'"):
        workspace(final_paper="## A\n1\n## A\n2").replace_section("final_paper", "A", "x")


def test_what_does_not_exist_can_not_be_continued() -> None:
    with pytest.raises(ToolError, match="no artifact 'final_paper' yet: write it with write_artifact"):
        workspace().append("final_paper", "x")
    with pytest.raises(ToolError, match="no artifact 'final_paper' yet"):
        workspace().replace_section("final_paper", "A", "x")


def test_what_belongs_to_another_team_can_not_be_changed() -> None:
    others = Workspace(PIPELINE, "data", {"final_paper": PAPER}, {})
    with pytest.raises(ToolError, match="belongs to the writing team"):
        others.append("final_paper", "x")
    with pytest.raises(ToolError, match="belongs to the writing team"):
        others.replace_section("final_paper", "Abstract", "x")


def test_an_artifact_can_not_grow_without_end() -> None:
    paper = workspace(final_paper="x" * (MOST_ARTIFACT_CHARS - 10))
    with pytest.raises(ToolError, match="at most 60000"):
        paper.append("final_paper", "y" * 20)
    with pytest.raises(ToolError, match="empty"):
        paper.append("final_paper", " \n")


def test_an_addition_to_a_whole_text_is_a_new_paragraph_and_a_cut_word_goes_on() -> None:
    assert continued("All is said.\n", "\nMore.", cut=False) == "All is said.\n\nMore."
    assert continued("the resid", "uals are even", cut=True) == "the residuals are even"
    assert continued("and so on", "## Results\nMany", cut=True) == "and so on\n\n## Results\nMany"
    assert continued("the mean of the resid", "the mean of the residuals is 0", cut=True) == (
        "the mean of the residuals is 0"
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_nothing_of_a_text_is_lost_when_it_is_continued(text: str, piece: str) -> None:
    whole = continued(text, piece, cut=True)
    assert whole.startswith(text)
    assert whole.endswith(piece)


def cut_call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall("", tool, arguments)


def test_a_cut_call_leaves_a_partial_version_that_additions_complete() -> None:
    paper = workspace()
    assert (
        paper.keep_cut(cut_call("write_artifact", name="final_paper", content="## Abstract\nWe fou")) == "final_paper"
    )
    assert paper.is_partial("final_paper")
    assert "partial" in paper.list()
    assert paper.keep_cut(cut_call("append_artifact", name="final_paper", content="nd much. And")) == "final_paper"
    assert paper.is_partial("final_paper")
    paper.append("final_paper", " so on.")
    assert not paper.is_partial("final_paper")
    assert paper.text("final_paper") == "## Abstract\nWe found much. And so on."


def test_a_text_that_breaks_off_takes_the_place_of_no_longer_one() -> None:
    paper = workspace()
    paper.keep_cut(cut_call("write_artifact", name="final_paper", content="a longer text"))
    assert paper.keep_cut(cut_call("write_artifact", name="final_paper", content="a long")) == "final_paper"
    assert paper.text("final_paper") == "a longer text"
    whole = workspace(final_paper=PAPER)
    assert whole.keep_cut(cut_call("write_artifact", name="final_paper", content="# The pa")) is None
    assert not whole.is_partial("final_paper")


@pytest.mark.parametrize(
    "call",
    [
        cut_call("write_artifact", name="final_paper"),
        cut_call("write_artifact", content="text"),
        cut_call("write_artifact", name="final_paper", content=" "),
        cut_call("write_artifact", name="dataset_description", content="another team's"),
        cut_call("append_artifact", name="final_paper", content="nothing to add to"),
        cut_call("replace_section", name="final_paper", heading="Abstract", content="half"),
        cut_call("run_code", code="print(1"),
        cut_call("write_artifact", name=["final_paper"], content={"a": 1}),
    ],
)
def test_of_other_cut_calls_nothing_is_kept(call: ToolCall) -> None:
    paper = workspace()
    assert paper.keep_cut(call) is None
    assert paper.written == []


def test_writing_the_last_section_anew_mends_a_partial_text() -> None:
    paper = Workspace(PIPELINE, "writing", {"final_paper": "## A\none\n## B\nbreaks o"}, {}, cut=["final_paper"])
    paper.replace_section("final_paper", "A", "1")
    assert paper.is_partial("final_paper")
    paper.replace_section("final_paper", "B", "breaks off no more.")
    assert not paper.is_partial("final_paper")
