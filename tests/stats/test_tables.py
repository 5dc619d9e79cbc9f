"""Tables: people see rounded columns, programs get every value, and no text steers what reads it."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.stats.table_files import check_table, csv_text, escape_latex, latex, write_tables
from labmates.stats.tables import Column, Table

ROWS = [
    {"part": "Game", "predictor": "O-Ring", "b": -0.0081, "b_low": -0.015, "b_high": -0.001, "sure": True, "n": 1462},
    {"part": "Game", "predictor": "a_b & 5%", "b": 0.5, "b_low": None, "b_high": None, "sure": False, "n": 2},
    {"part": "Model", "predictor": "log(size)", "b": math.nan, "sure": False, "n": np.int64(34)},
]
COLUMNS = [
    Column("part", once=True),
    Column("predictor"),
    Column("b", "β̂", "+.3f", group="Accuracy", marked="sure"),
    Column("b", shows="interval", form="+.3f", group="Accuracy"),
    Column("n"),
]


@pytest.fixture
def table() -> Table:
    return Table("effects", "Effects on accuracy", COLUMNS, ROWS, ["† 95 % interval excludes zero."])


def test_people_see_the_columns_rounded_with_marks_and_what_is_missing(table: Table) -> None:
    assert list(table.cells()) == [
        ["Game", "O-Ring", "-0.008†", "[-0.015, -0.001]", "1,462"],
        ["", "a_b & 5%", "+0.500", "–", "2"],
        ["Model", "log(size)", "–", "–", "34"],
    ]


def test_a_value_can_stand_with_its_interval_in_one_cell() -> None:
    both = Column("b", form=".2f", shows="both")
    assert [both.cell(row) for row in ROWS[:2]] == ["-0.01 [-0.01, 0.00]", "0.50"]


def test_a_reason_that_all_cells_share_stands_once_under_the_table() -> None:
    alone, other = {"x": 0.5, "x_reason": "one value"}, {"x": 0.25, "x_reason": "no variation"}
    same = Table("t", "T", [Column("x", shows="both")], [alone, alone])
    assert ([*same.cells()], same.notes) == ([["0.500"], ["0.500"]], ("No intervals: one value.",))
    mixed = Table("t", "T", [Column("x", shows="both")], [alone, other])
    assert ([*mixed.cells()], mixed.notes) == ([["0.500 [one value]"], ["0.250 [no variation]"]], ())


def test_pages_say_once_what_all_rows_of_a_wide_table_share_and_show_a_single_one_as_a_record() -> None:
    columns = [Column("task"), *(Column(f"c{number}", group="dollars") for number in range(8))]
    rows = [{"task": "ecology", **{f"c{number}": float(number * row) for number in range(8)}} for row in (1, 2)]
    assert Table("t", "T", columns, rows).shared() == ["task ecology", "dollars c0 0.000", *[""] * 7]
    assert not any(Table("t", "T", columns[:8], rows).shared())
    assert [Table("t", "T", columns, rows[:number]).is_record for number in (1, 2)] == [True, False]


def test_large_numbers_are_whole_with_thousands_marked() -> None:
    columns = [Column("a"), Column("b", form="+.2f", shows="both"), Column("c", form=".2e"), Column("d", form="d")]
    rows = [{"a": 999.5, "b": -72996.4, "b_low": -999.25, "b_high": 1000.0, "c": 5000.0, "d": 1234567}]
    assert list(Table("t", "T", columns, rows).cells()) == [
        ["999.500", "-72,996 [-999.25, +1,000]", "5.00e+03", "1234567"]
    ]


def test_latex_has_groups_parts_and_escaped_text(table: Table) -> None:
    lines = latex(table).splitlines()
    assert r"\begin{tabular}{llrrr}" in lines
    assert r" &  & \multicolumn{2}{c}{Accuracy} &  \\" in lines
    assert r"\cmidrule(lr){3-4}" in lines
    assert r"part & predictor & $\hat{\beta}$ & 95\% CI & n \\".replace(r"95\%", r"95 \%") in lines
    assert r"Game & O-Ring & $-$0.008$^{\dagger}$ & {[$-$0.015, $-$0.001]} & 1,462 \\" in lines
    assert r" & a\_b \& 5\% & +0.500 & -- & 2 \\" in lines
    assert lines.count(r"\addlinespace") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert lines.count(rule) == 1


@given(st.text())
def test_no_text_is_a_command_in_latex(text: str) -> None:
    left = re.sub(r"\\(text(backslash|asciitilde|asciicircum|less|greater|bar)|dots|[&%$#_{}])", "", escape_latex(text))
    left = re.sub(r"\$(-|\^2|\^\{\\d?dagger\}|\\hat\{\\\w+\}|\\\w+)\$", "", left)
    assert not re.search(r"[\\&%$#_~^<>|]", left)
    assert "\n" not in left


def test_names_of_models_keep_their_hyphens_and_numbers_get_a_minus() -> None:
    assert escape_latex("openai:gpt-5.4-mini") == "openai:gpt-5.4-mini"
    assert escape_latex("[-0.1, -.2] a--b") == "[$-$0.1, $-$.2] a-{}-b"


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_programs_get_every_value_unrounded(table: Table, tmp_path: Path, ending: str) -> None:
    [path] = write_tables([table], tmp_path / "new folder" / f"effects.{ending}")
    if ending == "json":
        [stored] = json.loads(path.read_text())
        frame = pd.DataFrame(stored["rows"])
        assert stored["notes"] == ["† 95 % interval excludes zero."]
    else:
        frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert frame["b"].tolist()[:2] == [-0.0081, 0.5]
    assert frame["b"].isna().tolist() == [False, False, True]
    assert frame["n"].tolist() == [1462, 2, 34]
    assert frame["sure"].tolist() == [True, False, False]


def test_a_frame_goes_in_and_comes_out() -> None:
    frame = pd.DataFrame({"model": ["a", "b"], "value": [0.25, np.inf]})
    table = Table("t", "T", None, frame)
    assert [column.title for column in table.columns] == ["model", "value"]
    assert table.frame()["value"].tolist()[0] == 0.25
    assert table.rows[1]["value"] is None


def test_several_tables_share_a_file_or_get_one_each(table: Table, tmp_path: Path) -> None:
    other = Table("other", "Other", [Column("x")], [{"x": 'a "quoted",\ntext'}])
    assert write_tables([table, other], tmp_path / "all.tex") == [tmp_path / "all.tex"]
    assert (tmp_path / "all.tex").read_text().count(r"\begin{tabular}") == 2
    written = write_tables([table, other], tmp_path / "all.csv")
    assert [path.name for path in written] == ["all-effects.csv", "all-other.csv"]
    with written[1].open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"x": 'a "quoted",\ntext'}]


def test_an_empty_table_has_its_headings() -> None:
    empty = Table("empty", "Nothing", COLUMNS, [])
    assert csv_text(empty).startswith("part,predictor,b,n\n")
    assert r"\toprule" in latex(empty)


def test_control_characters_do_not_reach_a_reader() -> None:
    bad = Table("bad", "T\x1b[31m", [Column("x")], [{"x": "\x1b]0;title\x07"}])
    assert "\x1b" not in latex(bad)
    assert "\x07" not in latex(bad)


def test_a_table_that_cannot_be_written_is_refused(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"ends in \.csv, .*, not 'table\.xls'"):
        check_table(tmp_path / "table.xls")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't write a table"):
        check_table(tmp_path / "file" / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="can't write a table"):
        write_tables([table], tmp_path / "folder.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"labmates\[parquet\]"):
        check_table(tmp_path / "x.parquet")
