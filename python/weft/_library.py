# _library.py — the shared library: where it lies, and its functions as weft.h declares them.
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_ssize_t, c_uint, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)

OK, ERROR, INCOMPLETE, MISUSE, SUSPENDED = 0, 1, 2, 3, 4  # WeftStatus
MAX_RANK = 16

# WeftLimit; the numbers are those of weft.h
LIMITS = (None, "memory", "fuel", "deadline", "interrupt", "exit", "depth", "stack", "output", "files", "env",
          "imports", "gpu", "input")


class DType:
    """A dtype of Weft: its name, its bytes, and what other libraries call it."""

    __slots__ = ("name", "number", "bytes", "numpy", "buffer", "copy")

    def __init__(self, name, number, size, numpy, buffer, copy):
        self.name, self.number, self.bytes, self.numpy = name, number, size, numpy
        self.buffer = buffer  # the native format of memoryview, or None
        self.copy = copy      # the dtype by which tolist() reads it

    def __repr__(self):
        return "weft." + self.name

    def __str__(self):
        return self.name

    def __eq__(self, other):
        return other is self or (isinstance(other, str) and other in (self.name, self.numpy))

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return (dtype_named, (self.name,))


DTYPES = tuple(DType(*row) for row in (
    ("bool", 1, 1, "bool", "?", "bool"), ("u8", 2, 1, "uint8", "B", "u8"), ("i32", 3, 4, "int32", "i", "i32"),
    ("i64", 4, 8, "int64", "q", "i64"), ("u32", 5, 4, "uint32", "I", "u32"), ("u64", 6, 8, "uint64", "Q", "u64"),
    ("f16", 7, 2, "float16", None, "f64"), ("bf16", 8, 2, None, None, "f64"), ("f32", 9, 4, "float32", "f", "f64"),
    ("f64", 10, 8, "float64", "d", "f64"), ("c64", 11, 8, "complex64", None, "c128"),
    ("c128", 12, 16, "complex128", None, "c128")))
BY_NAME = {d.name: d for d in DTYPES}
BY_NUMBER = {d.number: d for d in DTYPES}
BY_NUMPY = {d.numpy: d for d in DTYPES if d.numpy}


def dtype_named(name):
    return BY_NAME[name]


OUTPUT = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
INPUT = CFUNCTYPE(c_ssize_t, c_void_p, c_void_p, c_size_t)
RESOLVE = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
HOST_FUNCTION = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p))
RELEASE_DATA = CFUNCTYPE(None, c_void_p, c_void_p)
RELEASE = CFUNCTYPE(None, c_void_p)


class Options(Structure):  # WeftOptions
    _fields_ = [
        ("size", c_size_t), ("resize", c_void_p), ("resize_context", c_void_p), ("output", OUTPUT),
        ("output_context", c_void_p), ("resolve_module", RESOLVE), ("resolve_context", c_void_p),
        ("memory", c_uint64), ("fuel", c_uint64), ("deadline", c_double), ("depth", c_uint32),
        ("output_limit", c_uint64), ("allow_files", c_bool), ("allow_env", c_bool), ("allow_imports", c_bool),
        ("allow_gpu", c_bool), ("backend", c_char_p), ("hot", c_int), ("force", c_char_p), ("cpu", c_char_p),
        ("cuda_driver", c_char_p), ("keep", c_uint64), ("threads", c_uint32), ("backends", c_void_p),
        ("backend_count", c_size_t), ("own_device", c_void_p), ("device", c_char_p), ("stack", c_size_t),
        ("log", c_char_p), ("log_output", OUTPUT), ("log_context", c_void_p), ("ignore_clock", c_bool),
        ("explain", c_bool), ("input", INPUT), ("input_context", c_void_p), ("draws", c_bool),
        ("files", c_void_p), ("gpu_cache", c_char_p)]


class ArrayView(Structure):  # WeftArray
    _fields_ = [("dtype", c_int), ("rank", c_int), ("shape", c_int64 * MAX_RANK), ("strides", c_int64 * MAX_RANK),
                ("size", c_int64), ("data", c_void_p)]


