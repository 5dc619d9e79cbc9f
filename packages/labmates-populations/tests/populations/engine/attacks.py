"""Attacks that strategies may try: each is the body of a decision, by what it is after and a name.

A body returns `C` if it has got what it was after; so does none of them. `HELP` stands before each body.
"""

from __future__ import annotations

import re
import textwrap

import pytest

from labmates_populations.engine.kernel import source
from labmates_populations.engine.kernel.source import Source
from tests.support.strategies import strategy

HELP = """
os = random._os
sys = os.sys
def modules(name):
    return sys.modules[name]
def here(thing):
    return getattr(thing, '__di' + 'ct__')
"""
"""What attacks such as `AFTER_ESCAPE` start with: all modules of their process."""
UNGUARDED_HELP = """
kinds = ().__class__.__base__.__subclasses__()
[sys] = [one.__init__.__globals__['sys'] for one in kinds if one.__name__ == '_wrap_close']
def modules(name):
    return sys.modules[name]
def here(thing):
    return thing.__dict__
os, np, random = modules('os'), modules('numpy'), modules('random')
own = here(modules('builtins'))
getattr, hasattr, setattr, type = own['getattr'], own['hasattr'], own['setattr'], own['type']
"""
"""The same for code that no guard has rewritten."""

REFUSED = {
    "imports os": "import os\nreturn C",
    "imports a part of a module": "from os import system\nreturn C",
    "imports everything": "from numpy import *\nreturn C",
    "imports by its builtin": "__import__('os').system('true')\nreturn C",
    "numpy's builtins": "np.__builtins__['eval']('1')\nreturn C",
    "climbs to object": "().__class__.__bases__[0].__subclasses__()\nreturn C",
    "another name for eval": "run = eval\nrun('1')\nreturn C",
    "executes a text": "exec('import os')\nreturn C",
    "opens a file": "open('/etc/passwd').read()\nreturn C",
    "globals of a method": "self.__call__.__globals__\nreturn C",
    "globals": "globals()['C'] = D\nreturn C",
    "a traceback": "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__\nreturn C",
    "compiles a text": "compile('1', '', 'eval')\nreturn C",
    "memory of a text": "memoryview(b'1')\nreturn C",
}
"""Told before anything of it runs."""

ESCAPE = {
    "runs a command": "return C if os.system('true') == 0 else D",
    "a process": "os.fork()\nreturn C",
    "a spawned process": "os.posix_spawn('/bin/true', ['true'], {})\nreturn C",
    "another program": "os.execv('/bin/true', ['true'])\nreturn C",
    "reads a file": "os.open('/etc/passwd', 0)\nreturn C",
    "reads a file by a builtin by its name": "here(modules('builtins'))['op' + 'en']('/etc/passwd')\nreturn C",
    "reads a file by numpy": "np.load('/etc/passwd')\nreturn C",
    "reads lines by numpy": "np.loadtxt('/etc/passwd', dtype=str)\nreturn C",
    "maps a file": "np.memmap('/etc/passwd')\nreturn C",
    "writes a file by numpy": "np.savetxt('/tmp/labmates-attack', np.ones(3))\nreturn C",
    "writes a file by an array": "np.ones(3).tofile('/tmp/labmates-attack')\nreturn C",
    "makes a folder": "os.mkdir('/tmp/labmates-attack')\nreturn C",
    "lists a folder": "os.listdir('/')\nreturn C",
    "looks at a file": "os.stat('/etc/passwd')\nreturn C",
    "removes a file": "os.unlink('/tmp/labmates-attack')\nreturn C",
    "a link": "os.symlink('/etc/passwd', '/tmp/labmates-attack')\nreturn C",
    "changes folder": "os.chdir('/')\nreturn C",
    "a pipe": "os.pipe()\nreturn C",
    "a socket": "modules('socket').socket()\nreturn C",
    "a pair of sockets": "modules('socket').socketpair()\nreturn C",
    "a thread": "modules('_thread').start_new_thread(print, ())\nreturn C",
    "kills its parent": "os.kill(os.getppid(), 9)\nreturn C",
    "signals all": "os.kill(-1, 0)\nreturn C",
    "another user": "os.setuid(1)\nreturn C",
    "another timer": "modules('signal').setitimer(modules('signal').ITIMER_PROF, 0)\nreturn C",
    "another limit": "modules('resource').setrlimit(9, (-1, -1))\nreturn C",
    "imports what is not loaded": "modules('importlib').import_module('sqlite3')\nreturn C",
    "executable memory": "modules('mmap').mmap(-1, 4096, prot=7)\nreturn C",
    "shared memory": "os.memfd_create('x')\nreturn C",
    "its own descriptors": "os.listdir('/proc/self/fd')\nreturn C",
    "a copy of a descriptor": "os.dup(3)\nreturn C",
    "traces its parent": "assert modules('ctypes').CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0\nreturn C",
    "loads a library": "modules('ctypes').CDLL('libsqlite3.so')\nreturn C",
    "another filter": "assert modules('ctypes').CDLL(None).prctl(22, 0, 0, 0, 0) == 0\nreturn C",
}


