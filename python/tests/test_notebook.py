# test_notebook.py — Weft in notebooks: the kernel by nbclient, the magics by IPython.
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = subprocess.run([sys.executable, "-m", "weft.kernel", "install", "--prefix", cls.folder.name],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        os.environ["JUPYTER_PATH"] = os.path.join(cls.folder.name, "share", "jupyter")
        assert "weft" in KernelSpecManager().find_kernel_specs(), done.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_cells(self, *cells, **options):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        client = NotebookClient(notebook, kernel_name="weft", timeout=60, **options)
        try:
            client.execute()
        finally:
            self.outputs = [c.outputs for c in notebook.cells]
        return self.outputs

    def test_cells(self):
        out = self.run_cells("let x = arange(4)", "x * 2", 'print("hello", sum(x))', "fn f(n) = n + 1", "f(3)", "?sum",
                             "nil", "let y = 1; y + 1", "", "z = 3\nz")
        self.assertEqual(out[0], [])
        self.assertEqual(out[1][0]["data"]["text/plain"], "i64 (4,)  [0, 2, 4, 6]")
        self.assertEqual((out[2][0]["name"], out[2][0]["text"]), ("stdout", "hello 6\n"))
        self.assertEqual(out[3], [])
        self.assertEqual(out[4][0]["data"]["text/plain"], "4")
        self.assertIn("sum of elements", out[5][0]["text"])
        self.assertEqual(out[6], [])
        self.assertEqual(out[7][0]["data"]["text/plain"], "2")
        self.assertEqual(out[9][0]["data"]["text/plain"], "3")

    def test_plots_are_drawn(self):
        data = self.run_cells("plot.line([1.0, 3.0, 2.0], title=\"t\")")[0][0]["data"]
        self.assertTrue(data["image/svg+xml"].startswith("<svg"))
        self.assertIn("\n", data["text/plain"])

    def test_errors(self):
        for cell, name, text in (("[1, 2][5]", "index", "out of"), ("let = 2", "syntax", "let"),
                                 ("fn f(", "syntax", ""),
                                 ("?nope", "name", "nope"), ("quit", "unsupported", "shut the kernel down")):
            with self.subTest(cell), self.assertRaises(CellExecutionError) as caught:
                self.run_cells(cell)
            self.assertEqual(caught.exception.ename, name)
            self.assertIn(text, "\n".join(self.outputs[0][0]["traceback"]))

    def test_editor_and_interrupt(self):
        manager = KernelManager(kernel_name="weft")
        manager.start_kernel()
        self.addCleanup(manager.shutdown_kernel, now=True)
        client = manager.client()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        client.wait_for_ready(timeout=60)
        reply = client.complete("let a = 1\nlinalg.sv", reply=True, timeout=30)["content"]
        self.assertEqual((reply["matches"], reply["cursor_start"], reply["cursor_end"]), (["svd", "svdvals"], 17, 19))
        reply = client.inspect("1 + cumsum(x)", 7, reply=True, timeout=30)["content"]
        self.assertTrue(reply["found"])
        self.assertIn("cumsum", reply["data"]["text/plain"])
        self.assertFalse(client.inspect("no_such", 3, reply=True, timeout=30)["content"]["found"])
        for code, status in (("fn f(x) {", "incomplete"), ("1 + 1", "complete")):
            client.is_complete(code)
            self.assertEqual(client.get_shell_msg(timeout=30)["content"]["status"], status)
        timer = threading.Timer(1.0, manager.interrupt_kernel)
        timer.start()
        start = time.monotonic()
        # Without stop_on_error=False the kernel drops what comes in the moment behind an error.
        endless = "let i = 0\nwhile true { i += 1 }"
        reply = client.execute(endless, stop_on_error=False, reply=True, timeout=60)["content"]
        self.assertEqual((reply["status"], reply["ename"]), ("error", "KeyboardInterrupt"))
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(client.execute("i > 0", reply=True, timeout=30)["content"]["status"], "ok")

    def test_input(self):
        manager = KernelManager(kernel_name="weft")
        manager.start_kernel()
        self.addCleanup(manager.shutdown_kernel, now=True)
        client = manager.client()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        client.wait_for_ready(timeout=60)
        shown = []

        def show(message):
            if message["msg_type"] == "execute_result":
                shown.append(message["content"]["data"]["text/plain"])
        client.execute_interactive("read_line()", timeout=60, allow_stdin=True, output_hook=show,
                                   stdin_hook=lambda _: client.input("typed"))
        self.assertEqual(shown, ['"typed"'])

    def test_other_arguments(self):
        for arguments, status, text in ((["--help"], 0, "install"), (["install", "--nope"], 2, "unrecognized")):
            done = subprocess.run([sys.executable, "-m", "weft.kernel", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, status)
            self.assertIn(text, done.stdout + done.stderr)


class Magics(unittest.TestCase):
    def test_magics(self):
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "weft")
        self.assertEqual(shell.run_line_magic("weft", "1 + 2"), 3)
        shell.user_ns["a"] = [1, 2]
        self.assertEqual(shell.run_cell_magic("weft", "-i a -o b", "let b = len(a)\nb * 10"), 20)
        self.assertEqual(shell.user_ns["b"], 2)
        with self.assertRaisesRegex(NameError, "no variable nope"):
            shell.run_cell_magic("weft", "-i nope", "1")
        with self.assertRaisesRegex(ValueError, "unknown: -x"):
            shell.run_cell_magic("weft", "-x", "1")
        self.assertIsNone(shell.run_cell_magic("weft", "", "[1][4]"))


if __name__ == "__main__":
    unittest.main()
