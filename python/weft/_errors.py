# _errors.py — what a program that fails raises in Python.
import builtins
from ctypes import byref, c_int

from ._library import LIMITS, quick


class Error(Exception):
    """An error of a Weft program.

    kind: "shape", "index", "limit", …; message: one line; line, column: from 1 on, 0 where unknown;
    text: the message with the source line, a caret under the place, and the calls that led there.
    """

    def __init__(self, message, kind="host", line=0, column=0, text=None):
        super().__init__(message)
        self.kind, self.message, self.line, self.column = kind, message, line, column
        self.text = text or message

    def __str__(self):
        return self.text.rstrip("\n")

    def __reduce__(self):
        return (_again, (type(self), self.message, self.kind, self.line, self.column, self.text, self.__dict__))


def _again(cls, message, kind, line, column, text, fields):
    error = cls(message, kind, line, column, text)
    error.__dict__.update(fields)
    return error


class SyntaxError(Error):
    """Error of kind "syntax": the program cannot be compiled."""


class LimitError(Error):
    """Something that the host allows is used up, or is not there; limit: "memory", "fuel", "files", …"""

    limit = None


class Interrupted(Error):
    """The program was stopped, by vm.interrupt() or a signal."""


class ProgramExit(Error):
    """The program ended itself by exit(code)."""

    code = 0


class TypeError(Error, builtins.TypeError):
    """Error of kind "type", which `except TypeError` catches too."""


class ValueError(Error, builtins.ValueError):
    """Error of kind "value" or "shape"."""


class IndexError(Error, builtins.IndexError):
    """Error of kind "index"."""


class KeyError(Error, builtins.KeyError):
    """Error of kind "key"."""


class NameError(Error, builtins.NameError):
    """Error of kind "name": a variable that is not declared."""


class NotImplementedError(Error, builtins.NotImplementedError):
    """Error of kind "unsupported"."""


class OSError(Error, builtins.OSError):
    """Error of kind "io"."""


_classes = {"syntax": SyntaxError, "type": TypeError, "value": ValueError, "shape": ValueError,
            "index": IndexError, "key": KeyError, "name": NameError, "unsupported": NotImplementedError,
            "io": OSError, "limit": LimitError, "interrupt": Interrupted}
for _c in {*_classes.values(), Error, ProgramExit}:
    _c.__module__ = "weft"

# How an exception of a Python function looks to the program that called it: `catch e`, e.kind.
_kinds = ((builtins.TypeError, "type"), (builtins.IndexError, "index"), (builtins.KeyError, "key"),
          (builtins.ValueError, "value"), (builtins.NotImplementedError, "unsupported"), (builtins.OSError, "io"))


def kind_of(exception):
    if isinstance(exception, Error):
        return exception.kind
    for cls, kind in _kinds:
        if isinstance(exception, cls):
            return kind
    return "host"


def current(vm):
    """The error that stands in the VM, as an exception."""
    message = (quick.weft_error_message(vm) or b"").decode()
    text = (quick.weft_error_text(vm) or b"").decode()
    kind = (quick.weft_error_kind(vm) or b"").decode()
    line, column = c_int(), c_int()
    quick.weft_error_position(vm, byref(line), byref(column))
    number = quick.weft_error_limit(vm)
    limit = LIMITS[number] if 0 <= number < len(LIMITS) else None
    if limit == "exit":
        error = ProgramExit(message, kind, line.value, column.value, text)
        error.code = quick.weft_exit_code(vm)
        return error
    error = _classes.get(kind, Error)(message or "the library was misused", kind, line.value, column.value, text)
    if isinstance(error, LimitError):
        error.limit = limit
    return error