def _forged(message: str, move: int = 1) -> str:
    """Send this message with a move, and end."""
    return f"""
        message = {message!r}.encode()
        for descriptor in range(3, 12):
            try:
                sizes = len(message).to_bytes(8, 'little') + bytes([1] + [0] * 7)
                os.write(descriptor, sizes + message + bytes([{move}]))
            except OSError:
                pass
        os._exit(0)
        """


FORGERY = {
    "the published exploit": """
        look = str.format
        try:
            1 / 0
        except ZeroDivisionError as error:
            text = look("{0.__traceback__.tb_frame.f_back.f_locals}", error)
            return C if "add_yes" in text or "Strategy_SELFISH_2" in text else D
        """,
    "an array over an address": """
        text = str.format('{0.append}', [])
        np.ndarray((1,), dtype=object, buffer=bytearray(int(text[-13:-1], 16).to_bytes(8, 'little')))[0]
        return D
        """,
    "frames below": """
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if isinstance(value, list):
                    value.clear()
            frame = frame.f_back
        return D
        """,
    "all lists of the process": """
        for thing in modules('gc').get_objects():
            if type(thing) is list and thing and all(isinstance(one, tuple) for one in thing):
                thing.clear()
        return D
        """,
    "a forged answer": """
        message = (b'{"failures":[],"seconds":0,"own":{}}')
        for descriptor in range(3, 12):
            try:
                sizes = len(message).to_bytes(8, 'little') + bytes([200] + [0] * 7)
                os.write(descriptor, sizes + message + b'\\1' * 200)
            except OSError:
                pass
        return D
        """,
    "half an answer": """
        for descriptor in range(3, 12):
            try:
                os.write(descriptor, bytes([9]))
            except OSError:
                pass
        while True: pass
        """,
    "an endless answer": """
        while True:
            for descriptor in range(3, 12):
                try:
                    os.write(descriptor, b'\\0' * 65536)
                except OSError:
                    pass
        """,
    "a failure of others": """
        failure = b'{"index":1,"round":0,"what":"x","over":true,"spent":true,"memory":false}'
        message = b'{"failures":[' + failure + b'],"seconds":0,"own":{}}'
        for descriptor in range(3, 12):
            try:
                os.write(descriptor, len(message).to_bytes(8, 'little') + bytes([1] + [0] * 7) + message + b'\\0')
            except OSError:
                pass
        return D
        """,
    "the marks of the process": """
        for thing in modules('gc').get_objects():
            for value in list(here(thing).values()) if hasattr(thing, '__dict__') else []:
                if type(value).__name__ == 'memoryview':
                    value[0] = 1
        return D
        """,
    "its own history": "history.my_actions[...] = True\nreturn C",
    "its history made writable": "history.my_actions.setflags(write=True)\nhistory.my_actions[...] = True\nreturn C",
    "its payoffs through their base": "history.my_payoffs.base[...] = 100\nreturn C",
    "the description": "self.game_description.k = 100\nreturn C",
    "the description from outside": "getattr(object, '__set' + 'attr__')(self.game_description, 'k', 100)\nreturn D",
    "the module of answers": "modules('emergent_llm.common').D = C\nreturn C",
    "what an answer is": "type(C)._member_map_['D'] = C\nreturn D",
    "the class of answers": "Action.D = C\nreturn C",
    "another class of answers": "return type('Action', (), {'value': 1})()",
    "an answer that is equal to all": "return type('E', (), {'__eq__': lambda a, b: True})()",
    "a number": "return 1",
    "a truth of numpy": "return np.True_",
    "a text": "return 'C'",
    "nothing": "pass",
    "a list of answers": "return [C]",
}

