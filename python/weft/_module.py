# _module.py — what the main module of a VM and other modules have in common: variables, and programs that see them.
import os
from ctypes import byref, c_size_t, c_void_p, string_at

from . import _async
from ._library import MISUSE, OK, quick, runs
from ._values import Value


def name_of(name):
    if not isinstance(name, str):
        raise TypeError(f"the name of a variable is a text, got {type(name).__name__}")
    return name.encode()


def _source(what, source, name):
    if not isinstance(source, str):
        raise TypeError(f"{what}: source text is wanted, got {type(source).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"{what}: the name of a source is a text, got {type(name).__name__}")
    text = source.encode()
    return text, len(text), name.encode()


class Names:
    """Variables and programs; `_core` is the VM, `_where` the module: None is the main one."""

    __slots__ = ()
    _where = None

    def eval(self, source, name="<python>"):
        """Runs source text; gives the value of its last statement."""
        given = _source("eval", source, name)
        return self._core.to_python_locked(self._core.run(self._running(), *given))

    async def eval_async(self, source, name="<python>"):
        """The same of a program that calls `async` functions of Python: while it waits for one, the event loop goes on.
        Nothing else runs in the VM meanwhile."""
        given = _source("eval_async", source, name)
        return await _async.run(self._core, self._running(), *given)

    def _running(self):
        if self._where is None:
            return runs.weft_eval_length
        return lambda vm, *args: runs.weft_module_run(vm, self._where, *args)

    def compile(self, source, name="<python>", strip=False):
        """A program as bytes, for load_compiled; nothing runs. It may name the variables that are here.
        strip: without its text, which errors then do not show."""
        text, length, name = _source("compile", source, name)
        with self._core as core:
            core.ready()
            data, count = c_void_p(), c_size_t()
            core.check(runs.weft_compile(core.vm, self._where, text, length, name, bool(strip), byref(data),
                                         byref(count)))
            return string_at(data, count.value)

    def load_compiled(self, program, path=None):
        """Runs what compile gave, in the same version of Weft. The bytes are proved first, whoever made them. Imports
        are looked for beside `path`."""
        program = bytes(memoryview(program))
        path = None if path is None else os.fsencode(path)
        run = self._core.run(lambda vm, out: runs.weft_load_compiled(vm, self._where, program, len(program), path, out))
        return self._core.to_python_locked(run)

    def __getitem__(self, name):
        """A variable of the program: vm["x"]."""
        with self._core as core:
            core.ready()
            out = c_void_p()
            core.check(self._get(core, name_of(name), byref(out)))
            return core.to_python(out.value)

    def __setitem__(self, name, value):
        """Sets or declares a variable. Arrays are copied: what Python writes later does not reach the program;
        vm["x"] = vm.lend(x) does not copy."""
        with self._core as core:
            core.ready()
            given = core.from_python(value, copy=True)
            try:
                status = self._set(core, name_of(name), given)
                if status == MISUSE:
                    raise ValueError(f"{name!r} is no name that a variable can have")
                core.check(status)
            finally:
                core.garbage.append(given)

    def __contains__(self, name):
        with self._core as core:
            core.ready()
            out = c_void_p()
            if self._get(core, name_of(name), byref(out)) != OK:
                return False
            core.garbage.append(out.value)
            return True

    def _get(self, core, name, out):
        if self._where is None:
            return quick.weft_get_global(core.vm, name, out)
        return quick.weft_module_get(core.vm, self._where, name, out)

    def _set(self, core, name, value):
        if self._where is None:
            return quick.weft_set_global(core.vm, name, value)
        return quick.weft_module_set(core.vm, self._where, name, value)


class Module(Names, Value):
    """A module with variables of its own: what runs in it sees these and the built-ins. A program that is given it
    reads them: canvas.line(1, 2)."""

    __slots__ = ()

    @property
    def _where(self):
        return self._ptr

    def close(self):
        """Its variables go: a function of it that a program still holds finds none of them."""
        with self._core as core:
            core.ready()
            count = core.retain(self._ptr)
            if quick.weft_module_free(core.vm, count) == MISUSE:
                core.garbage.append(count)
                raise ValueError("a program runs, or the module is closed")
