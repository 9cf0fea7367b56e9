"""Attempts to reach the machine: memory, files, network, processes, time without end."""

from tests.policies.sandbox.escape import PASSES, Escape, fitting, selecting

DENIED = r"error: .*(PermissionError|Operation not permitted|BlockingIOError|Too many open files)"
NO_MEMORY = r"(error|failed): .*(MemoryError|took longer|worker died)"
TIMED_OUT = r"failed: .* took longer than"
UNDERSCORE, IMPORTS = "starting with '_'", "imports are refused"

FRAMES = (
    Escape(
        1,
        "walk to os.system",
        selecting("""
            for kind in ().__class__.__base__.__subclasses__():
                if kind.__name__ == "_wrap_close" and kind.__init__.__globals__["system"]("true") == 0:
                    loot("a shell ran")
        """),
        UNDERSCORE,
        "S",
    ),
    Escape(
        1,
        "walk to open",
        selecting("""
            for kind in [].__class__.__mro__[1].__subclasses__():
                if kind.__name__ == "_wrap_close":
                    loot(kind.__init__.__globals__["__builtins__"]["open"]("/etc/passwd").read())
        """),
        UNDERSCORE,
        DENIED,
    ),
    Escape(
        2,
        "format reads attributes",
        selecting("""
            text = "{0.__init__.__globals__[_sys].modules[os].environ}".format(collections.Counter)
            raise ValueError(text)
        """),
        "write an f-string",
        r"error: .*environ\(",  # of the worker, which was given none
    ),
    Escape(
        2,
        "format_map reads attributes",
        selecting("""
            raise ValueError("{q.__class__.__base__}".format_map({"q": q}))
        """),
        "write an f-string",
        "error: .*class 'object'",
    ),
    Escape(
        2,
        "format through a name",
        selecting("""
            show = str.format
            raise ValueError(show("{0.__globals__}", loot)[-9:])
        """),
        "write an f-string",
        "error: .*ValueError",
    ),
    Escape(
        3,
        "frame of a generator",
        selecting("""
            running = []
            def up():
                frame = running[0].gi_frame
                while frame is not None:
                    searched([*frame.f_globals.values(), *frame.f_locals.values()])
                    frame = frame.f_back
                yield 1
            running.append(up())
            next(running[0])
        """),
        "return a list",
        "S",
    ),
    Escape(
        3,
        "code of a generator",
        selecting("""
            code = (x for x in []).gi_code
            raise ValueError(code.co_filename)
        """),
        ".gi_code",
        "error: .*<policy>",
    ),
    Escape(
        3,
        "frame of a coroutine",
        selecting("""
            async def wait():
                return 1
            coroutine = wait()
            frame = coroutine.cr_frame
            while frame is not None:
                frame = frame.f_back
            coroutine.close()
        """),
        "'async' is refused",
        "S",
    ),
    Escape(
        4,
        "frames of a traceback",
        selecting("""
            try:
                1 // 0
            except ZeroDivisionError as error:
                frame = error.__traceback__.tb_frame
            while frame is not None:
                for names in (frame.f_globals, frame.f_locals):
                    searched(names.values())
                    searched(item for value in names.values() if isinstance(value, (list, tuple, dict)) for item in value)
                frame = frame.f_back
        """),
        UNDERSCORE,
        "S",
    ),
    Escape(
        4,
        "training rows from select",
        "KEPT = []\n\n"
        + "def fit(rows, ctx):\n    KEPT.append(rows)\n    return {}\n\n"
        + selecting("if KEPT:\n    loot(KEPT)"),
        "'KEPT' is a constant of the module",
        "S",
    ),
)

IMPORTED = (
    Escape(5, "__import__", selecting("loot(__import__('os').listdir('/'))"), "'__'", DENIED),
    Escape(5, "import statement", selecting("import os\nloot(os.listdir('/'))"), IMPORTS, DENIED),
    Escape(5, "importlib", selecting("import importlib\nloot(importlib.import_module('xml.dom.minidom'))"), IMPORTS, "error: "),
    Escape(
        5,
        "loader",
        selecting("loot(collections.Counter.__init__.__globals__['__loader__'].get_data('/etc/passwd'))"),
        UNDERSCORE,
        DENIED,
    ),
    Escape(
        5, "re.enum", selecting("loot(re.enum.sys)"), "re has compile", "error: AttributeError|error: .*no attribute 'enum'"
    ),
    Escape(5, "statistics.random", selecting("loot(statistics.random)"), "statistics has", "error: .*no attribute 'random'"),
    Escape(5, "collections._sys", selecting("loot(collections._sys)"), "collections has", "error: .*no attribute '_sys'"),
    Escape(5, "module of a member", selecting("loot(re.search.__globals__['functools'].os)"), UNDERSCORE, "error: "),
)

