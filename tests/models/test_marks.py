"""Tool calls and reasoning that a server left between a model's own marks reach the tool; nothing else becomes one."""

from __future__ import annotations

import json

import pytest

from labmates.models.marks import meant_tool, split_channels, written_calls
from tests.models.conftest import Ask
from tests.support.openai_server import Answer, Call, OpenAIServer

NAMES = ("run_code", "read_artifact", "write_artifact", "mcp__files__read")
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in NAMES
]
CODE = "df = df.dropna()\nprint(df.describe())"
CALL = {"name": "run_code", "arguments": {"code": CODE}}
TEXT = json.dumps(CALL)

SENT_NAMES = {
    "run_code<|channel|>commentary": "run_code",
    "run_code<|channel|>json": "run_code",
    "run_code<|constrain|>json": "run_code",
    "run_code__channel__commentary": "run_code",
    "functions.run_code": "run_code",
    "functions/run_code:0": "run_code",
    "to=functions.run_code": "run_code",
    "assistant<|channel|>commentary to=functions.run_code<|constrain|>json": "run_code",
    "run_coderun_coderun_code": "run_code",
    "run_code\n": "run_code",
    "default_api:run_code()": "run_code",
    "mcp__lab__run_code": "run_code",
    "functions.mcp__files__read": "mcp__files__read",
    "mcp__files__read": "mcp__files__read",
    # Names of a model's own invention stay unknown, as do those in which two tools stand.
    "python": "python",
    "run_code_async": "run_code_async",
    "rerun_code": "rerun_code",
    "run_code|read_artifact": "run_code_read_artifact",
}


@pytest.mark.parametrize("sent", SENT_NAMES)
async def test_a_name_with_marks_around_it_reaches_the_one_tool_in_it(ask: Ask, sent: str) -> None:
    with OpenAIServer(Answer(text=None, calls=(Call(sent, {"code": "1"}),))) as server:
        reply = await ask(server, tools=TOOLS, stream=len(sent) % 2 == 0)
    [call] = reply.tool_calls
    assert call.name == SENT_NAMES[sent]
    assert reply.message.tool_calls[0]["name"] == call.name
    is_read = call.name in NAMES and sent not in NAMES
    assert reply.notes == ((f"the name of the called tool {call.name} came as {sent!r}",) if is_read else ())


@pytest.mark.parametrize(
    "name", ["run code", "a.b<|c|>", "functions.run_code", "read__write", "x" * 80], ids=lambda name: name[:20]
)
def test_an_offered_name_is_never_changed(name: str) -> None:
    assert meant_tool(name, [name, "run_code", "read", "write"]) == name


CALLS_IN_TEXT = {
    "bare": TEXT,
    "indented": json.dumps(CALL, indent=2),
    "fenced": f"```json\n{TEXT}\n```",
    "fenced without a language": f"```\n{TEXT}\n```\n",
    "with parameters": json.dumps({"name": "run_code", "parameters": CALL["arguments"]}),
    "with a type": json.dumps({"type": "function", **CALL}),
    "with arguments as text": json.dumps({"name": "run_code", "arguments": json.dumps(CALL["arguments"])}),
    "with line breaks in the code": TEXT.replace("\\n", "\n"),
    "with Python's quotes": f'{{"name": "run_code", "arguments": {{"code": """{CODE}"""}}}}',
    "with a spoilt name": json.dumps({**CALL, "name": "functions.run_code"}),
    "Qwen, Hermes": f"<tool_call>\n{TEXT}\n</tool_call>",
    "Qwen without the end": f"<tool_call>\n{TEXT}",
    "Llama": f'<|python_tag|>{{"name": "run_code", "parameters": {json.dumps(CALL["arguments"])}}}<|eom_id|>',
    "Mistral": f"[TOOL_CALLS][{TEXT}]</s>",
    "Mistral by name": f"[TOOL_CALLS]run_code[ARGS]{json.dumps(CALL['arguments'])}",
    "harmony": "<|channel|>analysis<|message|>Look first.<|end|><|start|>assistant<|channel|>commentary "
    f"to=functions.run_code <|constrain|>json<|message|>{json.dumps(CALL['arguments'])}<|call|>",
    "harmony, recipient first": " to=functions.run_code<|channel|>commentary<|message|>"
    + json.dumps(CALL["arguments"]),
    "harmony without marks": "analysisLook first.assistantcommentary to=functions.run_code json"
    + json.dumps(CALL["arguments"]),
    "in doubled braces": f"{{{TEXT}}}",
    "with one brace too many": f"{{{TEXT}",
    "with one brace closed too often": f"{TEXT}\n}}",
    "between tags of its name": f"<run_code>\n    {TEXT}\n</run_code>",
    "as programs call": f"Run_code({json.dumps(CALL['arguments'])})",
    "as programs call, not closed": f"run_code({json.dumps(CALL['arguments'])}",
    "after its name": f"Run_code: {json.dumps(CALL['arguments'])}",
    "whole after its name": f"run_code: {TEXT}",
    "again and again": "\n".join([TEXT] * 4),
    "again and again, until it is cut": "\n".join([TEXT] * 4)[:-9],
    "after thoughts": f"<think>Look first.</think>\n{TEXT}",
}


