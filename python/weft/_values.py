# _values.py — values that stay in the VM, as Python sees them: arrays, functions, and all that Python has no type for.
import math
from ctypes import byref, c_char

from . import _dlpack
from ._library import BY_NAME, BY_NUMBER, OK, ArrayView, quick, runs


class Value:
    """A value of a program that Python has no type of its own for: a reference, a module, a range, …"""

    __slots__ = ("_core", "_ptr", "__weakref__")

    def __init__(self, *_, **__):
        raise TypeError(f"{type(self).__name__}: values are made by a VM: vm.eval(…), vm.array(…)")

    @classmethod
    def _of(cls, core, ptr):  # takes the count of ptr
        self = object.__new__(cls)
        self._core, self._ptr = core, ptr
        return self

    def __del__(self):
        core = getattr(self, "_core", None)
        if core is not None:
            core.drop(self._ptr)

    @property
    def type(self):
        """What type(x) gives in a program: "array", "function", "ref" …"""
        with self._core:
            return quick.weft_type(self._core.vm, self._ptr).decode()

    def __repr__(self):
        with self._core as core:
            kind = quick.weft_type(core.vm, self._ptr).decode()
            return f"<weft {kind} {runs.weft_show(core.vm, self._ptr).decode()}>"

    def __reduce__(self):
        raise TypeError(f"a weft.{type(self).__name__} cannot be pickled: it lives in its VM"
                        + ("; x.tolist() or numpy.asarray(x) can" if isinstance(self, Array) else ""))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # values of a program never change


class Function(Value):
    """A function of a program: f(x, axis=0). Arrays come and go without copies."""

    __slots__ = ()

    def __call__(self, *args, **named):
        return self._core.call(self._ptr, args, named)

    async def call_async(self, *args, **named):
        """The same of a program that calls `async` functions of Python: VM.eval_async."""
        return await self._core.call_async(self._ptr, args, named)

    def into(self, out, *args, **named):
        """Calls it and copies its result, an array, into `out`: a writable array of the same dtype and shape."""
        return self._core.call_into(self._ptr, out, args, named)

    def dump(self, what="why"):
        """What was compiled for it: "graph", "guards", "loops", "mir", "asm", "ptx"; or "why" not."""
        with self._core as core:
            text = runs.weft_dump(core.vm, self._ptr, str(what).encode())
            if text is None:
                raise ValueError(f"dump: unknown: {what!r} (graph, guards, loops, mir, asm, ptx, why)")
            return text.decode()

    def __repr__(self):
        with self._core as core:
            return f"<weft {runs.weft_show(core.vm, self._ptr).decode().strip('<>')}>"


