# _dlpack.py — DLPack between Python objects: capsules around the tensors that the library takes and gives.
import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_void_p, cast, py_object

from ._library import OK, Managed, ManagedVersioned, quick

_api = ctypes.pythonapi
_DESTRUCTOR = CFUNCTYPE(None, c_void_p)


def _function(name, result, *arguments):  # of its own, so that another package's declaration does not matter
    return ctypes.PYFUNCTYPE(result, *arguments)((name, _api))


_new = _function("PyCapsule_New", py_object, c_void_p, c_char_p, _DESTRUCTOR)
_is = _function("PyCapsule_IsValid", c_int, py_object, c_char_p)
_pointer = _function("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_rename = _function("PyCapsule_SetName", c_int, py_object, c_char_p)
# The same for a capsule that is being freed: an object of Python must not be made of it.
_is_dying = _function("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_pointer_dying = _function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)

# Names must live as long as the capsules.
NEW, NEW_USED = b"dltensor_versioned", b"used_dltensor_versioned"
OLD, OLD_USED = b"dltensor", b"used_dltensor"


@_DESTRUCTOR
def _unused(capsule):
    """Nobody took the tensor: it is deleted with its capsule."""
    for name, struct in ((NEW, ManagedVersioned), (OLD, Managed)):
        if _is_dying(capsule, name):
            managed = cast(_pointer_dying(capsule, name), POINTER(struct))
            managed.contents.deleter(managed)


def export(core, ptr, versioned, copy):
    out = c_void_p()
    make = quick.weft_dlpack_export if versioned else quick.weft_dlpack_export_unversioned
    if make(core.vm, ptr, copy, byref(out)) != OK:
        raise BufferError(core.error().message)
    return _new(out, NEW if versioned else OLD, _unused)


def take(core, thing):
    """A value (its count is the caller's) that shows the memory of an object with __dlpack__."""
    device = getattr(thing, "__dlpack_device__", None)
    if device is not None and tuple(int(d) for d in device())[0] not in (1, 3):
        raise TypeError(f"{type(thing).__name__}: its data lies on a device: copy it to the processor first")
    try:
        capsule = thing.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = thing.__dlpack__()
    for name, used, read in ((NEW, NEW_USED, quick.weft_dlpack_import),
                             (OLD, OLD_USED, quick.weft_dlpack_import_unversioned)):
        if _is(capsule, name):
            out = c_void_p()
            if read(core.vm, _pointer(capsule, name), byref(out)) != OK:
                raise TypeError(f"{type(thing).__name__}: {core.error().message}")
            _rename(capsule, used)
            return out.value
    raise TypeError(f"{type(thing).__name__}: __dlpack__ gave no capsule of DLPack")