LEAKS = {
    "code of others": """
        texts = [one for one in modules('gc').get_objects() if type(one).__name__ == 'code']
        return C if any('SECRET' in str(one.co_consts) for one in texts) else D
        """,
    "classes of others": """
        kinds = getattr(BaseStrategy, '__sub' + 'classes__')()
        return C if any(one.__name__ != type(self).__name__ for one in kinds) else D
        """,
    "texts of others": """
        found = [one for thing in modules('gc').get_objects() if type(thing) in (dict, list, tuple)
                 for one in (thing.values() if type(thing) is dict else thing) if type(one) is str]
        return C if any(one == 'TERCES'[::-1] for one in found) else D
        """,
    "memory left by others": "return C if np.empty(10 ** 6, dtype=np.uint8).tobytes().count(b'TERCES'[::-1]) else D",
    "moves of single opponents": "return C if hasattr(history, 'opponent_actions') else D",
    "the base of its history": "base = history.opponent_cooperators.base\n"
    "return C if base is not None and base.ndim == 2 and len(base) > 1 else D",
    "beyond its history": """
        view = np.lib.stride_tricks.as_strided(history.opponent_cooperators, (4000,), (8,))
        return C if (view[:20] != 2).all() and view[:20].any() else D
        """,
    "the future of its history": "return C if history._record.opponents[history.round_number:].any() else D",
    "its environment": "return C if any('KEY' in one or 'HOME' in one for one in os.environ) else D",
    "its arguments": "return C if any('SECRET' in one for one in sys.argv) else D",
    "other players of its class": """
        mine = [one for one in modules('gc').get_objects() if type(one).__name__ == type(self).__name__]
        return C if len(mine) > 1 else D
        """,
    "the groups": """
        frame = sys._getframe()
        while frame is not None:
            if 'groups' in frame.f_locals or 'opponents' in frame.f_locals:
                return C
            frame = frame.f_back
        return D
        """,
}


def _kept(thing: str) -> str:
    """Leave a mark in a player's first round on something that others may see, and look for it there."""
    return (
        f"if history.round_number == 0:\n    if getattr({thing}, 'note', 0): return C\n    {thing}.note = 1\nreturn D"
    )