FILES = (
    Escape(6, "run directory", selecting("loot(open(q['meta']['file']).read())"), "nothing can be read", DENIED),
    Escape(6, "list a folder", selecting("import os\nloot(os.listdir(os.path.dirname(q['meta']['file'])))"), IMPORTS, DENIED),
    Escape(
        6, "write a file", selecting("open('/tmp/escaped', 'w').write('x')\nloot('written')"), "nothing can be read", DENIED
    ),
    Escape(6, "state of a file", selecting("import os\nloot(os.stat(q['meta']['file']))"), IMPORTS, DENIED),
    Escape(6, "own memory", selecting("loot(open('/proc/self/mem', 'rb').read(1))"), "nothing can be read", DENIED),
    Escape(6, "own environment", selecting("loot(open('/proc/self/environ').read())"), "nothing can be read", DENIED),
    Escape(
        6,
        "host's environment",
        selecting("loot(open('/proc/%s/environ' % q['meta']['host']).read())"),
        "nothing can be",
        DENIED,
    ),
    Escape(
        6, "host's memory", selecting("loot(open('/proc/%s/mem' % q['meta']['host'], 'rb').read(1))"), "nothing can be", DENIED
    ),
    Escape(6, "parent's memory", selecting("import os\nloot(open('/proc/%d/maps' % os.getppid()).read())"), IMPORTS, DENIED),
    Escape(
        6,
        "memory of another process by a system call",
        selecting("""
            import ctypes
            libc = ctypes.CDLL(None)
            buffer = ctypes.create_string_buffer(64)
            vectors = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
            if libc.process_vm_readv(int(q["meta"]["host"]), vectors, 1, vectors, 1, 0) > 0:
                loot(buffer.raw)
        """),
        IMPORTS,
        "S|" + DENIED,
    ),
    Escape(
        6,
        "environment",
        selecting("""
            import os
            if "MESA_CANARY" in os.environ or "HOME" in os.environ or "PATH" in os.environ:
                loot(dict(os.environ))
        """),
        IMPORTS,
        "S",
    ),
)

NETWORK = tuple(
    Escape(7, name, selecting(f"import socket\nwhole = {call}\nloot(whole)"), IMPORTS, "error: ")
    for name, call in {
        "TCP": "socket.create_connection(('127.0.0.1', 1), 1)",
        "TCP by hand": "socket.socket()",
        "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "name lookup": "socket.getaddrinfo('localhost', 80)",
        "abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0mesa')",
        "pair of sockets": "socket.socketpair()",
        "raw packets": "socket.socket(17, socket.SOCK_RAW)",
    }.items()
)

PROCESSES = (
    Escape(
        8,
        "fork bomb",
        selecting("""
            import os
            for _ in range(50):
                if os.fork() == 0:
                    while True:
                        pass
            loot("forked")
        """),
        IMPORTS,
        DENIED,
    ),
    Escape(
        8,
        "thread",
        selecting("import _thread\nloot(_thread.start_new_thread(len, ('',)))"),
        IMPORTS,
        "error: .*start new thread",
    ),
    Escape(8, "spawn", selecting("import os\nloot(os.posix_spawn('/bin/true', ['true'], {}))"), IMPORTS, DENIED),
    Escape(8, "vfork", selecting("import ctypes\nif ctypes.CDLL(None).vfork() > 0:\n    loot('forked')"), IMPORTS, "S|error: "),
    Escape(8, "exec", selecting("import os\nos.execv('/bin/sh', ['sh', '-c', 'echo'])"), IMPORTS, DENIED),
    Escape(8, "exec memory", selecting("import os\nloot(os.memfd_create('x'))"), IMPORTS, DENIED),
    Escape(9, "kill the parent", selecting("import os\nos.kill(os.getppid(), 9)\nloot('killed')"), IMPORTS, DENIED),
    Escape(9, "kill the host", selecting("import os\nos.kill(int(q['meta']['host']), 9)\nloot('killed')"), IMPORTS, DENIED),
    Escape(9, "kill everything", selecting("import os\nos.kill(-1, 9)\nloot('killed')"), IMPORTS, DENIED),
    Escape(
        9,
        "trace the parent",
        selecting("""
            import ctypes, os
            if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0:
                loot("attached")
        """),
        IMPORTS,
        "S",
    ),
    Escape(
        14,
        "search all of memory",
        selecting("""
            import gc, os, sys
            searched([*os.environ.values(), *sys.argv])
            for thing in gc.get_objects():
                if isinstance(thing, dict):
                    searched([*thing.keys(), *thing.values()])
                elif isinstance(thing, (list, tuple)):
                    searched(thing)
        """),
        IMPORTS,
        "S",
    ),
)

