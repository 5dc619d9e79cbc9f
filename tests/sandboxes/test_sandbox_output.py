from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labmates.sandboxes.output import HeadTail, clean

PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40)


@given(pieces=st.lists(PLAIN, max_size=12), head=st.integers(0, 30), tail=st.integers(1, 30))
def test_head_and_tail_are_those_of_the_whole_text_however_it_is_cut_into_pieces(
    pieces: list[str], head: int, tail: int
) -> None:
    kept, whole = HeadTail(head, tail), "".join(pieces)
    for piece in pieces:
        kept.add(piece)
    text, dropped = kept.finish()
    if len(whole) <= head + tail:
        assert (text, dropped) == (whole, 0)
    else:
        assert dropped == len(whole) - head - tail
        assert text == f"{whole[:head]}\n[... {dropped:,} characters left out ...]\n{whole[-tail:]}"


def test_text_that_was_dropped_before_counts_too() -> None:
    kept = HeadTail()
    kept.add("begin")
    text, dropped = kept.finish(dropped_before=1_234_567)
    assert dropped == 1_234_567
    assert text == "begin\n[... 1,234,567 characters left out ...]\n"


@given(st.text())
def test_clean_text_can_be_encoded_and_holds_no_control_but_tabs_and_line_ends(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert not [c for c in cleaned if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160]


@given(PLAIN)
def test_clean_leaves_plain_text_alone(text: str) -> None:
    assert clean(f"{text}\n\t{text}") == f"{text}\n\t{text}"


def test_clean_removes_colours_titles_and_cursor_moves_whole() -> None:
    text = "\x1b[1;31mred\x1b[0m\x1b[2K\x1b]0;title\x07 \x1b]8;;http://x\x1b\\link\r\nnext\rlast"
    assert clean(text) == "red link\nnext\nlast"
