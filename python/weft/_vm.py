# _vm.py — a VM as Python sees it.
import ctypes
import os
import sys
import weakref
from ctypes import byref, c_char_p, c_double, c_void_p, create_string_buffer, string_at

from . import _errors
from ._core import Core, numpy_loaded
from ._library import (DTYPES, ERROR, INPUT, MISUSE, OK, OUTPUT, RESOLVE, BY_NAME, Completion, Options, below, quick,
                       runs)
from ._module import Module, Names, name_of
from ._values import Array, Function

_libc = ctypes.CDLL(None)
_libc.malloc.restype, _libc.malloc.argtypes = c_void_p, (ctypes.c_size_t,)


def _show(text):
    sys.stdout.write(text)
    if not text.endswith("\n"):
        sys.stdout.flush()


def _count(name, value, most=2**64 - 1):
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: a whole number is wanted, got {value!r}")
    value = value.__index__()
    if not 0 < value <= most:
        raise ValueError(f"{name}: from 1 to {most}, got {value}")
    return value


class VM(Names):
    """A virtual machine: its variables, its limits, what it compiled. VMs are independent.

    A program in it has no files, environment, imports and GPU unless they are allowed.

    files: a folder, all that the program sees of files lies below it; True, all files of this machine.
    env, imports, gpu: allow them.
    memory: bytes it may hold.  fuel: calls, loop trips, elements / 1024.  deadline: seconds from now on.
    depth: nested calls.  output_limit: bytes printed.  threads: processors for long loops.
    output: a function that gets what is printed, in place of sys.stdout.
    input: sys.stdin.readline, or what gives lines like it.
    modules: a dict or function that gives the source of a module by its path, in place of files.
    arrays: "numpy", results are NumPy arrays, or "weft", they are weft.Array; NumPy where it is installed.
    backend, cpu, hot, device, cuda_driver, gpu_cache, ignore_clock, explain: as WeftOptions in weft.h.
    """

    def __init__(self, *, files=False, env=False, imports=False, gpu=False, memory=None, fuel=None, deadline=None,
                 depth=None, output_limit=None, threads=None, output=None, input=None, modules=None, arrays=None,
                 backend=None, cpu=None, hot=None, device=None, cuda_driver=None, gpu_cache=None, ignore_clock=False,
                 explain=False):
        if arrays not in (None, "numpy", "weft"):
            raise ValueError(f'arrays: "numpy" or "weft", got {arrays!r}')
        if arrays == "numpy" and numpy_loaded() is None:
            raise ImportError('arrays="numpy": NumPy is not installed')
        for name, given in (("output", output), ("input", input)):
            if given is not None and not callable(given):
                raise TypeError(f"{name}: a function is wanted, got {type(given).__name__}")
        if modules is not None and not callable(modules) and not hasattr(modules, "get"):
            raise TypeError(f"modules: a dict or a function is wanted, got {type(modules).__name__}")
        o = Options(size=ctypes.sizeof(Options), memory=_count("memory", memory), fuel=_count("fuel", fuel),
                    deadline=_seconds(deadline), depth=_count("depth", depth, 2**32 - 1),
                    output_limit=_count("output_limit", output_limit), threads=_count("threads", threads, 1024),
                    allow_files=files is True, allow_env=bool(env), allow_imports=bool(imports or modules is not None),
                    allow_gpu=bool(gpu), hot=_count("hot", hot, 2**31 - 1), ignore_clock=bool(ignore_clock),
                    explain=bool(explain))
        for name, text in (("backend", backend), ("cpu", cpu), ("device", device), ("cuda_driver", cuda_driver),
                           ("gpu_cache", gpu_cache)):
            if text is not None:
                setattr(o, name, os.fsencode(text))
        self._slot = []  # the core, once there is one, for the functions below
        o.output = OUTPUT(self._guarded_output(output or _show))
        if input is not None:
            o.input = INPUT(self._guarded_input(input))
        if modules is not None:
            o.resolve_module = RESOLVE(self._guarded_modules(modules))
        folder = _below(files)
        o.files = folder
        vm, why = c_void_p(), create_string_buffer(300)
        status = runs.weft_open(byref(o), byref(vm), why, len(why))
        if status != OK:
            reason = why.value.decode("utf-8", "replace")
            quick.weft_files_free(folder)
            raise MemoryError(reason) if status == ERROR and "memory" in reason else ValueError(reason)
        self._core = Core(vm, arrays or "numpy")
        self._slot.append(weakref.ref(self._core))
        self._core.keep = o
        self._core.files = folder

    # What the VM calls: an exception ends the program, and is raised where that was called.
    def _guarded(self, run, failed):
        slot = self._slot

        def guarded(*args):
            try:
                return run(*args)
            except BaseException as error:  # noqa: B902
                core = slot[0]()
                message = f"{type(error).__name__}: {error}"
                core.raised = (error, message)
                quick.weft_fail(core.vm, _errors.kind_of(error).encode(), message.encode("utf-8", "replace"))
                if not isinstance(error, Exception):
                    quick.weft_interrupt(core.vm)
                return failed
        return guarded

    def _guarded_output(self, output):
        return self._guarded(lambda _, text, length: output(string_at(text, length).decode("utf-8", "replace"))
                             if length else None, None)

    def _guarded_input(self, read):
        rest = []

        def give(_, to, room):
            text = rest.pop() if rest else (read() or "").encode()
            if text and not text.endswith(b"\n"):
                text += b"\n"
            count = min(text.find(b"\n") + 1, room)  # no further than the end of a line
            if len(text) > count:
                rest.append(text[count:])
            ctypes.memmove(to, text, count)
            return count
        return self._guarded(give, 0)

    def _guarded_modules(self, modules):
        find = modules if callable(modules) else modules.get

        def give(_, path):
            source = find(path.decode())
            if source is None:
                return None
            text = source.encode() + b"\0"
            memory = _libc.malloc(len(text))  # the library frees it
            ctypes.memmove(memory, text, len(text))
            return memory
        return self._guarded(give, None)

    # ---- programs -------------------------------------------------------------------------------------------

    def load(self, path):
        """Runs a file. Needs no permission: the host chose it."""
        return self._core.to_python_locked(self._core.run(runs.weft_load_file, os.fsencode(path)))

    def load_text(self, source, path):
        """Runs the text of a file that was read: imports are looked for beside `path`, which stands in messages."""
        text = source.encode()
        return self._core.to_python_locked(self._core.run(runs.weft_load_text, text, len(text), os.fsencode(path)))

    def module(self, name):
        """A new module with variables of its own, for programs that are kept apart, or for functions of Python under
        one name: vm["canvas"] = canvas."""
        with self._core as core:
            core.ready()
            made = c_void_p()
            status = quick.weft_module_new(core.vm, name_of(name), byref(made))
            if status == MISUSE:
                raise ValueError(f"{name!r} is no name that a module can have")
            core.check(status)
            return Module._of(core, made.value)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"a VM has no {name}; a variable of its program is vm[{name!r}]")

    # ---- values -----------------------------------------------------------------------------------------------

    def array(self, x, dtype=None):
        """x, an array or nested lists of numbers, copied into the VM: a weft.Array."""
        return self._array(x, dtype, True)

    def lend(self, x):
        """The memory of x as a weft.Array, without a copy; x must not be written as long as that lives."""
        return self._array(x, None, False)

    def _array(self, x, dtype, copy):
        with self._core as core:
            core.ready()
            if isinstance(x, (list, tuple, int, float, complex)) and type(x).__module__ == "builtins" or dtype:
                if not copy:
                    raise TypeError(f"lend: {type(x).__name__} has no memory to lend; vm.array(x) copies")
                ptr = self._made(core, x, dtype)
            else:
                ptr = core.from_python(x, copy)
            if quick.weft_describe(core.vm, ptr).endswith(b"]"):
                return Array._of(core, ptr)
            core.garbage.append(ptr)
            raise TypeError(f"{type(x).__name__} is no array")

    @staticmethod
    def _made(core, x, dtype):
        make = core.run(runs.weft_eval_length, b"(x, dtype) => array(x, dtype=dtype)", 35, b"<array>")
        try:
            if dtype is not None:
                found = core._as_dtype(dtype) or next((d for d in DTYPES if d == dtype), None)
                if found is None:
                    raise TypeError(f"Weft has no dtype {dtype!r}: " + " ".join(BY_NAME))
                dtype = found
            return core.call_raw(make, (x, dtype), {})
        finally:
            core.garbage.append(make)

    def function(self, f):
        """A function of Python as one of the program, with its names of arguments, defaults and documentation. One that
        is passed often is made once."""
        if not callable(f):
            raise TypeError(f"a function is wanted, got {type(f).__name__}")
        with self._core as core:
            core.ready()
            return Function._of(core, core._described(f))

    # ---- limits -------------------------------------------------------------------------------------------------

    def limits(self, *, memory=None, fuel=None, deadline=None):
        """Limits from here on, in place of those before; what is not given has none."""
        with self._core as core:
            core.ready()
            quick.weft_set_limits(core.vm, _count("memory", memory), _count("fuel", fuel), _seconds(deadline))

    def left(self):
        """What is left of the limits, (memory, fuel, seconds); None where there is none."""
        with self._core as core:
            memory, fuel = quick.weft_memory_left(core.vm), quick.weft_fuel_left(core.vm)
            seconds = quick.weft_time_left(core.vm)
            return tuple(n if n not in (2**64 - 1, float("inf")) else None for n in (memory, fuel, seconds))

    def collect(self):
        """Gives back what nobody can reach, and freed arrays that are kept for the next ones: how many bytes."""
        with self._core as core:
            core.ready()
            return runs.weft_collect(core.vm)

    def set_device(self, name):
        """Where arrays are made from here on: "cpu", "gpu"."""
        with self._core as core:
            core.ready()
            if quick.weft_set_device(core.vm, str(name).encode()) != OK:
                raise ValueError(f"there is no device {name!r}, or a program runs")

    def interrupt(self):
        """Stops the program that runs in another thread, soon: it raises weft.Interrupted there."""
        quick.weft_interrupt(self._core.vm)

    def close(self):
        """Ends the VM. Arrays that it gave stay; functions and programs cannot be run any more."""
        with self._core as core:
            core.closed = True

    def __enter__(self):
        self._core.ready()
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError("a weft.VM cannot be pickled")

    def __repr__(self):
        return "<weft.VM, closed>" if self._core.closed else "<weft.VM>"

    # ---- looking inside -----------------------------------------------------------------------------------------

    def stats(self):
        """Counters of the VM, by name: what trace.stats() gives in a program."""
        with self._core as core:
            number, found = c_double(), {}
            while True:
                name = quick.weft_stat_at(core.vm, len(found), byref(number))
                if name is None:
                    return found
                found[name.decode()] = int(number.value) if number.value.is_integer() else number.value

    def dump(self, what="explain"):
        """The log of capture: "explain", "why", "json", "chrome", "profile"."""
        with self._core as core:
            core.ready()
            text = runs.weft_dump(core.vm, None, str(what).encode())
            if text is None:
                raise ValueError(f"dump: unknown: {what!r} (explain, why, json, chrome, profile)")
            return text.decode()

    def format(self, source, name="<python>"):
        """The source in the layout of `weft fmt`."""
        with self._core as core:
            core.ready()
            text, out = source.encode(), c_char_p()
            core.check(quick.weft_format(core.vm, text, len(text), name.encode(), byref(out)))
            return out.value.decode()

    def complete(self, line, at=None):
        """How a line may go on at position `at` (its end): (where the word begins, words)."""
        text = line[:at].encode() if at is not None else line.encode()
        with self._core as core:
            core.ready()
            found = Completion(size=ctypes.sizeof(Completion))
            core.check(quick.weft_complete(core.vm, text, len(text), byref(found)))
            return len(text[:found.start].decode("utf-8", "ignore")), [found.words[i].decode()
                                                                       for i in range(found.count)]


