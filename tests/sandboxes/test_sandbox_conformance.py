"""What every back end must do."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

from labmates.sandboxes import process
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.interpreter import LIBRARIES
from labmates.sandboxes.session import KernelBackend, KernelSandbox
from tests.sandboxes.memory import peak_memory, reset_peak_memory

pytestmark = pytest.mark.asyncio(loop_scope="module")

IGNORES_INTERRUPTS = """
import time
while True:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
"""


async def test_df_is_the_csv_to_the_last_bit_and_numpy_and_pandas_are_imported(sandbox: KernelSandbox) -> None:
    code = "print(df.shape, *df.columns, df.weight[1] == 0.1 + 0.2, pd.__name__, np.__name__)"
    result = await sandbox.run(code)
    assert (result.status, result.text) == ("ok", "(3, 3) site count weight True pandas numpy\n")


async def test_code_finds_the_same_packages_whatever_else_is_installed(sandbox: KernelSandbox) -> None:
    code = """
import sys
from importlib.util import find_spec
print(df.site.dtype.storage, df.site.astype("string").dtype.storage, pd.Series(["a"]).convert_dtypes().dtype.storage)
print([name for name in ("pyarrow", "debugpy", "networkx", "labmates", "langchain") if find_spec(name)])
print([name for name in ("pyarrow", "debugpy") if name in sys.modules])
"""
    assert (await sandbox.run(code)).text == "python python python\n[]\n[]\n"
    assert "ModuleNotFoundError: No module named 'pyarrow'" in (await sandbox.run("import pyarrow")).text
    assert "requires" in (await sandbox.run("df.to_parquet('table.parquet')")).text.replace("required", "requires")


async def test_a_child_finds_the_same_packages(sandbox: KernelSandbox) -> None:
    code = """
import multiprocessing
from importlib.util import find_spec
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(find_spec, ["pyarrow", "networkx"]), pool.map(len, [df]))
"""
    assert (await sandbox.run(code)).text == "[None, None] [3]\n"


async def test_agents_are_told_the_versions_that_the_sandbox_has(
    backend: KernelBackend, sandbox: KernelSandbox
) -> None:
    told = dict(await backend.libraries())
    code = f"import importlib.metadata, platform\n{{name: importlib.metadata.version(name) for name in {[*LIBRARIES]}}}"
    code += "|{'Python': platform.python_version()}"
    assert list(told) == ["Python", *LIBRARIES]
    assert ast.literal_eval((await sandbox.run(code)).text) == told


async def test_numbers_are_printed_plainly_also_within_others_and_by_forks(sandbox: KernelSandbox) -> None:
    code = """
import multiprocessing
print([np.float64(0.5), np.int64(3)], {"r": np.mean([1, 2])}, (np.bool_(True),), f"{np.float64(0.1)!r}")
print(repr(np.array([0.25, np.nan])), repr(np.arange(3, dtype="int16")), df.weight.tolist(), df.iloc[0].to_dict())
print(multiprocessing.get_context("fork").Pool(1).map(repr, [np.float64(0.5)]))
df["count"].max(), {"a": df.weight.sum()}
"""
    assert (await sandbox.run(code)).text == (
        "[0.5, 3] {'r': 1.5} (True,) 0.1\n"
        "array([0.25,  nan]) array([0, 1, 2], dtype=int16) [0.1, 0.30000000000000004, nan] "
        "{'site': 'A', 'count': 1, 'weight': 0.1}\n"
        "['0.5']\n"
        "(3, {'a': 0.4})\n"
    )


async def test_how_numbers_are_printed_can_be_set_for_later_calls(sandbox: KernelSandbox) -> None:
    await sandbox.run("np.set_printoptions(precision=3)")
    assert (await sandbox.run("print(np.array([1.23456]), [np.float64(2)])")).text == "[1.235] [2.0]\n"
    await sandbox.run("np.set_printoptions(precision=8)")


async def test_a_warning_is_shown_once_a_call_without_the_folders_of_this_machine(sandbox: KernelSandbox) -> None:
    code = """
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
x = np.random.default_rng(0).normal(size=(60, 3)) * [1, 1e3, 1e6]
scores = cross_val_score(LogisticRegression(max_iter=2), x, x[:, 0] > 0, cv=3)
"""
    for _ in range(2):
        text = (await sandbox.run(code)).text
        assert text.startswith("sklearn/linear_model/_logistic.py:")
        assert text.count("ConvergenceWarning: ") == 1
    code = (
        "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always')\n"
    )
    assert (await sandbox.run(f"{code}    for _ in range(3): np.log(np.array([-1.0]))\nlen(caught)")).text == "3\n"


async def test_variables_are_kept_between_calls_and_a_last_expression_is_shown(sandbox: KernelSandbox) -> None:
    first = await sandbox.run("kept = 41")
    second = await sandbox.run("print('printed')\nkept + 1")
    assert (first.status, first.text) == ("ok", "")
    assert (second.text, second.state_lost, second.note, second.images) == ("printed\n42\n", False, "", ())


WRITERS = """
import ctypes, logging, os, subprocess, sys, warnings
libc = ctypes.CDLL(None)
PYTHON = "import sys\\nfor n in range(4): print('python', n, file=sys.stderr if n % 2 else None)"
for round in range(3):
    print("out", round)
    print("err", round, file=sys.stderr)
    os.write(1, b"descriptor 1\\n")
    os.write(2, b"descriptor 2\\n")
    libc.puts(b"compiled")
    subprocess.run(["echo", "child"])
    subprocess.run(["echo", "given"], stdout=sys.stderr)
    subprocess.run(["python3", "-c", PYTHON])
    sys.__stdout__.write("below\\n")
    logging.warning("logged")