STATE = {
    "a function of numpy": _kept("np.mean"),
    "a function of random": _kept("random.choice"),
    "a function of statistics": _kept("modules('statistics').mean"),
    "a function of dataclasses": _kept("dataclass"),
    "a module": _kept("math"),
    "the package": _kept("np"),
    "an action": _kept("C"),
    "the class of actions": _kept("Action"),
    "the class of histories": _kept("PlayerHistory"),
    "the base class": _kept("BaseStrategy"),
    "the class of descriptions": _kept("PublicGoodsDescription"),
    "the class of arrays' views": _kept("type(history)"),
    "its class": _kept("type(self)"),
    "its method": _kept("type(self).__init__"),
    "an enum of its own": "class E(Enum):\n    A = 1\n" + _kept("E.A"),
    "os": _kept("os"),
    "threads": _kept("modules('threading')"),
    "the builtins": "found = 'note' in here(modules('builtins')) and history.round_number == 0\n"
    "here(modules('builtins'))['note'] = 1\nreturn C if found else D",
    "the list of modules": "found = 'note' in sys.modules and history.round_number == 0\nsys.modules['note'] = 1\n"
    "return C if found else D",
    "the environment": "found = 'note' in os.environ and history.round_number == 0\nos.environ['note'] = '1'\n"
    "return C if found else D",
    "settings of numpy": "found = np.geterr()['over'] == 'raise' and history.round_number == 0\n"
    "np.seterr(over='raise')\n"
    "return C if found else D",
    "the way numbers are printed": "found = np.get_printoptions()['precision'] == 3 and history.round_number == 0\n"
    "np.set_printoptions(precision=3)\nreturn C if found else D",
    "the depth of recursion": "found = sys.getrecursionlimit() == 777 and history.round_number == 0\n"
    "sys.setrecursionlimit(777)\nreturn C if found else D",
    "a parameter's default": "return self.note(history)\ndef note(self, history, seen=[]):\n"
    "    seen.append(history.round_number)\n    return C if seen.count(0) > 1 else D",
    "a list of the class": "self.seen.append(history.round_number)\n"
    "return C if self.seen.count(0) > 1 else D\nseen = []",
    "a registry of subclasses": "found = history.round_number == 0 and any(one.__name__ == 'Note' for one in "
    "getattr(Enum, '__sub' + 'classes__')())\nclass Note(Enum):\n    A = 1\nsys.keep = Note\nreturn C if found else D",
    "garbage": "found = history.round_number == 0 and len(modules('gc').garbage)\nmodules('gc').garbage.append(1)\n"
    "return C if found else D",
    "a handler of signals": "found = history.round_number == 0 and modules('atexit')._ncallbacks() > 50\n"
    "[modules('atexit').register(print) for _ in range(60)]\nreturn C if found else D",
}

CHANCE = {
    "seeds by the clock": "random.seed()\nreturn C if random.random() < 0.5 else D",
    "seeds numpy by the clock": "np.random.seed()\nreturn C if np.random.rand() < 0.5 else D",
    "a generator without a seed": "return C if random.Random().random() < 0.5 else D",
    "a generator seeded again": "r = random.Random(1)\nr.seed()\nreturn C if r.random() < 0.5 else D",
    "the class of a generator": "return C if type(random.Random(1))().random() < 0.5 else D",
    "a generator of numpy": "return C if np.random.default_rng().random() < 0.5 else D",
    "a state of numpy": "return C if np.random.RandomState().rand() < 0.5 else D",
    "a state seeded again": "r = np.random.RandomState(1)\nr.seed()\nreturn C if r.rand() < 0.5 else D",
    "bits of numpy": "return C if type(np.random.default_rng(1).bit_generator)().random_raw() % 2 else D",
    "the operating system's": "return C if random.SystemRandom().random() < 0.5 else D",
    "random bytes": "return C if os.urandom(1)[0] < 128 else D",
    "another's stream by the seed": "random.seed(1)\nnp.random.seed(1)\nreturn D",
    "the state of the stream": "random.setstate(random.Random(1).getstate())\nreturn D",
    "draws very often": "[random.random() for _ in range(1000)]\nreturn D",
}
"""What a player does is the same in another session, or it fails."""

