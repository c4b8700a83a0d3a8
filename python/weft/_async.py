# _async.py — functions of Python that are `async`: their program waits for them, and the event loop goes on meanwhile.
import inspect
from ctypes import byref, c_void_p

from ._errors import Error, kind_of
from ._interrupt import Watch
from ._library import MISUSE, OK, SUSPENDED, quick, runs


def is_async(thing):
    return inspect.iscoroutinefunction(thing) or inspect.iscoroutinefunction(getattr(thing, "__call__", None))


def function(core, thing, callback, number, release):
    """A function of the VM that may let its program wait: (status, value). The library declares one in a module, from
    where it is taken."""
    vm, out = core.vm, c_void_p()
    if core.module is None:
        made = c_void_p()
        core.check(quick.weft_module_new(vm, b"python", byref(made)))
        core.module = made
    name = getattr(thing, "__name__", "").encode("utf-8", "replace")
    status = quick.weft_define_suspending(vm, core.module, name, callback, number, release)
    if status == MISUSE:  # no name that a variable can have
        name = b"f"
        status = quick.weft_define_suspending(vm, core.module, name, callback, number, release)
    if status != OK:
        return status, None
    core.check(quick.weft_module_get(vm, core.module, name, byref(out)))
    nothing = c_void_p()
    core.check(quick.weft_nil(vm, byref(nothing)))
    core.check(quick.weft_module_set(vm, core.module, name, nothing))
    quick.weft_release(vm, nothing)
    return OK, out.value


def _step(core, run, *args):
    """Runs the program until it waits or ends: (does it wait, its value)."""
    with core:
        core.ready()
        out = c_void_p()
        if core.depth == 1:
            core.raised = None
        core.may_wait = core.depth == 1
        try:
            with Watch(core.vm):
                status = run(core.vm, *args, byref(out))
        finally:
            core.may_wait = False
        if status == SUSPENDED:
            return True, None
        core.forget_awaited()
        core.check(status)
        return False, core.to_python(out.value)


def _failed(core, error):
    """The program goes on with the exception of the function that it waits for."""
    message = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    text = message.encode("utf-8", "replace").replace(b"\0", b"")

    def run(vm, out):
        core.raised = (error, message)
        return runs.weft_resume_failed(vm, kind_of(error).encode(), text, out)
    return _step(core, run)


def _answered(core, answer):
    with core:
        core.ready()
        given = core.from_python(answer)
    try:
        return _step(core, runs.weft_resume, given)
    finally:
        core.drop(given)


async def run(core, function, *args):
    """A program that may wait; gives its value. What ends the waiting, a cancelled task say, ends the program."""
    waits, value = _step(core, function, *args)
    try:
        while waits:
            awaited, core.awaited = core.awaited, None
            try:
                answer = await awaited
                error = None
            except Exception as failed:  # noqa: B902: it goes on through the program
                error = failed
            if error is None:
                try:
                    waits, value = _answered(core, answer)
                    continue
                except (TypeError, ValueError, OverflowError) as failed:  # a result that no program can have
                    if not quick.weft_is_suspended(core.vm):
                        raise
                    error = failed
            waits, value = _failed(core, error)
    except BaseException:
        with core:
            core.forget_awaited()
            if quick.weft_is_suspended(core.vm):
                runs.weft_cancel(core.vm)
        raise
    return value