with warnings.catch_warnings(action="ignore"):  # later Pythons warn of forks
    fork = os.fork()
if not fork:
    print("fork")
    os._exit(0)
os.waitpid(fork, 0)
print("end", end="")
"""
WRITTEN = (
    "out {n}\nerr {n}\ndescriptor 1\ndescriptor 2\ncompiled\nchild\ngiven\npython 0\npython 1\npython 2\npython 3\n"
    "below\nWARNING:root:logged\n"
)


async def test_whatever_writes_output_and_errors_are_text_in_the_order_of_writing(sandbox: KernelSandbox) -> None:
    expected = "".join(WRITTEN.format(n=n) for n in range(3)) + "fork\nend"
    for _ in range(3):
        assert (await sandbox.run(WRITERS)).text == expected


SLOW_SENDING = """
import time
session = sys.stdout._session
serialize = type(session).serialize
def slow(msg, ident=None):
    time.sleep(0.5 * (msg["header"]["msg_type"] == "stream"))
    return serialize(session, msg, ident)
session.serialize = slow
"""


async def test_a_cell_does_not_end_before_text_that_is_being_sent(sandbox: KernelSandbox) -> None:
    await sandbox.run(f"import sys\n{SLOW_SENDING}")
    assert (await sandbox.run("print('sent late')\ntime.sleep(0.2)")).text == "sent late\n"
    assert (await sandbox.run("del session.serialize\nprint('next')")).text == "next\n"


async def test_a_cell_that_replaces_the_output_mutes_itself_alone(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("import io, sys\nsys.stdout = sys.stderr = io.StringIO()\nprint('nowhere')")
    assert (result.text, result.status) == ("", "ok")
    assert (await sandbox.run("print('out')\nprint('err', file=sys.stderr)")).text == "out\nerr\n"


async def test_text_of_before_a_cell_is_not_its_own(sandbox: KernelSandbox) -> None:
    code = "import subprocess; later = subprocess.Popen('sleep 0.3; echo late; echo later >&2', shell=True)"
    assert (await sandbox.run(code)).text == ""
    await asyncio.sleep(1)
    assert (await sandbox.run("print('own', later.wait())")).text == "own 0\n"


async def test_warnings_name_modules_without_the_folder_of_the_library(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("import warnings\nwarnings.warn_explicit('old', UserWarning, pd.__file__, 7)")
    assert result.text.splitlines()[0] == "pandas/__init__.py:7: UserWarning: old"


async def test_the_fault_of_a_formula_that_is_told_depends_on_no_address(sandbox: KernelSandbox) -> None:
    # Factors are kept in sets, and the hash of a class is its address, which differs between sessions.
    code = "from patsy import desc\nfactor = desc.ModelDesc.from_formula('C(site)').rhs_termlist[1].factors[0]\n"
    assert (await sandbox.run(f"{code}hash(factor) == hash('C(site)')")).text == "True\n"


async def test_a_traceback_is_short_plain_and_names_the_line(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("def pick(frame):\n    return frame['absent']\n\npick(df)")
    assert result.status == "error"
    assert "line 2, in pick\n    return frame['absent']" in result.text
    assert result.text.rstrip().endswith("KeyError: 'absent'")
    assert "\x1b" not in result.text
    assert len(result.text.splitlines()) < 14


async def test_a_syntax_error_shows_the_line(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("a = 1\nb = = 2")
    assert result.status == "error"
    assert "b = = 2" in result.text
    assert "SyntaxError" in result.text


ENDED = "The call ended here, as its code asked. Variables are kept.\n"


@pytest.mark.parametrize(
    ("leaves", "status", "text"),
    [
        ("exit()", "ok", ENDED),
        ("quit()", "ok", ENDED),
        ("import sys; sys.exit(0)", "ok", ENDED),
        ("raise SystemExit", "ok", ENDED),
        ("get_ipython().ask_exit()", "ok", ENDED),
        ("exit(1)", "error", f"SystemExit: 1\n{ENDED}"),
        ("def check(): quit('no rows')\ncheck()", "error", f"SystemExit: no rows\n{ENDED}"),
        ("import sys; sys.exit('no rows')", "error", f"SystemExit: no rows\n{ENDED}"),
        ("import asyncio; await asyncio.sleep(0); exit()", "ok", ENDED),
    ],
)
async def test_code_that_exits_ends_its_call_alone(sandbox: KernelSandbox, leaves: str, status: str, text: str) -> None:
    await sandbox.run("kept = 1")
    result = await sandbox.run(f"print('before')\n{leaves}\nprint('after')")
    assert (result.status, result.text, result.note, result.state_lost) == (status, f"before\n{text}", "", False)
    assert sandbox._client is not None
    # IPython would end its loop a moment later.
    assert (await sandbox.run("import time; time.sleep(0.2); kept")).text == "1\n"


async def test_reading_input_is_an_error_instead_of_a_wait(sandbox: KernelSandbox) -> None:
    assert (await sandbox.run("input('name?')")).status == "error"


async def test_figures_come_back_as_png_and_leave_no_text(sandbox: KernelSandbox) -> None:
    result = await sandbox.run(
        "import matplotlib.pyplot as plt\nplt.plot(df['count'])\nplt.show()\nplt.hist(df['count']);"
    )
    assert result.status == "ok"
    assert [image[:8] for image in result.images] == [b"\x89PNG\r\n\x1a\n"] * 2
    assert "Figure" not in result.text


async def test_more_than_ten_figures_are_left_out_and_told(sandbox: KernelSandbox) -> None:
    code = "from IPython.display import Image, display\nimport base64\n"
    code += f"png = base64.b64decode({PIXEL!r})\nfor _ in range(12): display(Image(png))"
    result = await sandbox.run(code)
    assert len(result.images) == 10
    assert "Figures left out: 2" in result.note


async def test_a_figure_that_is_too_large_is_left_out_and_told(sandbox: KernelSandbox) -> None:
    code = "from IPython.display import Image\nImage(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(9 << 20), format='png')"
    result = await sandbox.run(code)
    assert (result.status, result.images) == ("ok", ())
    assert "Figures left out: 1" in result.note


async def test_long_text_keeps_its_head_and_tail_and_tells_what_is_missing(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("print('first'); print('x' * 100_000); print('last')")
    assert result.text.startswith("first\n")
    assert result.text.endswith("last\n")
    assert result.dropped_chars == 100_000 + len("first\n\nlast\n") - 8_000
    assert f"[... {result.dropped_chars:,} characters left out ...]" in result.text
    assert len(result.text) < 8_100


async def test_text_beyond_the_kernels_own_cap_is_counted_and_its_end_kept(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("for _ in range(500): print('x' * 9_999)\nprint('last')")
    assert result.text.endswith("last\n")
    assert result.dropped_chars == 5_000_000 + len("last\n") - 8_000


@pytest.mark.parametrize("code", ["'y' * 30_000_000", "raise ValueError('y' * 30_000_000)"])
async def test_a_huge_value_or_message_is_cut_and_the_session_goes_on(sandbox: KernelSandbox, code: str) -> None:
    await sandbox.run("kept = 1")
    result = await sandbox.run(code)
    assert "yyyyyyyy" in result.text
    assert "characters left out" in result.text
    assert len(result.text) < 8_200
    assert (await sandbox.run("kept")).text == "1\n"


async def test_text_has_no_escapes_and_can_be_encoded(sandbox: KernelSandbox) -> None:
    result = await sandbox.run(r"print('\x1b[31mred\x1b[0m \x00 \ud800 \x1b]0;title\x07end')")
    assert result.text == "red \N{REPLACEMENT CHARACTER} ? end\n"


async def test_printing_hundreds_of_megabytes_costs_us_no_memory(sandbox: KernelSandbox) -> None:
    before = reset_peak_memory()
    result = await sandbox.run("print('z' * 150_000_000)")
    assert result.dropped_chars == 150_000_001 - 8_000
    assert peak_memory() - before < 60 << 20


async def test_text_that_was_shown_does_not_stay_in_the_kernels_memory(sandbox: KernelSandbox) -> None:
    size = "int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20"
    await sandbox.run(f"before = {size}")
    await sandbox.run("for _ in range(300): print('x' * 1_000_000)\n'y' * 50_000_000")
    await sandbox.run("'z'")
    assert (await sandbox.run(f"{size} - before < 150")).text == "True\n"


@pytest.mark.usefixtures("short_waits")
async def test_a_kernel_that_sends_past_its_own_caps_costs_us_no_memory(sandbox: KernelSandbox) -> None:
    flood = "io = get_ipython().kernel.iopub_thread\nfor _ in range(24): io.send_multipart([bytes(15 << 20)])"
    before = reset_peak_memory()
    result = await sandbox.run(flood, timeout=60)
    assert peak_memory() - before < 120 << 20
    assert result.status in ("ok", "died")
    assert (await sandbox.run("df.shape")).text == "(3, 3)\n"


@pytest.mark.usefixtures("short_waits")
async def test_after_an_oversize_message_output_arrives_again(sandbox: KernelSandbox) -> None:
    await sandbox.run("kept = 1")
    result = await sandbox.run("get_ipython().kernel.iopub_thread.send_multipart([bytes(20 << 20)])")
    assert "lost" in result.note
    assert (await sandbox.run("kept")).text == "1\n"


async def test_a_timeout_interrupts_and_keeps_variables(sandbox: KernelSandbox) -> None:
    await sandbox.run("kept = 7")
    result = await sandbox.run("print('begun', flush=True)\nwhile True: pass", timeout=0.3)
    assert result.status == "timeout"
    assert result.text.startswith("begun\n")
    assert not result.state_lost
    assert "after 0.3 s of processor time" in result.note
    assert (await sandbox.run("kept")).text == "7\n"


async def test_code_that_waits_is_not_stopped_at_its_limit_of_processor_time(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("import time; time.sleep(0.6); print('done')", timeout=0.2)
    assert (result.status, result.text) == ("ok", "done\n")


async def test_code_that_waits_for_ever_is_stopped_with_its_children(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("import subprocess\nsubprocess.run(['sleep', '100'])", timeout=0.1)
    assert (result.status, result.state_lost) == ("timeout", False)
    assert "after 1 s, " in result.note


async def test_time_of_earlier_cells_is_not_counted(sandbox: KernelSandbox) -> None:
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    assert [(await sandbox.run(busy, timeout=0.6)).status for _ in range(3)] == ["ok"] * 3


BUSY = 'timeout 9 sh -c "while :; do :; done"'


@pytest.mark.parametrize(
    "code",
    [
        f"import subprocess; subprocess.run('{BUSY}', shell=True)",
        f"import subprocess, time; subprocess.Popen('setsid {BUSY} &', shell=True)\ntime.sleep(60)",
        f"import subprocess\nwhile True: subprocess.run('{BUSY.replace('9', '0.1')} &', shell=True)",
    ],
    ids=["child", "orphan", "ended"],
)
async def test_the_limit_counts_the_time_of_all_processes(sandbox: KernelSandbox, code: str) -> None:
    result = await sandbox.run(code, timeout=0.5)
    assert result.status == "timeout"
    assert "after 0.5 s of processor time" in result.note


@pytest.mark.usefixtures("short_waits")
async def test_code_that_ignores_interrupts_is_killed_and_df_loaded_again(sandbox: KernelSandbox) -> None:
    await sandbox.run("kept = 7; df = None")
    result = await sandbox.run(IGNORES_INTERRUPTS, timeout=0.3)
    assert (result.status, result.state_lost) == ("timeout", True)
    assert "of earlier calls are gone" in result.note
    assert (await sandbox.run("df.shape")).text == "(3, 3)\n"
    assert "NameError" in (await sandbox.run("kept")).text


@pytest.mark.parametrize(
    ("code", "why"),
    [("import os; print('bye', flush=True); os._exit(3)", "os._exit or the like, with exit status 3"),
     ("import ctypes; print('bye', flush=True); ctypes.string_at(0)", "SIGSEGV")],
)  # fmt: skip
async def test_a_kernel_that_dies_is_replaced_and_told(sandbox: KernelSandbox, code: str, why: str) -> None:
    result = await sandbox.run(code, timeout=60)
    assert (result.status, result.state_lost) == ("died", True)
    assert why in result.note
    assert "of earlier calls are gone" in result.note
    assert result.seconds < 30  # noticed, not waited for
    assert (await sandbox.run("df.shape")).text == "(3, 3)\n"


async def test_a_kernel_that_died_between_calls_is_noticed_before_the_next(sandbox: KernelSandbox) -> None:
    await sandbox.run("1")
    assert sandbox._kernel is not None
    assert sandbox._client is not None
    channels = sandbox._client._channels
    await channels.send(channels.shell, "execute_request", {"code": "import os; os._exit(5)", "silent": True})
    await sandbox._kernel.exited.wait()
    result = await sandbox.run("ran = True")
    assert (result.status, result.state_lost) == ("died", True)
    assert "was not run" in result.note
    assert "NameError" in (await sandbox.run("ran")).text


async def test_an_allocation_that_is_too_large_keeps_variables(sandbox: KernelSandbox) -> None:
    await sandbox.run("kept = 7")
    result = await sandbox.run("big = np.ones(400_000_000)")
    assert result.status == "error"
    assert "MemoryError" in result.text
    assert (await sandbox.run("kept")).text == "7\n"


async def test_a_full_memory_keeps_variables_and_can_be_emptied(sandbox: KernelSandbox) -> None:
    await sandbox.run("kept = 7; full = []")
    result = await sandbox.run("while True: full.append(np.empty(10_000_000))")
    assert "MemoryError" in result.text
    assert (await sandbox.run("kept, len(full) > 12")).text == "(7, True)\n"
    await sandbox.run("del full")
    assert (await sandbox.run("np.ones(20_000_000).sum()")).status == "ok"


async def test_calls_at_the_same_time_run_one_after_another(sandbox: KernelSandbox) -> None:
    results = await asyncio.gather(*(sandbox.run(f"print({number})") for number in range(4)))
    assert [result.text for result in results] == ["0\n", "1\n", "2\n", "3\n"]


async def test_a_call_that_is_cancelled_costs_the_state_but_not_the_session(sandbox: KernelSandbox) -> None:
    call = asyncio.create_task(sandbox.run("import time; time.sleep(100)"))
    await asyncio.sleep(0.3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    result = await sandbox.run("1")
    assert (result.status, result.state_lost) == ("died", True)
    assert "cut off" in result.note
    assert (await sandbox.run("df.shape")).text == "(3, 3)\n"


async def test_closing_during_a_call_ends_it_with_a_sandbox_error(backend: KernelBackend, data: Path) -> None:
    session = await backend.open(data)
    call = asyncio.create_task(session.run("import time; time.sleep(100)"))
    await asyncio.sleep(0.3)
    await session.close()
    with pytest.raises(SandboxError, match="closed"):
        await call
    await session.close()
    with pytest.raises(SandboxError, match="closed"):
        await session.run("1")


async def test_files_in_out_come_back_when_they_are_new_or_changed(sandbox: KernelSandbox) -> None:
    code = "import os\nos.makedirs('out/tables', exist_ok=True)\ndf.to_csv('out/tables/first.csv', index=False)\n"
    first = await sandbox.run(f"{code}open('out/note.txt', 'w').write('one')")
    assert {file.name: file.content[:10] for file in first.files} == {
        "note.txt": b"one",
        "tables/first.csv": b"site,count",
    }
    assert (await sandbox.run("1")).files == ()
    second = await sandbox.run("open('out/note.txt', 'w').write('two')")
    assert [(file.name, file.content) for file in second.files] == [("note.txt", b"two")]


async def test_files_of_a_call_that_fails_or_is_cut_off_come_back_too(sandbox: KernelSandbox) -> None:
    failed = await sandbox.run("open('out/before.txt', 'w').write('x'); 1 / 0")
    assert (failed.status, [file.name for file in failed.files]) == ("error", ["before.txt"])
    cut = await sandbox.run("open('out/cut.txt', 'w').write('x')\nwhile True: pass", timeout=0.5)
    assert (cut.status, [file.name for file in cut.files]) == ("timeout", ["cut.txt"])


async def test_files_beyond_the_limits_are_left_out_and_told(sandbox: KernelSandbox) -> None:
    large = await sandbox.run("open('out/large', 'wb').write(bytes(9 << 20)); open('out/small', 'wb').write(b's')")
    assert [file.name for file in large.files] == ["small"]
    assert "Files in out/ left out: 1" in large.note
    many = await sandbox.run("for number in range(25): open(f'out/many{number:02}', 'w').write('x')")
    assert len(many.files) == 10
    assert "Files in out/ left out: 15" in many.note
    odd = await sandbox.run("open('out/a\\nb', 'w').close(); open('out/' + 'n' * 250, 'w').close()")
    assert odd.files == ()
    assert "left out: 2" in odd.note
    await sandbox.run("import os, shutil; shutil.rmtree('out'); os.mkdir('out')")


async def test_a_large_file_that_is_mostly_empty_is_left_out(sandbox: KernelSandbox) -> None:
    result = await sandbox.run("open('out/sparse', 'wb').truncate(200 << 20)")
    assert (result.files, "left out: 1" in result.note) == ((), True)
    await sandbox.run("import os; os.unlink('out/sparse')")


async def test_very_deep_and_very_many_folders_in_out_do_not_hold_us_up(sandbox: KernelSandbox) -> None:
    code = """