EXHAUSTION = {
    "an endless loop": "while True: pass",
    "an endless loop that catches": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "an endless loop that returns to itself": "while True:\n    try:\n        while True: pass\n    finally: continue",
    "an endless loop in C": "sum(range(10 ** 14))\nreturn C",
    "an endless loop in C by numpy": "x = np.ones(3000)\nwhile True: np.outer(x, x).sum()",
    "a power": "10 ** 10 ** 10\nreturn C",
    "a power that grows": "x = 3\nwhile True: x = x * x",
    "a factorial": "math.factorial(10 ** 8)\nreturn C",
    "a combination": "math.comb(10 ** 8, 5 * 10 ** 7)\nreturn C",
    "endless recursion": "return self(history)",
    "recursion without a limit": "sys.setrecursionlimit(10 ** 9)\nreturn self(history)",
    "a huge array": "np.ones(10 ** 10 // 8)\nreturn C",
    "a huge list": "x = [0] * 10 ** 10\nreturn C",
    "a huge text": "x = 'x' * 10 ** 11\nreturn C",
    "memory bit by bit": "x = []\nwhile True: x.append(bytearray(10 ** 8))",
    "memory by lists": "x = []\nwhile True: x.append([0] * 10 ** 6)",
    "memory for the game": "self.kept = getattr(self, 'kept', []) + [[0] * 10 ** 7]\nreturn D",
    "a deep tuple": "x = ()\nfor _ in range(3 * 10 ** 6): x = (x,)\nreturn D",
    "a sort that is slow": "sorted(range(10 ** 6), key=lambda x: sum(range(1000)))\nreturn C",
    "an endless map": "all(map(lambda x: True, iter(int, 1)))\nreturn C",
    "leaves": "os._exit(0)",
    "ends by a signal": "modules('ctypes').string_at(0)\nreturn C",
    "leaves by an exception": "raise SystemExit",
    "an interrupt": "raise KeyboardInterrupt",
    "no more memory": "raise MemoryError",
    "a generator's end": "raise GeneratorExit",
    "an exception whose text is a trap": "class Trap(Exception):\n    def __str__(self):\n"
    "        while True: pass\nraise Trap(Trap())",
    "a lock": "lock = modules('_thread').allocate_lock()\nlock.acquire()\nlock.acquire()\nreturn C",
    "sleep": "modules('time').sleep(10 ** 6)\nreturn C",
    "its own timer": "modules('signal').signal(modules('signal').SIGPROF, lambda *_: None)\nwhile True: pass",
    "closes all": "os.closerange(0, 100)\nreturn D",
    "an endless loop later on": "while history.round_number > 1: pass\nreturn D",
    "much in each round": "sum(range(2 * 10 ** 6))\nreturn D",
    "much in each round of its own process": "type(self)\nsum(range(2 * 10 ** 6))\nreturn D",
    "much in three rounds": "x = []\nfor i in range(3000): x.append(i)\nfor i in range(1000):\n"
    "    if -1 in x: return C\nreturn D",
    "a search that doubles": "def both(n): return both(n - 1) + both(n - 1) if n else 1\nreturn C if both(60) else D",
    "a search that remembers all": "def both(n, x):\n    x[len(x)] = (n, n)\n"
    "    return both(n - 1, x) + both(n - 1, x) if n else 1\nreturn C if both(60, {}) else D",
    "a dict without an end": "x = {}\nwhile True: x[len(x)] = (len(x), x)",
    "dicts in dicts": "x = {}\nwhile True: x = {1: x}",
    "another player at each tick": """
        view = [one for one in modules('gc').get_objects() if type(one).__name__ == 'Watch'][0]._marks
        while True:
            try:
                while True: view[0] += 1
            except BaseException:
                pass
        """,
    "short sleeps": "lock = modules('_thread').allocate_lock()\nlock.acquire()\n"
    "while True: lock.acquire(True, 2) or sum(range(10 ** 6))",
    "an answer by single bytes": """
        for descriptor in range(3, 12):
            try:
                os.write(descriptor, bytes([0, 0, 1] + [0] * 13))
            except OSError:
                pass
        while True:
            for descriptor in range(3, 12):
                try:
                    os.write(descriptor, b' ')
                except OSError:
                    pass
                sum(range(10 ** 6))
        """,
    "a regular expression": "modules('re').match('(a+)+$', 'a' * 60 + 'b')\nreturn C",
    "an endless generator": "def more(n): yield from more(n + 1)\nsum(more(0))\nreturn C",
    "generators in generators": "x = iter([1])\nfor _ in range(10 ** 6): x = map(abs, x)\nsum(x)\nreturn C",
    "copies of copies": "x = [0] * 10 ** 6\nwhile True: x = modules('copy').deepcopy([x, x, list(x)])",
    "an order that is slow": """
        class Slow(int):
            def __lt__(self, other): return sum(range(10 ** 4)) > int(other)
        sorted(map(Slow, range(10 ** 6)))
        return C
        """,
    "an end that is slow": """
        class Slow:
            def __del__(self):
                while True: pass
        Slow()
        return D
        """,
    "a number as a text": "sys.set_int_max_str_digits(0)\nstr(7 ** 10 ** 7)\nreturn C",
    "a text as a number": "sys.set_int_max_str_digits(0)\nint('7' * 10 ** 7)\nreturn C",
    "a constant power": "x = 10 ** 10 ** 8\nreturn C",
    "a power by numpy": "x = np.array([3], dtype=object)\nwhile True: x = x ** 3",
    "a product of millions of digits": "x = int('7' * 4000) ** 2000\nfor _ in range(50): x = x * x\nreturn C",
    "membership in a range": "return C if 0.5 in range(10 ** 12) else D",
    "a text that doubles": "x = 'ab'\nwhile True: x = x.replace('a', x)",
    "a large decomposition": "np.linalg.svd(np.ones((2500, 2500)))\nreturn C",
    "all products": "for _ in modules('itertools').product(range(99), repeat=99): pass\nreturn C",
    "a list of all": "list(range(10 ** 9))\nreturn C",
    "a sum of lists": "x = sum([[0]] * 10 ** 5, [])\nreturn C",
    "a class of classes": "x = object\nfor _ in range(10 ** 6): x = type('x', (x,), {})\nreturn C",
    "prints without end": "while True: os.write(1, b'x' * 65536)",
}
"""Ends in time, and the strategy is named if it has made no decision."""

