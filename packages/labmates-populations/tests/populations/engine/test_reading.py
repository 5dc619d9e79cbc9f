"""What is found in a file, whatever stands between its strategies."""

from __future__ import annotations

import ast
import re
from textwrap import indent

import pytest

from labmates_populations.engine.kernel.source import UnreadableError, read_source
from tests.support.strategies import HEAD, strategy

ONE, TWO = strategy("return C", name="Strategy_SELFISH_1"), strategy("return D", name="Strategy_SELFISH_2")
LINES = (HEAD + ONE + TWO).count("\n")
TEXTS = {
    "two classes": HEAD + ONE + TWO,
    "nothing before the first": ONE.lstrip() + TWO,
    "lines that end as on other systems": (HEAD + ONE + TWO).replace("\n", "\r\n"),
    "a class within a text": f'{HEAD}"""\nclass Strategy_SELFISH_3:\n"""\n{ONE}{TWO}',
    "a class within the text of a class": HEAD + ONE + '    x = """\nclass Strategy_SELFISH_3:\n"""\n' + TWO,
    "a line that is continued": f"{HEAD}x = 1 + \\\n2\n{ONE}{TWO}",
    "an import after a class": f"{HEAD}{ONE}import itertools\n{TWO}",
    "a function after a class": f"{HEAD}{ONE}\ndef f():\n    return 1\n{TWO}",
    "a class that is no strategy": f"{HEAD}{ONE}\nclass Other:\n    pass\n{TWO}",
    "a decorator": f"{HEAD}{ONE}\n@staticmethod{TWO}",
    "a class that has no decision": f"{HEAD}{ONE}\nclass Strategy_SELFISH_3:\n    x = 1\n{TWO}",
    "a decision without arguments": f"{HEAD}{ONE}\nclass Strategy_SELFISH_3:\n    def __call__(self): return C\n{TWO}",
    "one that does not fit": HEAD + ONE + strategy("f'{1}'\nreturn C", name="Strategy_SELFISH_4") + TWO,
    "one with a problem": HEAD + ONE + strategy("open('x')\nreturn C", name="Strategy_SELFISH_4") + TWO,
    "a comment at the end": f"{HEAD}{ONE}{TWO}\n# the end",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_strategies_are_found_where_they_stand(text: str) -> None:
    sources = read_source(text, "test.py")
    classes = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    lines = text.splitlines()
    for source in sources:
        found, node = source.found, classes[source.found.name]
        assert (found.line, found.end) == (node.lineno, node.end_lineno)
        for at in map(int, re.findall(r"^line (\d+)", "\n".join(found.problems), re.MULTILINE)):
            assert found.line <= at <= found.end
            assert re.search(r"open|class|__call__", lines[at - 1])
    assert [source.found.name for source in sources] == [name for name in classes if name != "Other"]
    assert {"Strategy_SELFISH_1", "Strategy_SELFISH_2"} <= {source.found.name for source in sources}


def method(body: str, arguments: str = "self") -> str:
    """A strategy with a method that is never called."""
    return strategy("return C") + f"    def unused({arguments}):\n{indent(body, ' ' * 8)}\n"


REFUSED = {  # only when it is compiled, and not by the parser
    "a break outside a loop": method("break"),
    "a continue outside a loop": method("if C:\n    continue"),
    "two arguments of one name": method("return x", "self, x, x"),
    "two arguments of one name in a function": method("def f(x, x):\n    return 1"),
    "two arguments of one name in a lambda": method("return sorted([1], key=lambda x, x: 1)"),
    "two values of one argument": method("return round(1.5, ndigits=1, ndigits=2)"),
    "two values of one argument of a method": method("return self.unused(x=1, x=1)", "self, x"),
    "two rests": method("*a, *b = [1, 2]"),
    "a rest alone": method("*a = [1, 2]"),
    "a nonlocal that is none": method("nonlocal x"),
    "handlers after the last": method("try:\n    x = 1\nexcept:\n    x = 2\nexcept ValueError:\n    x = 3"),
    "many loops": method("".join(f"{' ' * n}for i in [1]:\n" for n in range(21)) + " " * 21 + "x = 1"),
    "an assignment within a comprehension": method("return [x := 1 for x in [1]]"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_file_that_can_not_be_compiled_is_refused_when_it_is_read(text: str) -> None:
    ast.parse(HEAD + text)
    with pytest.raises(SyntaxError):
        compile(HEAD + text, "test.py", "exec")
    with pytest.raises(UnreadableError, match=r"test\.py can't be compiled"):
        read_source(HEAD + text, "test.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}x = '\ud800'\n", "test.py can't be read as Python: .*surrogates not allowed"),
        (f"{HEAD}{ONE}x = (\n{TWO}", r"test.py can't be read as Python \(line \d+\): '\(' was never closed"),
        (f"{HEAD}{ONE}{TWO}    x = = 1\n", rf"\(line {LINES + 1}\): invalid syntax"),
        (f"{HEAD}if True:\n{ONE}", r"test.py can't be read as Python \(line \d+\): expected an indented block"),
        (f"{HEAD}{ONE}return 1\n", "test.py can't be compiled: 'return' outside function"),
        ("class Strategy_A_1: pass\n" * 20_001, "test.py holds 20001 strategies; at most 20000 are allowed"),
    ],
    ids=["half a character", "a bracket", "an operator", "no block", "a return", "many"],
)
def test_an_invalid_file_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_source(text, "test.py")