@pytest.mark.parametrize("case", CALLS_IN_TEXT)
async def test_a_call_that_a_server_left_in_the_text_is_a_call(ask: Ask, case: str) -> None:
    with OpenAIServer(Answer(text=CALLS_IN_TEXT[case])) as server:
        reply = await ask(server, tools=TOOLS, max_output_tokens=300)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("run_code", {"code": CODE})]
    assert (reply.text, reply.faults) == ("", ())
    assert reply.reasoning == ("Look first." if "Look first." in CALLS_IN_TEXT[case] else "")
    assert reply.raw == CALLS_IN_TEXT[case]
    assert "a tool call was part of the text" in reply.notes


@pytest.mark.parametrize(
    "text",
    [
        f"I would call {TEXT}",
        f"run_code({json.dumps(CALL['arguments'])}) shows the data.",
        f"{TEXT}\nThen:\n{TEXT}",
        f"<read_artifact>{TEXT}</read_artifact>",
        f"<run_code>{TEXT}",
        f"```json\n{TEXT}\n```\nThis shows the data.",
        json.dumps({"name": "python", "arguments": {"code": "1"}}),
        json.dumps({"name": "run_code"}),
        json.dumps({"name": "run_code", "arguments": [1]}),
        json.dumps({"name": "final_paper", "content": "run_code"}),
        json.dumps({"code": "1"}),
        json.dumps([CALL, 1]),
        f"<tool_call>{TEXT}</tool_call><tool_call>{{}}</tool_call>",
        f"Hermes writes `<tool_call>{TEXT}</tool_call>` for a call.\n\n## Results\nNone.",
        f"An example:\n```\n<tool_call>\n{TEXT}\n</tool_call>\n```",
        f"A call is `<|channel|>commentary to=functions.run_code<|message|>{json.dumps(CALL['arguments'])}<|call|>`.",
        "It says `<|start|>assistant<|channel|>final<|message|>hi<|return|>`.\n\n## Results\nNone.",
        "```python\nMARKS = ['<|start|>', '<|channel|>', '<|message|>', '<|end|>']\nprint(MARKS)\n```",
        '{"keep": 4, "reason": "they write <|message|> and <|end|>"}',
        "[TOOL_CALLS] are marks.",
        "analysis of run_code by the assistant",
        "",
    ],
)
async def test_other_text_stays_text(ask: Ask, text: str) -> None:
    with OpenAIServer(Answer(text=text)) as server:
        reply = await ask(server, tools=TOOLS, max_output_tokens=300)
    assert (reply.text, reply.tool_calls, reply.raw) == (text, (), "")


async def test_marks_in_the_code_of_a_call_are_code(ask: Ask) -> None:
    code = "print('<|end|><|start|>assistant<|channel|>final<|message|>')"
    text = f"<|channel|>commentary to=functions.run_code<|message|>{json.dumps({'code': code})}<|call|>"
    with OpenAIServer(Answer(text=text)) as server:
        reply = await ask(server, tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("run_code", {"code": code})]