class Completion(Structure):  # WeftCompletion
    _fields_ = [("size", c_size_t), ("start", c_size_t), ("files", c_bool), ("blank", c_bool), ("count", c_size_t),
                ("words", POINTER(c_char_p)), ("notes", POINTER(c_char_p))]


class Tensor(Structure):  # DLTensor of DLPack 1.0
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device", c_int32), ("rank", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("offset", c_uint64)]


class Managed(Structure):  # DLManagedTensor
    pass


class ManagedVersioned(Structure):  # DLManagedTensorVersioned
    pass


Managed._fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", CFUNCTYPE(None, POINTER(Managed)))]
ManagedVersioned._fields_ = [
    ("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p),
    ("deleter", CFUNCTYPE(None, POINTER(ManagedVersioned))), ("flags", c_uint64), ("tensor", Tensor)]


def _find():
    given = os.environ.get("WEFT_LIBRARY")
    path = given or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libweft.so")
    if not os.path.exists(path):
        why = "WEFT_LIBRARY names it" if given else "the wheel has it: `make`, then `pip install ./python`"
        raise ImportError(f"weft: the shared library is not at {path} ({why})")
    return path


def _declare(library, names):
    for name, (result, *arguments) in names.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"weft: {PATH} has no {name}: it is of another version than this package") from None
        function.restype, function.argtypes = result, arguments


PATH = _find()
_out = POINTER(c_void_p)
_i64s = POINTER(c_int64)
try:
    # What runs programs lets other Python threads run meanwhile; the rest is shorter than handing the lock over.
    runs = ctypes.CDLL(PATH)
    quick = ctypes.PyDLL(PATH)
except OSError as error:
    raise ImportError(f"weft: the shared library cannot be loaded: {error}") from None