MESSAGES = {
    "a failure in a far round": _forged(
        '{"failures":[{"index":0,"round":1000000,"what":"","over":false,"spent":false,"memory":false}],"seconds":0.0}',
        move=255,
    ),
    "failures without an end": _forged(
        '{"failures":['
        + ",".join(['{"index":0,"round":0,"what":"","over":false,"spent":false,"memory":false}'] * 2000)
        + '],"seconds":0.0}',
        move=255,
    ),
    "a message of another form": _forged('{"failures":[],"seconds":0,"own":[]}'),
    "a time without an end": _forged('{"failures":[],"seconds":' + "9" * 400 + "}"),
    "a place that is no number": _forged('{"failures":[{"index":Infinity}],"seconds":0.0}'),
    "brackets without an end": _forged("[" * 10**5),
}
"""Messages that no honest process sends."""

AFTER = {
    "escape": ESCAPE,
    "forgery": FORGERY,
    "leaks": LEAKS,
    "state": STATE,
    "chance": CHANCE,
    "exhaustion": EXHAUSTION,
    "messages": MESSAGES,
}
ATTACKS = {f"{kind}: {name}": body for kind, attacks in AFTER.items() for name, body in attacks.items()}
"""All attacks that pass the static checks."""


def unguarded(text: str) -> list[Source]:
    """The strategies of a file, none of which is refused or rewritten: only its process confines its code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "guarded", lambda statements: (statements, []))
        return source.read_source(text, "attacks.py")


def attack(number: int, body: str, help: str = "") -> str:
    """The class of an attack, with names for what it can reach."""
    body = textwrap.dedent(body)
    whole = help + body
    if not help and re.search(r"\b(os\.|sys\.|modules\(|here\()", body):
        whole = HELP + body
    lines = whole.splitlines(keepends=True)
    inner = [n for n, line in enumerate(lines) if line.startswith(("def note", "seen = []"))]
    own = "".join(lines[inner[0] :]) if inner else ""
    text = strategy("".join(lines[: inner[0]] if inner else lines), name=f"Strategy_SELFISH_{100 + number}")
    return text + textwrap.indent(own, "    ")