RESOURCES = (
    Escape(10, "list", selecting("x = [0] * 10 ** 9"), PASSES, NO_MEMORY),
    Escape(10, "text", selecting("x = 'x' * 10 ** 9 * 9"), PASSES, NO_MEMORY),
    Escape(10, "power", selecting("n = 9\nfor _ in range(9):\n    n = n ** n"), PASSES, NO_MEMORY, brief=True),
    Escape(10, "join", selecting("x = 'xx'\nwhile True:\n    x = x.join([x, x])"), PASSES, NO_MEMORY, brief=True),
    Escape(10, "dictionary", selecting("x = {}\nwhile True:\n    x[len(x)] = [len(x)]"), PASSES, NO_MEMORY, brief=True),
    Escape(
        10,
        "pattern",
        selecting("re.compile('(?:' * 60 + 'x{1,200}' + '){1,200}' * 60)"),
        PASSES,
        "S|error: |failed: ",
        brief=True,
    ),
    Escape(
        10,
        "product",
        selecting("list(itertools.product(range(1000), range(1000), range(1000)))"),
        PASSES,
        NO_MEMORY,
        brief=True,
    ),
    Escape(10, "width", selecting("f'{1:>999999999}' * 3"), PASSES, "S|" + NO_MEMORY),
    Escape(11, "loop", selecting("while True:\n    pass"), PASSES, TIMED_OUT, brief=True),
    Escape(11, "loop while fitting", fitting("while True:\n    pass"), PASSES, TIMED_OUT, brief=True),
    Escape(
        11,
        "loop at the top level",
        "X = sum(k for k in range(1_000_000_000))\n\n" + selecting(""),
        PASSES,
        TIMED_OUT,
        brief=True,
    ),
    Escape(11, "power tower", selecting("x = 9 ** 9 ** 9"), "exponent", TIMED_OUT + "|" + NO_MEMORY, brief=True),
    Escape(11, "backtracking", selecting("re.match('(a+)+$', 'a' * 64 + 'b')"), PASSES, TIMED_OUT, brief=True),
    Escape(
        11, "quadratic text", selecting("x = ''\nwhile True:\n    x = 'a' + x"), PASSES, TIMED_OUT + "|" + NO_MEMORY, brief=True
    ),
    Escape(11, "endless iterator", selecting("sum(itertools.count())"), "itertools has", "error: .*no attribute 'count'"),
    Escape(
        12, "recursion", "def deep(n):\n    return deep(n + 1)\n\n" + selecting("deep(0)"), PASSES, "error: .*RecursionError"
    ),
    Escape(
        12,
        "recursion without limit",
        "def deep(n):\n    return deep(n + 1)\n\n" + selecting("import sys\nsys.setrecursionlimit(10 ** 9)\ndeep(0)"),
        IMPORTS,
        "failed: .*(worker died|took longer)|error: .*MemoryError",
        brief=True,
    ),
    Escape(
        12,
        "nested literals",
        "X = " + "[" * 5000 + "]" * 5000 + "\n" + selecting(""),
        "not valid Python|cannot be parsed",
        "failed: ",
    ),
    Escape(12, "nested signs", "X = " + "-" * 15_000 + "1\n" + selecting(""), "cannot be parsed|deeper than", "failed: |S"),
    Escape(12, "NUL", selecting("x = 1") + "\0", "NUL", "failed: "),
    Escape(12, "huge source", selecting("x = 1") + "#" * 10**6, "bytes, 20480 at most", "failed: .*at most 20 kB"),
    Escape(13, "null pointer", selecting("import ctypes\nctypes.string_at(0)"), IMPORTS, "failed: .*SIGSEGV"),
    Escape(
        13,
        "bad bytecode",
        "def victim():\n    return 1\n\n"
        + selecting("victim.__code__ = victim.__code__.replace(co_code=bytes([100, 255] * 20))\nvictim()"),
        "attributes cannot be set",
        "failed: .*SIG|S|error: ",
    ),
    Escape(13, "abort", selecting("import os\nos.abort()"), IMPORTS, "failed: .*(SIGABRT|SIGSEGV)"),
    Escape(
        24,
        "swallow every exception",
        selecting("""
            while True:
                try:
                    x = [0] * 10 ** 8
                except BaseException:
                    pass
        """),
        "catch Exception",
        TIMED_OUT,
        brief=True,
    ),
    Escape(
        24,
        "swallow want of memory",
        selecting("""
            while True:
                try:
                    x = 'x' * 10 ** 9 * 9
                except Exception:
                    x = ''
        """),
        PASSES,
        TIMED_OUT,
        brief=True,
    ),
    Escape(
        25, "ignore the CPU limit", selecting("import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)"), IMPORTS, DENIED
    ),
    Escape(
        25,
        "block the CPU limit",
        selecting("import signal\nsignal.pthread_sigmask(0, range(1, 65))\nwhile True:\n    pass"),
        IMPORTS,
        TIMED_OUT,
        brief=True,
    ),
    Escape(25, "set an alarm", selecting("import signal\nsignal.signal(signal.SIGALRM, len)\nloot('armed')"), IMPORTS, DENIED),
    Escape(
        25,
        "raise the limits",
        selecting("import resource\nresource.setrlimit(0, (-1, -1))\nloot('raised')"),
        IMPORTS,
        "error: ",
    ),
    Escape(26, "use up descriptors", selecting("import os\nwhile True:\n    os.dup(3)"), IMPORTS, DENIED),
    Escape(
        26,
        "write to the standard streams",
        selecting("import os\nfor fd in (0, 1, 2):\n    try:\n        os.write(fd, b'x')\n    except OSError:\n        pass"),
        IMPORTS,
        "S",
    ),
)

TO_SYSTEM = (*FRAMES, *IMPORTED, *FILES, *NETWORK, *PROCESSES, *RESOURCES)