_declare(runs, {
    "weft_open": (c_int, POINTER(Options), _out, c_char_p, c_size_t),
    "weft_free": (None, c_void_p),
    "weft_eval_length": (c_int, c_void_p, c_char_p, c_size_t, c_char_p, _out),
    "weft_eval_line": (c_int, c_void_p, c_char_p, c_char_p, _out),
    "weft_load_file": (c_int, c_void_p, c_char_p, _out),
    "weft_load_text": (c_int, c_void_p, c_char_p, c_size_t, c_char_p, _out),
    "weft_compile": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, c_char_p, c_uint, _out, POINTER(c_size_t)),
    "weft_load_compiled": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, c_char_p, _out),
    "weft_module_run": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, c_char_p, _out),
    "weft_resume": (c_int, c_void_p, c_void_p, _out),
    "weft_resume_failed": (c_int, c_void_p, c_char_p, c_char_p, _out),
    "weft_cancel": (c_int, c_void_p),
    "weft_collect": (c_size_t, c_void_p),
    "weft_function_described": (c_int, c_void_p, c_char_p, c_char_p, HOST_FUNCTION, c_void_p, RELEASE, _out),
    "weft_call_named": (c_int, c_void_p, c_void_p, _out, c_size_t, POINTER(c_char_p), c_size_t, _out),
    "weft_command": (c_int, c_void_p, c_char_p, POINTER(c_char_p)),
    "weft_show": (c_char_p, c_void_p, c_void_p),
    "weft_display": (c_char_p, c_void_p, c_void_p),
    "weft_dump": (c_char_p, c_void_p, c_void_p, c_char_p),
    "weft_array_copy_into": (c_int, c_void_p, c_void_p, POINTER(ArrayView)),
})
_declare(quick, {
    "weft_version": (c_char_p,),
    "weft_files_free": (None, c_void_p),
    "weft_interrupt": (None, c_void_p),
    "weft_interrupt_forget": (None, c_void_p),
    "weft_set_limits": (None, c_void_p, c_uint64, c_uint64, c_double),
    "weft_memory_left": (c_uint64, c_void_p),
    "weft_fuel_left": (c_uint64, c_void_p),
    "weft_time_left": (c_double, c_void_p),
    "weft_set_device": (c_int, c_void_p, c_char_p),
    "weft_exit_code": (c_int, c_void_p),
    "weft_is_compiled": (c_bool, c_char_p, c_size_t),
    "weft_is_suspended": (c_bool, c_void_p),
    "weft_define_suspending": (c_int, c_void_p, c_void_p, c_char_p, HOST_FUNCTION, c_void_p, RELEASE),
    "weft_module_new": (c_int, c_void_p, c_char_p, _out),
    "weft_module_free": (c_int, c_void_p, c_void_p),
    "weft_module_get": (c_int, c_void_p, c_void_p, c_char_p, _out),
    "weft_module_set": (c_int, c_void_p, c_void_p, c_char_p, c_void_p),
    "weft_format": (c_int, c_void_p, c_char_p, c_size_t, c_char_p, POINTER(c_char_p)),
    "weft_get_global": (c_int, c_void_p, c_char_p, _out),
    "weft_set_global": (c_int, c_void_p, c_char_p, c_void_p),
    "weft_input": (c_int, c_void_p, c_char_p),
    "weft_complete": (c_int, c_void_p, c_char_p, c_size_t, POINTER(Completion)),
    "weft_error_text": (c_char_p, c_void_p),
    "weft_error_message": (c_char_p, c_void_p),
    "weft_error_kind": (c_char_p, c_void_p),
    "weft_error_limit": (c_int, c_void_p),
    "weft_error_position": (None, c_void_p, POINTER(c_int), POINTER(c_int)),
    "weft_retain": (c_void_p, c_void_p, c_void_p),
    "weft_release": (None, c_void_p, c_void_p),
    "weft_describe": (c_char_p, c_void_p, c_void_p),
    "weft_type": (c_char_p, c_void_p, c_void_p),
    "weft_nil": (c_int, c_void_p, _out),
    "weft_bool": (c_int, c_void_p, c_bool, _out),
    "weft_weak_int": (c_int, c_void_p, c_int64, _out),
    "weft_weak_float": (c_int, c_void_p, c_double, _out),
    "weft_weak_complex": (c_int, c_void_p, c_double, c_double, _out),
    "weft_text": (c_int, c_void_p, c_char_p, c_size_t, _out),
    "weft_list": (c_int, c_void_p, _out, c_size_t, _out),
    "weft_record": (c_int, c_void_p, POINTER(c_char_p), _out, c_size_t, _out),
    "weft_as_text": (c_int, c_void_p, c_void_p, _out, POINTER(c_size_t)),
    "weft_length": (c_int, c_void_p, c_void_p, POINTER(c_size_t)),
    "weft_item": (c_int, c_void_p, c_void_p, c_size_t, _out),
    "weft_key": (c_int, c_void_p, c_void_p, c_size_t, POINTER(c_char_p)),
    "weft_array": (c_int, c_void_p, c_int, c_int, _i64s, c_void_p, _out),
    "weft_array_lend_strided": (c_int, c_void_p, c_int, c_int, _i64s, _i64s, c_void_p, RELEASE_DATA, c_void_p, _out),
    "weft_array_view": (c_int, c_void_p, c_void_p, POINTER(ArrayView)),
    "weft_array_unshared": (c_bool, c_void_p, c_void_p),
    "weft_array_copy_out": (c_int, c_void_p, c_void_p, c_int, c_void_p, c_size_t),
    "weft_dlpack_import": (c_int, c_void_p, c_void_p, _out),
    "weft_dlpack_import_unversioned": (c_int, c_void_p, c_void_p, _out),
    "weft_dlpack_export": (c_int, c_void_p, c_void_p, c_bool, _out),
    "weft_dlpack_export_unversioned": (c_int, c_void_p, c_void_p, c_bool, _out),
    "weft_function": (c_int, c_void_p, c_char_p, HOST_FUNCTION, c_void_p, RELEASE, _out),
    "weft_fail": (c_int, c_void_p, c_char_p, c_char_p),
    "weft_stat_at": (c_char_p, c_void_p, c_uint, POINTER(c_double)),
})
# With use_errno: it says why a folder cannot be opened.
below = ctypes.CDLL(PATH, use_errno=True).weft_files_below
below.restype, below.argtypes = c_int, (c_char_p, _out)
VERSION = quick.weft_version().decode()
