# kernel.py — Weft as a language of Jupyter notebooks: python -m weft.kernel install.
"""python -m weft.kernel install [--user | --sys-prefix | --prefix DIR]    makes Weft known to Jupyter
python -m weft.kernel -f FILE                                           what Jupyter runs then

A kernel may use files, the environment and imports, as the program `weft` may.
"""
import json
import os
import sys
import tempfile
from ctypes import byref, c_char_p, c_void_p

from . import __version__
from ._errors import Error
from ._library import INCOMPLETE, OK, quick, runs
from ._vm import VM

try:
    from ipykernel.kernelbase import Kernel
except ImportError as error:
    raise ImportError(f"weft.kernel needs ipykernel: pip install ipykernel ({error})") from None

_WHOLE, _DECLARES, _UNFINISHED, _COMMAND = range(4)  # WeftInput
_DONE, _FAILED, _HELP, _QUIT, _UNKNOWN = range(5)    # WeftCommandEnd


class WeftKernel(Kernel):
    implementation = "weft"
    implementation_version = __version__
    language = "weft"
    language_version = __version__
    language_info = {"name": "weft", "mimetype": "text/x-weft", "file_extension": ".weft"}
    banner = f"Weft {__version__}"

    def __init__(self, **given):
        super().__init__(**given)
        self.silent = False
        self.heard = None  # a list that gets what is printed
        self.vm = VM(files=True, env=True, imports=True, output=self._print, input=self._read, arrays="weft")
        self.core = self.vm._core
        self.svg = None

    def _print(self, text):
        if self.heard is not None:
            self.heard.append(text)
        elif not self.silent:
            self.send_response(self.iopub_socket, "stream", {"name": "stdout", "text": text})

    def _read(self):
        return self.raw_input("") + "\n"

    # ---- run ------------------------------------------------------------------------------------------------

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self.silent = silent
        self._allow_stdin = allow_stdin  # raw_input asks it
        try:
            shown = self._run(code)
        except Error as error:
            return self._failed(error.kind, error.message, str(error))
        except KeyboardInterrupt:
            return self._failed("KeyboardInterrupt", "", "interrupted")
        if shown and not silent:
            self.send_response(self.iopub_socket, "execute_result", {
                "execution_count": self.execution_count, "data": shown, "metadata": {}})
        return {"status": "ok", "execution_count": self.execution_count, "payload": [],
                "user_expressions": {name: {} for name in user_expressions or ()}}

    def _failed(self, name, value, text):
        content = {"ename": name, "evalue": value, "traceback": text.split("\n")}
        if not self.silent:
            self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def _run(self, code):
        """What is shown of an input, by MIME type."""
        text = code.strip().encode()
        if not text:
            return None
        with self.core as core:
            kind = quick.weft_input(core.vm, text)
            if kind == _COMMAND:
                return self._command(text)
            value = core.run(runs.weft_eval_line, code.encode(), b"<cell>", line=kind == _UNFINISHED)
            if value is INCOMPLETE:
                raise Error("the input ends inside a construct", "syntax")
            if value is None:
                return None
            try:
                return None if kind == _DECLARES else self._shown(value)
            finally:
                core.garbage.append(value)

    def _command(self, text):
        shown = c_char_p()
        end = runs.weft_command(self.core.vm, text, byref(shown))
        if end == _FAILED:
            raise self.core.error()
        if end == _UNKNOWN:
            raise Error(f"no command: {text.decode()}", "syntax")
        if end == _QUIT:
            raise Error("a notebook ends by its menu: shut the kernel down", "unsupported")
        return {"text/plain": shown.value.decode().rstrip("\n")} if shown.value else None

    def _shown(self, value):
        vm = self.core.vm
        drawn = runs.weft_display(vm, value).decode().rstrip("\n")
        if not drawn:
            return None
        data = {"text/plain": drawn}
        if quick.weft_type(vm, value) == b"record" and "\n" in drawn:  # a plot: its drawing, not its literal
            svg = self._svg_of(value)
            if svg:
                data["image/svg+xml"] = svg
        return data

    def _svg_of(self, value):
        core = self.core
        if self.svg is None:
            self.svg = VM.eval(self.vm, "plot.svg")
        arguments = (c_void_p * 1)(value)
        out = c_void_p()
        if runs.weft_call_named(core.vm, self.svg._ptr, arguments, 1, None, 0, byref(out)) != OK:
            return None
        text = core.to_python(out.value)
        return text if isinstance(text, str) else None

    # ---- help of the editor -------------------------------------------------------------------------------------

    def do_complete(self, code, cursor_pos):
        start_of_line = code.rfind("\n", 0, cursor_pos) + 1
        start, words = self.vm.complete(code[start_of_line:cursor_pos])
        return {"status": "ok", "matches": words, "cursor_start": start_of_line + start, "cursor_end": cursor_pos,
                "metadata": {}}

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        def named(c):
            return c.isalnum() or c in "_."
        start = end = cursor_pos
        while start and named(code[start - 1]):
            start -= 1
        while end < len(code) and named(code[end]):
            end += 1
        name = code[start:end].strip(".")
        found = {"status": "ok", "found": False, "data": {}, "metadata": {}}
        if not name or name[0].isdigit():
            return found
        self.heard = []
        try:
            with self.core as core:
                if runs.weft_command(core.vm, b"?" + name.encode(), None) == _DONE and self.heard:
                    found.update(found=True, data={"text/plain": "".join(self.heard).rstrip("\n")})
        finally:
            self.heard = None
        return found

    def do_is_complete(self, code):
        with self.core as core:
            kind = quick.weft_input(core.vm, code.encode())
        return {"status": "incomplete", "indent": "  "} if kind == _UNFINISHED else {"status": "complete"}

    def do_shutdown(self, restart):
        self.vm.close()
        return {"status": "ok", "restart": restart}


def install(arguments):
    import argparse
    from jupyter_client.kernelspec import KernelSpecManager
    parser = argparse.ArgumentParser(prog="python -m weft.kernel install")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (the default)")
    where.add_argument("--sys-prefix", action="store_true", help="for this environment of Python")
    where.add_argument("--prefix", help="below this folder")
    given = parser.parse_args(arguments)
    prefix = sys.prefix if given.sys_prefix else given.prefix
    spec = {"argv": [sys.executable, "-m", "weft.kernel", "-f", "{connection_file}"], "display_name": "Weft",
            "language": "weft", "interrupt_mode": "signal"}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)
        print(KernelSpecManager().install_kernel_spec(folder, "weft", user=prefix is None, prefix=prefix))


def main():
    if sys.argv[1:2] == ["install"]:
        install(sys.argv[2:])
    elif sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__, end="")
    else:
        from ipykernel.kernelapp import IPKernelApp
        IPKernelApp.launch_instance(kernel_class=WeftKernel)


if __name__ == "__main__":
    main()