class Array(Value):
    """An array of a program; it never changes. numpy.asarray(x), torch.from_dlpack(x) and memoryview look at it
    without a copy."""

    __slots__ = ("_seen", "_type")

    def _view(self):
        try:
            return self._seen
        except AttributeError:
            pass
        with self._core as core:
            view = ArrayView()
            if quick.weft_array_view(core.vm, self._ptr, byref(view)) != OK:
                raise BufferError('the array is on a device: to(x, "cpu") in a program copies it')
        self._seen = view
        return view

    def _said(self):  # "f64[3, 4]", wherever it lies
        try:
            return self._type
        except AttributeError:
            with self._core as core:
                name, shape = quick.weft_describe(core.vm, self._ptr).decode()[:-1].split("[")
            self._type = BY_NAME[name.split()[-1]], tuple(map(int, shape.split(", "))) if shape else ()
            return self._type

    @property
    def dtype(self):
        return self._said()[0]

    @property
    def shape(self):
        return self._said()[1]

    @property
    def strides(self):
        """In bytes, as NumPy counts."""
        view = self._view()
        return tuple(s * self.dtype.bytes for s in view.strides[:view.rank])

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def itemsize(self):
        return self.dtype.bytes

    @property
    def nbytes(self):
        return self.size * self.itemsize

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of an array of rank 0")
        return self.shape[0]

    def __bool__(self):
        if self.size != 1:
            raise ValueError("the truth of an array is its only element's: this one has " + str(self.size))
        return bool(self._flat(1)[0])

    def __iter__(self):
        if not self.ndim:
            raise TypeError("an array of rank 0 has no items")
        return iter(self.tolist())

    def __repr__(self):
        with self._core as core:
            return f"weft.Array({runs.weft_show(core.vm, self._ptr).decode()}, {self.dtype})"

    def _dense(self, dtype=None):
        """Its elements, copied: a ctypes array of bytes."""
        dtype = dtype or self.dtype
        data = (c_char * (self.size * dtype.bytes))()
        with self._core as core:
            if quick.weft_array_copy_out(core.vm, self._ptr, dtype.number, data, len(data)) != OK:
                raise core.error()
        return data

    def _flat(self, count):
        as_read = BY_NAME[self.dtype.copy]
        if as_read.name == "c128":
            parts = memoryview(self._dense(as_read)).cast("B").cast("d").tolist()
            return [complex(parts[2 * i], parts[2 * i + 1]) for i in range(count)]
        return memoryview(self._dense(as_read)).cast("B").cast(as_read.buffer).tolist() if count else []

    def tolist(self):
        """Its elements as numbers of Python, in lists as deep as its rank."""
        items = self._flat(self.size)
        return _nested(items, self.shape) if self.ndim else items[0]

    def item(self):
        if self.size != 1:
            raise ValueError(f"item() is of an array of one element, this one has {self.size}")
        return self._flat(1)[0]

    def memoryview(self):
        """A look at it that cannot write; a copy where its elements do not lie together."""
        code = self.dtype.buffer
        if code is None:
            raise BufferError(f"memoryview has no {self.dtype}: use numpy.asarray(x), x.tolist() or DLPack")
        view, dense, want = self._view(), True, 1
        for d in reversed(range(view.rank)):
            dense &= view.strides[d] == want or view.shape[d] == 1
            want *= view.shape[d]
        if not self.size:
            return memoryview(b"").cast("B").cast(code) if self.ndim == 1 else memoryview(b"")
        if dense:
            data = type("Memory", (c_char * self.nbytes,), {}).from_address(view.data)
            data.owner = self  # as long as the memoryview lives
        else:
            data = self._dense()
        return memoryview(data).cast("B").cast(code, self.shape).toreadonly()

    def __buffer__(self, flags):  # memoryview(x), from Python 3.12 on
        return self.memoryview()

    @property
    def __array_interface__(self):
        if self.dtype.numpy is None:
            raise AttributeError(f"NumPy has no {self.dtype}")
        if self._on_device():
            raise AttributeError("the array is on a device")  # then NumPy asks __array__
        return interface(self._view(), True)

    def __array__(self, dtype=None, copy=None):
        import numpy
        if self.dtype.numpy is None:
            raise TypeError(f"NumPy has no {self.dtype}: convert it in the program, f32(x)")
        if self._on_device():
            if copy is False:
                raise ValueError("the array is on a device: a copy is needed")
            return numpy.frombuffer(self._dense(), dtype=self.dtype.numpy).reshape(self.shape).astype(
                dtype or self.dtype.numpy, copy=False)
        plain = numpy.asarray(Memory(self._core, self._core.retain(self._ptr), True))
        if copy is False and dtype is not None and plain.dtype != dtype:
            raise ValueError("another dtype needs a copy")
        return numpy.array(plain, dtype=dtype, copy=True) if copy else plain.astype(dtype or plain.dtype, copy=False)

    def _on_device(self):
        with self._core as core:
            return quick.weft_array_view(core.vm, self._ptr, byref(ArrayView())) != OK

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """DLPack. A consumer older than version 1 gets a copy, unless copy=False: it may write into what it gets. An
        array on a device is copied to the processor."""
        if stream is not None:
            raise BufferError("stream: there is none on a processor")
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("dl_device: copies to a device are not supported")
        versioned = max_version is not None and tuple(max_version)[0] >= 1
        if copy is None:
            copy = not versioned or self._on_device()
        with self._core as core:
            return _dlpack.export(core, self._ptr, versioned, bool(copy))


def _nested(items, shape):
    if len(shape) == 1:
        return items
    step = math.prod(shape[1:])
    return [_nested(items[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def interface(view, read_only):
    """The array interface of NumPy, version 3, of a WeftArray."""
    dtype = BY_NUMBER[view.dtype]
    kind = {"b": "b", "u": "u", "i": "i", "f": "f", "c": "c"}[dtype.name[0]]
    shape = tuple(view.shape[:view.rank])
    return {"version": 3, "typestr": ("|" if dtype.bytes == 1 else "<") + kind + str(dtype.bytes), "shape": shape,
            "strides": tuple(s * dtype.bytes for s in view.strides[:view.rank]) if view.size else None,
            "data": (view.data or 0, read_only)}


class Memory:
    """What a NumPy array made of a result stands on: it holds the value. Nobody else can reach it, so where the
    program does not hold the data either, NumPy may write there."""

    __slots__ = ("_core", "_ptr", "__array_interface__")

    def __init__(self, core, ptr, read_only=False):
        self._core, self._ptr = core, ptr
        view = ArrayView()
        with core:
            if quick.weft_array_view(core.vm, ptr, byref(view)) != OK:
                raise BufferError("the array is on a device")
            read_only = read_only or not quick.weft_array_unshared(core.vm, ptr)
        self.__array_interface__ = interface(view, read_only)

    def __del__(self):
        core = getattr(self, "_core", None)
        if core is not None:
            core.drop(self._ptr)


def scalar(core, ptr, dtype):
    """The element of a number of that dtype."""
    as_read = BY_NAME[dtype.copy]
    data = (c_char * as_read.bytes)()
    if quick.weft_array_copy_out(core.vm, ptr, as_read.number, data, as_read.bytes) != OK:
        raise core.error()
    if as_read.name == "c128":
        return complex(*memoryview(data).cast("B").cast("d"))
    return memoryview(data).cast("B").cast(as_read.buffer)[0]
