# ipython.py — %weft and %%weft in IPython and Jupyter: %load_ext weft.
import argparse
import shlex
import sys

from ._errors import Error
from ._vm import VM

_options = argparse.ArgumentParser(prog="%%weft", add_help=False, exit_on_error=False)
_options.add_argument("-i", "--input", default="", help="variables of Python, between commas, that the program gets")
_options.add_argument("-o", "--output", default="", help="variables of the program that Python gets")


def _names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def load_ipython_extension(ipython):
    """%weft EXPRESSION gives its value; %%weft -i x,y -o z runs the cell."""
    vm = VM(files=True, env=True, imports=True)

    def weft(line, cell=None):
        try:
            if cell is None:
                return vm.eval(line, "%weft")
            try:
                given, rest = _options.parse_known_args(shlex.split(line))
            except (argparse.ArgumentError, ValueError) as error:
                raise ValueError(f"%%weft: {error}") from None
            if rest:
                raise ValueError(f"%%weft: unknown: {' '.join(rest)} (-i NAMES, -o NAMES)")
            for name in _names(given.input):
                if name not in ipython.user_ns:
                    raise NameError(f"%%weft -i: Python has no variable {name}")
                vm[name] = ipython.user_ns[name]
            value = vm.eval(cell, "%%weft")
            for name in _names(given.output):
                ipython.user_ns[name] = vm[name]
            return value
        except Error as error:  # the program's text and place, without Python's frames
            print(error, file=sys.stderr)
            return None
    weft.__doc__ = load_ipython_extension.__doc__
    ipython.register_magic_function(weft, "line_cell", "weft")
    ipython.user_ns.setdefault("weft_vm", vm)