def _below(files):
    """What the program sees of files, where that is a folder."""
    if files is None or isinstance(files, bool):
        return None
    if not isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError(f"files: a folder, True or False is wanted, got {files!r}")
    found, path = c_void_p(), os.fsencode(files)
    if b"\0" in path:
        raise ValueError("files: the name of a folder holds no zero byte")
    if below(path, byref(found)) != OK:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.fsdecode(path))
    return found


def _seconds(deadline):
    if deadline is None:
        return 0.0
    if isinstance(deadline, bool) or not isinstance(deadline, (int, float)):
        raise TypeError(f"deadline: seconds are wanted, got {deadline!r}")
    if not deadline > 0:
        raise ValueError(f"deadline: more than 0 seconds, got {deadline!r}")
    return float(deadline)


def is_compiled(program):
    """Do these bytes begin as those of VM.compile do?"""
    program = bytes(memoryview(program))
    return quick.weft_is_compiled(program, len(program))


def compile(source, **options):
    """The function that the source text ends with, in a VM of its own: f = weft.compile("(x, y) => sqrt(x*x + y*y)").
    Options are those of VM."""
    found = VM(**options).eval(source, "<compile>")
    if not isinstance(found, Function):
        raise TypeError(f"compile: the source must end with a function, not {type(found).__name__}")
    return found
