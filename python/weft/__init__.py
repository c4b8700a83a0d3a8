# __init__.py — Weft in Python: array programs, interpreted, traced and compiled.
"""Weft in Python.

    >>> import weft
    >>> f = weft.compile("(x, y) => sqrt(x * x + y * y)")
    >>> f(3.0, 4.0)
    5.0

VM has the rest: programs, variables, limits. Arrays of NumPy, and of all that has __dlpack__ or the buffer protocol,
come and go without copies. One VM runs one program at a time: other threads wait for it, and Python goes on in them
meanwhile (the global lock is released). Ctrl-C in the main thread stops the program that it waits for.
"""
from ._errors import (Error, IndexError, Interrupted, KeyError, LimitError, NameError, NotImplementedError, OSError,
                      ProgramExit, SyntaxError, TypeError, ValueError)
from ._library import DTYPES as _dtypes
from ._library import VERSION as __version__
from ._library import DType
from ._module import Module
from ._values import Array, Function, Value
from ._vm import VM, compile, is_compiled

globals().update({_d.name: _d for _d in _dtypes if _d.name != "bool"})
bool_ = _dtypes[0]

__all__ = ["VM", "compile", "is_compiled", "Array", "Function", "Module", "Value", "DType", "Error", "SyntaxError",
           "LimitError", "Interrupted", "ProgramExit", "__version__"]


def load_ipython_extension(ipython):
    """%load_ext weft"""
    from .ipython import load_ipython_extension as load
    load(ipython)
