# _buffer.py — memory of objects with the buffer protocol (NumPy arrays, memoryview, array.array), as Weft sees it.
import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_ssize_t, c_void_p, py_object

from ._library import MAX_RANK, ArrayView, DTYPES

_WRITABLE, _RECORDS_RO = 0x1, 0x1c  # PyBUF_WRITABLE; PyBUF_STRIDES | PyBUF_FORMAT


class _Buffer(Structure):  # Py_buffer
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", POINTER(c_ssize_t)),
                ("strides", POINTER(c_ssize_t)), ("suboffsets", c_void_p), ("internal", c_void_p)]


_get = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(_Buffer), c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_release = ctypes.PYFUNCTYPE(None, POINTER(_Buffer))(("PyBuffer_Release", ctypes.pythonapi))

_kinds = {"?": "b"}
_kinds.update(dict.fromkeys("bhilqn", "i"))
_kinds.update(dict.fromkeys("BHILQN", "u"))
_kinds.update(dict.fromkeys(("e", "f", "d"), "f"))
_kinds.update(dict.fromkeys(("Zf", "Zd"), "c"))
_names = {("b", 1): "bool", ("u", 1): "u8", ("i", 4): "i32", ("i", 8): "i64", ("u", 4): "u32", ("u", 8): "u64",
          ("f", 2): "f16", ("f", 4): "f32", ("f", 8): "f64", ("c", 8): "c64", ("c", 16): "c128"}
_dtypes = {key: next(d for d in DTYPES if d.name == name) for key, name in _names.items()}


def what_is(thing):
    dtype = getattr(thing, "dtype", None)
    name = type(thing).__name__
    return name if dtype is None or str(dtype) == name else f"{name} of dtype {dtype}"


class Memory:
    """The memory of `thing`, held until release(): `thing` cannot move it meanwhile. None without the protocol."""

    __slots__ = ("buffer", "dtype", "shape", "strides", "data", "dense")

    @classmethod
    def of(cls, thing, writable=False):
        self = object.__new__(cls)
        self.buffer = _Buffer()
        try:
            _get(thing, byref(self.buffer), _RECORDS_RO | (_WRITABLE if writable else 0))
        except TypeError:
            return None  # it has not got the protocol
        except (BufferError, ValueError) as error:  # NumPy says so of dates, and of what is read only
            if writable:
                raise ValueError(f"out: {what_is(thing)} cannot be written into: {error}") from None
            return None
        try:
            self._read(thing)
        except BaseException:
            self.release()
            raise
        return self

    def _read(self, thing):
        view = self.buffer
        code = (view.format or b"B").decode()
        order = code[0] if code[0] in "@=<>!" else "@"
        if order in ">!" and sys.byteorder == "little" and view.itemsize > 1:
            raise TypeError(f"{what_is(thing)}: the bytes of its numbers are swapped: "
                            "x.astype(x.dtype.newbyteorder('='))")
        self.dtype = _dtypes.get((_kinds.get(code.lstrip("@=<>!")), view.itemsize))
        if self.dtype is None:
            raise TypeError(f"{what_is(thing)} is not supported: Weft has bool, u8, i32, i64, u32, u64, f16, bf16, "
                            "f32, f64, c64, c128; x.astype(…) converts")
        if view.ndim > MAX_RANK:
            raise TypeError(f"{what_is(thing)} of rank {view.ndim}: the highest is {MAX_RANK}")
        size, rank = view.itemsize, view.ndim
        unit = min(size, 8)
        self.shape = (c_int64 * rank)(*view.shape[:rank])
        strides = view.strides[:rank]
        empty = 0 in self.shape
        if not empty and ((view.buf or 0) % unit or any(s % size for s in strides)):
            raise TypeError(f"{what_is(thing)} is not aligned to its elements: numpy.ascontiguousarray(x)")
        self.strides = (c_int64 * rank)(*((0,) * rank if empty else (s // size for s in strides)))
        self.data = view.buf
        want, self.dense = size, True
        for d in reversed(range(rank)):
            self.dense &= strides[d] == want or self.shape[d] <= 1
            want *= self.shape[d]

    def view(self):
        view = ArrayView(dtype=self.dtype.number, rank=len(self.shape), data=self.data)
        view.shape[:len(self.shape)] = self.shape[:]
        view.strides[:len(self.shape)] = self.strides[:]
        return view

    def release(self):
        if self.buffer is not None:
            _release(byref(self.buffer))
            self.buffer = None
