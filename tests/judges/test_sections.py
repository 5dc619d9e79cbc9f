"""Finding the seven sections in what models write, and telling substance from headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.judges.prose import read_prose, statements
from labmates.judges.sections import SECTIONS, find_sections, named_sections

HEADINGS = ("Abstract", "Introduction", "Dataset Description", "Methods", "Results", "Evaluation", "Conclusion")


def text(about: str) -> str:
    """Return two sentences on a subject with enough words for one section."""
    return (
        f"In this part the team tells at some length what it has to say about the {about} of its work. "
        f"It goes on with a second sentence on the {about}, so that a reader can follow it."
    )


def written(form: str) -> str:
    return "\n\n".join(
        form.format(n=n, title=title, upper=title.upper(), lower=title.lower(), text=text(title))
        for n, title in enumerate(HEADINGS, 1)
    )


def solid(prose: str) -> list[str]:
    return [name for name, section in find_sections(read_prose(prose).text).items() if section.has_substance]


@pytest.mark.parametrize(
    "form",
    [
        "# {title}\n{text}",
        "###### {title} ######\n\n{text}",
        "## {n}. {title}\n{text}",
        "## {n}) {title}:\n{text}",
        "## **{title}**\n{text}",
        "## Section {n}: {title}\n{text}",
        "{title}\n=====\n{text}",
        "{n}. {title}\n---\n\n{text}",
        "**{title}**\n\n{text}",
        "**{n}. {title}:**\n{text}",
        "**{title}.** {text}",
        "**{title}** — {text}",
        "__{title}__\n{text}",
        "{upper}\n\n{text}",
        "{n}. {title}\n\n{text}",
        "{title}:\n{text}",
        "## {title}\r\n\r\n{text}\r\n",
    ],
)
def test_every_usual_form_of_heading_is_found(form: str) -> None:
    assert solid(written(form)) == list(SECTIONS)


def test_a_report_wrapped_as_markdown_under_a_title_is_read() -> None:
    report = (
        "```markdown\n# Data and methods for results\n\n"
        + written("## {title}\n{text}")
        + "\n```findings\n{}\n```\n```\n"
    )
    assert solid(report) == list(SECTIONS)


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Abstract", ("abstract",)),
        ("Executive summary", ("abstract",)),
        ("Summary", ("abstract",)),
        ("1 Background", ("introduction",)),
        ("Introduction to the data", ("introduction",)),
        ("Data", ("dataset description",)),
        ("2.1 The data set", ("dataset description",)),
        ("III. Methodology", ("methods",)),
        ("Our modelling approach", ("methods",)),
        ("Key findings", ("results",)),
        ("Results and discussion", ("results",)),
        ("Model evaluation", ("evaluation",)),
        ("Evaluation results", ("evaluation",)),
        ("Discussion and Conclusion", ("conclusion",)),
        ("Conclusions & future work", ("conclusion",)),
        ("Materials and methods", ("methods",)),
        ("Data and methods", ("dataset description", "methods")),
        ("Results / Evaluation", ("results", "evaluation")),
        ("Discussion", ()),
        ("References", ()),
        ("Abstract, introduction, data, methods, results, evaluation and conclusion", ()),
        ("The results show that the data of the third team were not at all what we thought", ()),
    ],
)
def test_what_a_heading_names(heading: str, names: tuple[str, ...]) -> None:
    assert named_sections(heading) == names


@pytest.mark.parametrize(
    "body",
    [
        "",
        "One sentence alone, of fewer than twenty words, is no section.",
        "Too short. Also short. And this too.",
        "TODO: write down what was done here by the team. [Insert a second sentence on the methods used here, please, "
        "with all of the details that readers may want to see.]",
        "```\n" + text("methods") + "\n```",
        "<!-- " + text("methods") + " -->",
        "| --- | --- | --- |\n|---|---|---|",
        text("results"),
    ],
)
def test_a_heading_without_own_text_is_no_section(body: str) -> None:
    report = f"## Results\n{text('results')}\n\n## Methods\n{body}\n\n## Conclusion\n{text('conclusion')}\n"
    assert solid(report) == ["results", "conclusion"]


@pytest.mark.parametrize(
    "body",
    [
        "- the first item of this list says something on the growth of all species\n"
        "- the second item of this list says something on the effects between two of them",
        "| species | change | error | found by which of the teams |\n|---|---|---|---|\n"
        "| Calvora lenta | fell by one half of it | small | model team |\n"
        "| Gelasta acuta | rose by one third | large | eval team |",
    ],
)
def test_lists_and_tables_have_substance(body: str) -> None:
    assert solid(f"## Results\n{body}\n") == ["results"]


def test_one_long_sentence_has_substance() -> None:
    asks = "We ask which covariates raise the grade, how the rest varies in space, and how well all can be predicted."
    assert solid(f"## Introduction\n{asks}\n") == ["introduction"]


def test_the_same_text_counts_once() -> None:
    assert solid("\n\n".join(f"## {title}\n{text('same')}" for title in HEADINGS)) == ["abstract"]


def test_a_shared_heading_needs_twice_the_text() -> None:
    assert solid(f"## Data and methods\n{text('data')}") == []
    assert solid(f"## Data and methods\n{text('data')} {text('methods')}") == ["dataset description", "methods"]


def test_text_below_a_deeper_heading_belongs_to_the_section_around_it() -> None:
    deeper = f"## Methods\n\n### Data cleaning\n{text('cleaning')}\n\n#### Evaluation protocol\n{text('protocol')}\n"
    assert solid(deeper) == ["methods"]
    assert solid(f"## Results\n\n### Evaluation\n{text('evaluation')}") == ["evaluation"]
    assert solid(f"## Methods\n\n**Results of cleaning**\n\n{text('cleaning')}") == ["methods"]


def test_text_after_an_unknown_heading_of_the_same_level_belongs_to_none() -> None:
    assert solid(f"## Conclusion\n\n## Acknowledgements\n{text('thanks')}") == []


def test_headings_in_code_are_none() -> None:
    assert solid(f"```python\n# Results\n```\n{text('results')}") == []


@given(st.text(alphabet=st.sampled_from("# *_=-|.\n12abcdeflmnorstuADIMRC`<>!")))
def test_any_text_has_seven_sections_with_counts(prose: str) -> None:
    sections = find_sections(prose)
    assert tuple(sections) == SECTIONS
    assert all(section.words >= 0 for section in sections.values())


def test_statements_are_sentences_items_and_rows_but_no_headings() -> None:
    prose = (
        "# Head\nOne sentence that\nruns over lines. Another one (e.g. 3.5 of it)!\n"
        "- an item\n* more\n| a | b |\n|---|---|\nEnd"
    )
    assert list(statements(prose)) == [
        "One sentence that runs over lines.",
        "Another one (e.g. 3.5 of it)!",
        "an item",
        "more",
        "| a | b |",
        "End",
    ]