import os
start = os.getcwd()
for number in range(3000): os.mkdir(f'out/{number}')
os.chdir('out')
for _ in range(500): os.mkdir('deep'); os.chdir('deep')
os.chdir(start)
"""
    assert (await sandbox.run(code, timeout=60)).status == "ok"
    assert (await sandbox.run("1")).text == "1\n"
    await sandbox.run("import os, subprocess; subprocess.run(['rm', '-rf', 'out']); os.mkdir('out')", timeout=60)


async def test_a_session_that_waits_has_imported_what_code_is_likely_to_need(
    backend: KernelBackend, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "IDLE_SECONDS", 0.1)
    for seconds in (2, 30):  # it takes as long as the machine needs
        session = await backend.open(data)
        await asyncio.sleep(seconds)
        imported = (await session.run("import sys; 'matplotlib.pyplot' in sys.modules")).text == "True\n"
        figure = await session.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
        await session.close()
        assert [image[:4] for image in figure.images] == [b"\x89PNG"]
        if imported:
            return
    raise AssertionError("nothing was imported")


async def test_data_that_is_still_under_way_is_waited_for(backend: KernelBackend, data: Path) -> None:
    async def later() -> Path:
        await asyncio.sleep(0.2)
        return data

    session = await backend.open(later())
    assert (await session.run("df.shape")).text == "(3, 3)\n"
    await session.close()


async def test_data_that_never_come_are_their_own_error(backend: KernelBackend) -> None:
    async def never() -> Path:
        raise RuntimeError("no data today")

    with pytest.raises(RuntimeError, match="no data today"):
        await backend.open(never())


async def test_data_that_cannot_be_read_is_a_sandbox_error(backend: KernelBackend, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="data file"):
        await backend.open(tmp_path / "absent.csv")


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_a_process_that_a_cell_forked_ends_with_the_cell(sandbox: KernelSandbox) -> None:
    code = """\
import os, sys, warnings
with warnings.catch_warnings(action="ignore"):
    if not os.fork():
        %s
print(os.waitstatus_to_exitcode(os.wait()[1]) if NUMBER == os.getpid() else "fork")
"""
    await sandbox.run("import os\nNUMBER = os.getpid()")
    for end, printed in [("exit()", "0"), ("sys.exit(3)", "SystemExit: 3\n3"), ("1 / 0", "1"), ("pass", "fork\n0")]:
        result = await sandbox.run(code % end, timeout=5)
        assert (result.status, result.text.strip().endswith(printed)) == ("ok", True), result.text
    assert (await sandbox.run("print(NUMBER == os.getpid())")).text.strip() == "True"
