# _core.py — one VM with what Python lends it: the lock, values in both directions, functions, errors.
import collections
import functools
import itertools
import os
import sys
import threading
import weakref
from ctypes import byref, c_char_p, c_size_t, c_void_p, string_at

from . import _async, _dlpack, _errors, _signature
from ._buffer import Memory as Lent
from ._buffer import what_is
from ._interrupt import Watch
from ._library import (BY_NAME, BY_NUMPY, HOST_FUNCTION, INCOMPLETE, MISUSE, OK, RELEASE, RELEASE_DATA, SUSPENDED,
                       DType, quick, runs)
from ._values import Array, Function, Memory, Value, scalar

_cores: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # by the address of the VM


@functools.lru_cache(None)
def numpy_loaded():
    """NumPy where it is installed, else None; it is imported once a value needs it."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


# ---- called by the library --------------------------------------------------------------------------------


@RELEASE_DATA
def _give_back(context, _data):
    entry = _lent.pop(context, None)
    if entry is not None and isinstance(entry, Lent):
        entry.release()


@RELEASE
def _function_gone(context):
    _functions.pop(context, None)


def _call(vm, context, args, count, finish):
    core = _cores.get(vm)
    try:
        values = [core.to_python(core.retain(args[i])) for i in range(count)]
        return finish(core, _functions[context], values)
    except BaseException as error:  # noqa: B902: it goes on through the program, and is raised where that was called
        message = error.message if isinstance(error, _errors.Error) else f"{type(error).__name__}: {error}"
        core.raised = (error, message)
        if not isinstance(error, Exception):
            quick.weft_interrupt(vm)  # KeyboardInterrupt, SystemExit: no `catch` stops them
        text = message.encode("utf-8", "replace").replace(b"\0", b"")
        quick.weft_fail(vm, _errors.kind_of(error).encode(), text)
        return 1


@HOST_FUNCTION
def _call_python(vm, context, args, count, result):
    def finish(core, function, values):
        out = function(*values)
        values.clear()
        core.sweep()
        result[0] = core.from_python(out)
        return OK
    return _call(vm, context, args, count, finish)


@HOST_FUNCTION
def _call_async(vm, context, args, count, _result):
    def finish(core, function, values):
        if not core.may_wait:
            raise _errors.NotImplementedError("an async function of Python: `await vm.eval_async(…)` or `await "
                                              "f.call_async(…)` runs a program that calls it", "unsupported")
        core.awaited = function(*values)
        return SUSPENDED
    return _call(vm, context, args, count, finish)


_lent: dict = {}       # what the library holds: memory of objects, by number
_functions: dict = {}  # functions of Python, by number
_numbers = itertools.count(1)


class Core:
    """`with core:` gives it to this thread; inside, its VM may be called. Others wait."""

    def __init__(self, vm, arrays):
        self.vm, self.arrays = vm, arrays
        self.lock = threading.RLock()
        self.depth = 0
        self.garbage = collections.deque()
        self.closed = False
        self.freed = False   # in a cycle of garbage values may go after it
        self.raised = None   # the last exception of a Python function, and its message
        self.dtypes = {}     # values of dtypes, by name
        self.keep = None     # callbacks that the VM holds
        self.files = None    # of weft_files_below
        self.module = None   # where async functions are declared
        self.may_wait = False  # the program that runs: somebody awaits it
        self.awaited = None  # the coroutine that it waits for
        self.process = os.getpid()
        _cores[vm.value] = self

    def __del__(self):
        if sys is not None and not sys.is_finalizing() and self.process == os.getpid():
            self.freed = True
            runs.weft_free(self.vm)
            quick.weft_files_free(self.files)

    def __enter__(self):
        self.lock.acquire()
        self.depth += 1
        return self

    def __exit__(self, *_):
        if self.depth == 1:
            self.sweep()
        self.depth -= 1
        self.lock.release()

    def drop(self, ptr):
        """From any thread, at any time: Python frees objects where it likes."""
        if self.freed:
            return
        self.garbage.append(ptr)
        if self.lock.acquire(blocking=False):
            if self.depth == 0:
                self.sweep()
            self.lock.release()

    def sweep(self):
        while self.garbage:
            quick.weft_release(self.vm, self.garbage.popleft())

    def retain(self, ptr):
        return quick.weft_retain(self.vm, ptr)

    def ready(self):
        if self.closed:
            raise ValueError("the VM is closed")
        if self.process != os.getpid():
            raise RuntimeError("the VM is of the parent process: make one after fork")

    # ---- errors ---------------------------------------------------------------------------------------------

    def error(self):
        """The error that stands in the VM; that of a Python function has its exception as cause."""
        error = _errors.current(self.vm)
        raised, self.raised = self.raised, None
        if raised is not None:
            exception, message = raised
            if not isinstance(exception, Exception):
                return exception
            if message and message in error.message:
                error.__cause__ = exception
        return error

    def check(self, status):
        if status != OK:
            if status == MISUSE:
                if quick.weft_is_suspended(self.vm):
                    raise RuntimeError("a program of this VM waits for an async function: nothing else runs meanwhile")
                raise ValueError("the library refused the call: it was misused")
            raise self.error()

    # ---- programs -----------------------------------------------------------------------------------------------

    def run(self, function, *args, line=False):
        """One of the functions that run a program and give a value."""
        with self:
            self.ready()
            out = c_void_p()
            if self.depth == 1:
                self.raised = None
            with Watch(self.vm):
                status = function(self.vm, *args, byref(out))
            if status == INCOMPLETE and line:
                return INCOMPLETE
            self.check(status)
            return out.value

    def forget_awaited(self):
        awaited, self.awaited = self.awaited, None
        if awaited is not None:
            awaited.close()

    def given(self, args, named):
        """Arguments as weft_call_named takes them, and the values to be released behind it."""
        values = []
        try:
            for a in args:
                values.append(self.from_python(a))
            for a in named.values():
                values.append(self.from_python(a))
        except BaseException:
            self.garbage.extend(values)
            raise
        return values, ((c_void_p * len(values))(*values), len(values),
                        (c_char_p * len(named))(*(k.encode() for k in named)), len(named))

    def call_raw(self, function, args, named):
        with self:
            self.ready()
            values, given = self.given(args, named)
            try:
                return self.run(runs.weft_call_named, function, *given)
            finally:
                self.garbage.extend(values)

    async def call_async(self, function, args, named):
        with self:
            self.ready()
            values, given = self.given(args, named)
        try:
            return await _async.run(self, runs.weft_call_named, function, *given)
        finally:
            for value in values:
                self.drop(value)

    def call(self, function, args, named):
        with self:
            return self.to_python(self.call_raw(function, args, named))

    def call_into(self, function, out, args, named):
        with self:
            target = Lent.of(out, writable=True)
            if target is None:
                raise TypeError(f"out: {what_is(out)} is no array that can be written into")
            try:
                result = self.call_raw(function, args, named)
                try:
                    view = target.view()
                    self.check(runs.weft_array_copy_into(self.vm, result, byref(view)))
                finally:
                    self.garbage.append(result)
            finally:
                target.release()
            return out

    # ---- values to Python ---------------------------------------------------------------------------------------

    def to_python_locked(self, ptr):
        with self:
            return self.to_python(ptr)

    def to_python(self, ptr):
        """The value as Python has it; takes the count of ptr."""
        vm = self.vm
        if ptr is None:
            return None
        said = quick.weft_describe(vm, ptr)
        if said.endswith(b"]"):
            return self._number_or_array(ptr, said)
        if said == b"fn":
            return Function._of(self, ptr)
        held = Value._of(self, ptr)  # frees it
        if said == b"nil":
            return None
        if said == b"text":
            return self._text(ptr)
        if said == b"list":
            return [self.to_python(item) for item in self._items(ptr)]
        if said == b"record":
            key = c_char_p()
            keys = []
            items = list(self._items(ptr))
            for i in range(len(items)):
                self.check(quick.weft_key(vm, ptr, i, byref(key)))
                keys.append(key.value.decode())
            return dict(zip(keys, map(self.to_python, items)))
        if said == b"array":  # a derivative is taken of it: the library says what that means
            self.check(quick.weft_array_copy_out(vm, ptr, 1, None, 0))
        if said == b"dtype":
            return BY_NAME.get(runs.weft_show(vm, ptr).decode(), held)
        return held

    def _text(self, ptr):
        data, length = c_void_p(), c_size_t()
        self.check(quick.weft_as_text(self.vm, ptr, byref(data), byref(length)))
        return string_at(data, length.value).decode()

    def _items(self, ptr):
        count, item = c_size_t(), c_void_p()
        self.check(quick.weft_length(self.vm, ptr, byref(count)))
        for i in range(count.value):
            self.check(quick.weft_item(self.vm, ptr, i, byref(item)))
            yield item.value

    def _number_or_array(self, ptr, said):
        weak = said.startswith(b"weak ")
        if said.endswith(b"[]"):
            held = Value._of(self, ptr)
            dtype = BY_NAME[said[5 if weak else 0:-2].decode()]
            number = scalar(self, held._ptr, dtype)
            numpy = numpy_loaded() if self.arrays == "numpy" and not weak else None
            if numpy is None or dtype.numpy in (None, "bool"):
                return number
            return getattr(numpy, dtype.numpy)(number)
        numpy = numpy_loaded() if self.arrays == "numpy" else None
        if numpy is None or said.startswith(b"bf16"):
            return Array._of(self, ptr)
        try:
            return numpy.asarray(Memory(self, ptr))
        except BufferError:  # on a device
            return Array._of(self, self.retain(ptr))

    # ---- values from Python ---------------------------------------------------------------------------------------

    def from_python(self, thing, copy=False):
        """A value of the VM (its count is the caller's). Arrays are lent, with `copy` copied."""
        vm, out, kind = self.vm, c_void_p(), type(thing)
        if thing is None:
            self.check(quick.weft_nil(vm, byref(out)))
        elif kind is bool:
            self.check(quick.weft_bool(vm, thing, byref(out)))
        elif kind is float:
            self.check(quick.weft_weak_float(vm, thing, byref(out)))
        elif kind is int:
            if not -2**63 <= thing < 2**63:
                raise OverflowError(f"an integer beyond i64: {thing}; numpy.uint64(…) or a float can be")
            self.check(quick.weft_weak_int(vm, thing, byref(out)))
        elif kind is str or isinstance(thing, str):
            try:
                text = thing.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"a text that is not UTF-8: {error}") from None
            self.check(quick.weft_text(vm, text, len(text), byref(out)))
        elif isinstance(thing, Value):
            return self._from_value(thing, copy)
        elif kind is list or kind is tuple:
            return self._many(thing, None, copy)
        elif isinstance(thing, dict):
            return self._record(thing, copy)
        elif kind is complex:
            self.check(quick.weft_weak_complex(vm, thing.real, thing.imag, byref(out)))
        else:
            return self._from_other(thing, copy)
        return out.value

    def _many(self, things, keys, copy):
        given, out = [], c_void_p()
        try:
            for item in things:
                given.append(self.from_python(item, copy))
            values = (c_void_p * len(given))(*given)
            if keys is None:
                self.check(quick.weft_list(self.vm, values, len(given), byref(out)))
            else:
                self.check(quick.weft_record(self.vm, (c_char_p * len(keys))(*keys), values, len(given), byref(out)))
        except RecursionError:
            raise ValueError("lists or records are nested too deep, or hold themselves") from None
        finally:
            for ptr in given:
                quick.weft_release(self.vm, ptr)
        return out.value

    def _record(self, thing, copy):
        for key in thing:
            if not isinstance(key, str) or not key or "\0" in key:
                raise TypeError(f"a record has names as keys, got {key!r}")
        return self._many(thing.values(), [k.encode() for k in thing], copy)

    def _from_value(self, thing, copy):
        if thing._core is self:
            return self.retain(thing._ptr)
        if not isinstance(thing, Array):
            raise TypeError(f"a {type(thing).__name__} of another VM: only arrays and plain values can move")
        with thing._core:
            view = thing._view()
        return self._lend_view(view, thing, copy)

    def _lend_view(self, view, keep, copy):
        out = c_void_p()
        if copy:
            data = keep._dense()
            self.check(quick.weft_array(self.vm, view.dtype, view.rank, view.shape, data, byref(out)))
            return out.value
        return self._lend(view.dtype, view.rank, view.shape, view.strides, view.data, keep)

    def _lend(self, dtype, rank, shape, strides, data, keep):
        out, number = c_void_p(), next(_numbers)
        _lent[number] = keep
        status = quick.weft_array_lend_strided(self.vm, dtype, rank, shape, strides, data, _give_back, number,
                                               byref(out))
        if status != OK:
            del _lent[number]
        self.check(status)
        return out.value

    def _from_buffer(self, thing, copy):
        memory = Lent.of(thing)
        if memory is None:
            return None
        keep = False
        try:
            dtype, rank = memory.dtype.number, len(memory.shape)
            if not copy and rank:
                ptr = self._lend(dtype, rank, memory.shape, memory.strides, memory.data, memory)
                keep = True
                return ptr
            out = c_void_p()
            data = memory.data if memory.dense else memoryview(thing).tobytes("C")
            self.check(quick.weft_array(self.vm, dtype, rank, memory.shape, data, byref(out)))
            return out.value
        finally:
            if not keep:
                memory.release()

    def _from_other(self, thing, copy):
        if isinstance(thing, (bytes, bytearray)):
            raise TypeError(f"{type(thing).__name__}: x.decode() is a text, memoryview(x) an array of u8")
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(thing, numpy.ma.MaskedArray):
            raise TypeError("masked arrays are not supported: x.filled(…) gives the masked elements a value")
        dtype = self._as_dtype(thing)
        if dtype is not None:
            return self._dtype(dtype)
        ptr = self._from_buffer(thing, copy)
        if ptr is not None:
            return ptr
        if hasattr(thing, "__dlpack__") and not _is_numpy(thing):
            ptr = _dlpack.take(self, thing)
            return self._copied(ptr) if copy else ptr
        if hasattr(thing, "__array__") and not _is_numpy(thing):
            ptr = self._from_buffer(thing.__array__(), copy)
            if ptr is not None:
                return ptr
        if isinstance(thing, float):
            return self.from_python(float(thing))
        if isinstance(thing, int):
            return self.from_python(int(thing))
        if isinstance(thing, (list, tuple)):
            return self._many(thing, None, copy)
        if callable(thing) and not isinstance(thing, type):
            return self._described(thing) if copy else self._function(thing)
        raise TypeError(f"{what_is(thing)} is nothing that a program can have: arrays, numbers, texts, None, lists, "
                        "records (dict) and functions are")

    def _copied(self, ptr):
        """A copy that the VM owns; takes the count of ptr."""
        array, out = Array._of(self, ptr), c_void_p()
        view = array._view()
        self.check(quick.weft_array(self.vm, view.dtype, view.rank, view.shape, array._dense(), byref(out)))
        return out.value

    @staticmethod
    def _as_dtype(thing):
        if isinstance(thing, DType):
            return thing
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return None
        if isinstance(thing, numpy.dtype) or (isinstance(thing, type) and issubclass(thing, numpy.generic)):
            found = BY_NUMPY.get(numpy.dtype(thing).name)
            if found is None:
                raise TypeError(f"Weft has no dtype {numpy.dtype(thing)}")
            return found
        return None

    def _dtype(self, dtype):
        held = self.dtypes.get(dtype.name)
        if held is None:
            made = c_void_p()
            text = dtype.name.encode()
            self.check(runs.weft_eval_length(self.vm, text, len(text), b"<dtype>", byref(made)))
            if quick.weft_describe(self.vm, made) != b"dtype":
                self.garbage.append(made.value)
                raise TypeError(f"{dtype.name} is no dtype in this program: it has a variable of that name")
            held = self.dtypes[dtype.name] = Value._of(_Weak(self), made.value)
        return self.retain(held._ptr)

    def _described(self, thing):
        """A function with the names, defaults and documentation that it has in Python, where they can be written."""
        if _async.is_async(thing):
            return self._function(thing)
        said = _signature.of(thing)
        if said is None:
            return self._function(thing)
        signature, doc, call = said
        number, out = next(_numbers), c_void_p()
        _functions[number] = call
        status = runs.weft_function_described(self.vm, signature.encode("utf-8", "replace"),
                                              doc.encode("utf-8", "replace"), _call_python, number, _function_gone,
                                              byref(out))
        if status == OK:
            return out.value
        del _functions[number]
        if status != MISUSE and quick.weft_error_kind(self.vm) in (b"syntax", b"name"):
            return self._function(thing)  # a word of the language is the name of a parameter, say
        self.check(status)

    def _function(self, thing):
        number, out = next(_numbers), c_void_p()
        _functions[number] = thing
        if _async.is_async(thing):
            status, value = _async.function(self, thing, _call_async, number, _function_gone)
            if status != OK:
                del _functions[number]
            self.check(status)
            return value
        name = str(getattr(thing, "__name__", type(thing).__name__)).encode("utf-8", "replace")
        status = quick.weft_function(self.vm, name, _call_python, number, _function_gone, byref(out))
        if status != OK:
            del _functions[number]
        self.check(status)
        return out.value


class _Weak:
    """For values that the core itself keeps: they go with its VM."""

    def __init__(self, core):
        pass

    def drop(self, ptr):
        pass


def _is_numpy(thing):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(thing, (numpy.ndarray, numpy.generic))

