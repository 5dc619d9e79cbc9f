"""Tool calls and reasoning that a server left between a model's own marks reach the tool; nothing else becomes one."""

from __future__ import annotations

import json

import pytest

from labmates.models.calls_in_text import written_calls
from labmates.models.marks import meant_tool, split_channels
from tests.models.conftest import Ask
from tests.support.openai_server import Answer, Call, OpenAIServer

NAMES = ("run_code", "read_artifact", "write_artifact", "mcp__files__read")
ARGUMENTS = {"code": {"type": "string"}, "lines": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
SCHEMA = {"type": "object", "properties": ARGUMENTS}
TOOLS = [{"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}} for name in NAMES]
CODE = "df = df.dropna()\nprint(df.describe())"
CALL = {"name": "run_code", "arguments": {"code": CODE}}
TEXT = json.dumps(CALL)
CODE_ALONE = json.dumps(CALL["arguments"])
QWEN_TAGS = f"<function=run_code>\n<parameter=code>\n{CODE}\n</parameter>\n</function>"
INVOKED = f'<invoke name="run_code">\n<parameter name="code">{CODE}</parameter>\n</invoke>'
GLM_TAGS = f"run_code\n<arg_key>code</arg_key>\n<arg_value>{CODE}</arg_value>\n"
PYTHON = f"run_code(code={CODE!r})"

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
    "as OpenAI records calls": json.dumps({"type": "function", "function": CALL}),
    "under its name": json.dumps({"run_code": CALL["arguments"]}),
    "as a tool with args": json.dumps({"tool": "run_code", "args": CALL["arguments"]}),
    "Qwen's coders": f"<tool_call>\n{QWEN_TAGS}\n</tool_call>",
    "Qwen's coders, marks taken": QWEN_TAGS,
    "Llama 3.1": f"<function=run_code>{CODE_ALONE}</function>",
    "Llama 4": f"<|python_start|>[{PYTHON}]<|python_end|>",
    "Python": PYTHON,
    "Python by place": f"run_code({CODE!r})",
    "Gemma": f"```tool_code\n{PYTHON}\n```",
    "OLMo": f"<function_calls>\n{PYTHON}\n</function_calls>",
    "LFM": f"<|tool_call_start|>[{PYTHON}]<|tool_call_end|><|im_end|>",
    "GLM": f"<tool_call>{GLM_TAGS}</tool_call>",
    "GLM, marks taken": GLM_TAGS,
    "Seed": f"<seed:tool_call>\n{QWEN_TAGS}\n</seed:tool_call>",
    "MiniMax": f"<minimax:tool_call>\n{INVOKED}\n</minimax:tool_call>",
    "MiniMax, marks taken": INVOKED,
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.run_code:0<|tool_call_argument_begin|>"
    f"{CODE_ALONE}<|tool_call_end|><|tool_calls_section_end|>",
    "DeepSeek R1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run_code\n```json\n"
    f"{CODE_ALONE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    "DeepSeek 3.1": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run_code<｜tool▁sep｜>{CODE_ALONE}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "DeepSeek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="run_code">\n'
    f'<｜DSML｜parameter name="code" string="true">{CODE}</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
    "</｜DSML｜function_calls>",
    "Granite": f"<|tool_call|>[{TEXT}]",
    "Command": "<|START_ACTION|>["
    + json.dumps({"tool_call_id": "0", "tool_name": "run_code", "parameters": CALL["arguments"]})
    + "]<|END_ACTION|>",
    "InternLM": f"<|action_start|><|plugin|>{TEXT}<|action_end|>",
    "Apertus": f"<|tools_prefix|>[{json.dumps({'run_code': CALL['arguments']})}]<|tools_suffix|>",
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
        f"I would call {PYTHON}",
        f"{PYTHON} shows the data.",
        f"{PYTHON}\nprint(1)",
        "run_code(code=open('/etc/passwd').read())",
        "run_code(1, 2, 3)",
        "run_code(code={1, 2})",
        "run_code(",
        json.dumps({"run_code": CODE}),
        f"{QWEN_TAGS}\nThis shows the data.",
        "<function=run_code>Look at the data.</function>",
        "<tool_call>no_tool\n<arg_key>code</arg_key>\n<arg_value>1</arg_value></tool_call>",
        f"```json\n{TEXT}\n```\nThen:\n```json\n{TEXT}\n```",
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


@pytest.mark.parametrize(
    "text",
    [
        f"{TEXT}\n{OTHER}",
        f"```json\n{{{TEXT}}}\n{{{OTHER}}}\n```",
        f"```json\n{TEXT}\n```\n\n```json\n{OTHER}\n```",
        f"[{TEXT}, {OTHER}]",
        f"[{PYTHON}, read_artifact()]",
        f"{PYTHON}\nread_artifact()",
        f"{QWEN_TAGS}\n<function=read_artifact>\n</function>",
        f"<tool_call>{GLM_TAGS}</tool_call><tool_call>read_artifact</tool_call>",
        f"[TOOL_CALLS]run_code[ARGS]{CODE_ALONE}[TOOL_CALLS]read_artifact[ARGS]{{}}",
    ],
)
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


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (QWEN_TAGS.replace("<parameter=code>", "<parameter=lines>\n3\n</parameter>\n<parameter=code>"), {"lines": 3}),
        (INVOKED.replace("</invoke>", '<parameter name="lines">null</parameter></invoke>'), {"lines": None}),
        (f"<tool_call>{GLM_TAGS}<arg_key>lines</arg_key><arg_value>a few</arg_value></tool_call>", {"lines": "a few"}),
        (INVOKED.replace('"code"', '"other"'), {"other": CODE, "code": None}),
    ],
)
async def test_a_value_between_tags_is_json_unless_it_may_be_a_text(
    ask: Ask, text: str, arguments: dict[str, object]
) -> None:
    with OpenAIServer(Answer(text=text)) as server:
        [call] = (await ask(server, tools=TOOLS)).tool_calls
    assert {"code": None, **call.arguments} == {"code": CODE, **arguments}


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "write_artifact", "arguments": {"name": "final_paper", "content": "## Abstr',
        "<tool_call><function=write_artifact><parameter=name>final_paper</parameter><parameter=content>\n## Abstr",
        "<tool_call>write_artifact<arg_key>name</arg_key><arg_value>final_paper</arg_value>"
        "<arg_key>content</arg_key><arg_value>## Abstr",
        '<|tool_call_begin|>write_artifact:0<|tool_call_argument_begin|>{"name": "final_paper", "content": "## Abstr',
    ],
)
@pytest.mark.parametrize(("finish", "faults"), [("length", ("cut", "cut_tool_call")), ("stop", ("bad_tool_call",))])
async def test_a_broken_call_in_the_text_is_a_broken_call(
    ask: Ask, text: str, finish: str, faults: tuple[str, ...]
) -> None:
    with OpenAIServer(Answer(text=text, finish=finish)) as server:
        reply = await ask(server, tools=TOOLS)
    assert (reply.text, reply.faults) == ("", faults)
    if finish == "length":
        assert reply.cut_call is not None
        assert {key: str(value).strip() for key, value in reply.cut_call.arguments.items()} == {
            "name": "final_paper",
            "content": "## Abstr",
        }


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


MARKS = (
    "<|channel|>",
    "<|message|>",
    "<tool_call>",
    "assistant",
    "{",
    "```",
    "to=",
    " \n",
    "<parameter=a>",
    "<｜tool▁sep｜>",
)
BEGUN = (
    "run_code(",
    "[run_code(",
    "<function=run_code>",
    "<arg_key>a</arg_key>",
    "```\n",
    "[TOOL_CALLS]",
    "run_code[ARGS]",
)


@pytest.mark.parametrize("mark", [*MARKS, *BEGUN])
def test_long_runs_of_marks_hold_no_call(mark: str) -> None:
    for text in (mark * 10_000, f"analysis{mark * 10_000}", "x" * 40_000 + mark):
        assert split_channels(text, NAMES)[2] == []
        assert written_calls(text, dict.fromkeys(NAMES, ARGUMENTS)) == (text, [])
        assert mark in BEGUN or meant_tool(text, NAMES) is None