async def test_text_beside_a_proper_call_and_text_without_tools_stay_text(ask: Ask) -> None:
    with OpenAIServer(Answer(text=TEXT, calls=(Call("run_code", {"code": "1"}),))) as server:
        assert (await ask(server, tools=TOOLS)).text == TEXT
        assert (await ask(server)).text == TEXT


OTHER = json.dumps({"name": "read_artifact", "arguments": {}})


@pytest.mark.parametrize("text", [f"{TEXT}\n{OTHER}", f"```json\n{{{TEXT}}}\n{{{OTHER}}}\n```", f"[{TEXT}, {OTHER}]"])
async def test_a_reply_of_several_calls_and_nothing_else_is_these_calls(ask: Ask, text: str) -> None:
    with OpenAIServer(Answer(text=text)) as server:
        reply = await ask(server, tools=TOOLS, max_output_tokens=300)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("run_code", {"code": CODE}),
        ("read_artifact", {}),
    ]
    assert (reply.text, reply.faults) == ("", ())


async def test_two_marked_calls_after_a_sentence_are_two_calls_and_a_sentence(ask: Ask) -> None:
    with OpenAIServer(
        Answer(text=f"I look first.\n<tool_call>{TEXT}</tool_call>\n<tool_call>{TEXT}</tool_call>")
    ) as server:
        reply = await ask(server, tools=TOOLS, max_output_tokens=300)
    assert reply.text == "I look first."
    assert [call.name for call in reply.tool_calls] == ["run_code"] * 2
    assert len({call.id for call in reply.tool_calls}) == 2


@pytest.mark.parametrize(("finish", "faults"), [("length", ("cut", "cut_tool_call")), ("stop", ("bad_tool_call",))])
async def test_a_broken_call_in_the_text_is_a_broken_call(ask: Ask, finish: str, faults: tuple[str, ...]) -> None:
    text = '```json\n{"name": "write_artifact", "arguments": {"name": "final_paper", "content": "## Abstr'
    with OpenAIServer(Answer(text=text, finish=finish)) as server:
        reply = await ask(server, tools=TOOLS)
    assert (reply.text, reply.faults) == ("", faults)
    if finish == "length":
        assert reply.cut_call is not None
        assert reply.cut_call.arguments == {"name": "final_paper", "content": "## Abstr"}


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        (
            "<|channel|>analysis<|message|>They keep 3.<|end|>"
            '<|start|>assistant<|channel|>final<|message|>{"keep": 4}<|return|>',
            '{"keep": 4}',
            "They keep 3.",
        ),
        ('<|channel|>final<|message|>{"keep": 4}', '{"keep": 4}', ""),
        ('analysisThey keep 3.assistantfinal{"keep": 4}', '{"keep": 4}', "They keep 3."),
        ('<|channel|>commentary<|message|>{"path": "/"}<|end|>', "", '{"path": "/"}'),
        ("<|channel|>analysis<|message|>They keep", "", "They keep"),
        (
            "<|channel|>analysis<|message|>Explain <|end|>.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>A reply ends with <|return|> or <|end|>. So be it.<|return|>",
            "A reply ends with <|return|> or <|end|>. So be it.",
            "Explain <|end|>.",
        ),
        ("analysis of the final assistant", "analysis of the final assistant", ""),
    ],
)
async def test_channels_are_reasoning_and_a_final_text(ask: Ask, text: str, said: str, thought: str) -> None:
    with OpenAIServer(Answer(text=text)) as server:
        reply = await ask(server)
    assert (reply.text, reply.reasoning) == (said, thought)
    assert reply.faults == (() if said else ("empty",))


@pytest.mark.parametrize("mark", ["<|channel|>", "<|message|>", "<tool_call>", "assistant", "{", "```", "to=", " \n"])
def test_long_runs_of_marks_hold_no_call(mark: str) -> None:
    for text in (mark * 10_000, f"analysis{mark * 10_000}", "x" * 40_000 + mark):
        assert split_channels(text, NAMES)[2] == []
        assert written_calls(text, NAMES) == (text, [])
        assert meant_tool(text, NAMES) is None
