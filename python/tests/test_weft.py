# test_weft.py — the package weft, with and without NumPy.
import array
import ast
import asyncio
import copy
import gc
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import weft

try:
    import numpy as np
except ImportError:
    np = None

LOOP = "let i = 0\nwhile true { i += 1 }"


def needs_numpy(test):
    return unittest.skipIf(np is None, "NumPy is not installed")(test)


class Programs(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()

    def test_plain_values_go_both_ways(self):
        same = self.vm.eval("x => x")
        for x in (None, True, False, 3, -2**63, 2.5, 1 + 2j, "", "größer \U0001f600", [], [1, "a", None],
                  {"a": 1, "b": [{"c": "d"}]}, {}):
            y = same(x)
            self.assertEqual(y, x)
            self.assertIs(type(y), type(x))
        self.assertEqual(same((1, 2)), [1, 2])

    def test_last_statement_is_the_value(self):
        self.assertEqual(self.vm.eval("let a = 1\na + 2"), 3)
        self.assertIsNone(self.vm.eval("nil"))
        self.assertIsNone(self.vm.eval(""))

    def test_variables(self):
        self.vm["x"] = [1, 2]
        self.assertEqual(self.vm["x"], [1, 2])
        self.assertEqual(self.vm.eval("x[1]"), 2)
        self.assertIn("x", self.vm)
        self.assertNotIn("y", self.vm)
        with self.assertRaisesRegex(NameError, "y is not declared"):
            self.vm["y"]
        with self.assertRaisesRegex(ValueError, "'a b' is no name"):
            self.vm["a b"] = 1
        with self.assertRaisesRegex(TypeError, "name of a variable is a text, got int"):
            self.vm[3]
        with self.assertRaisesRegex(AttributeError, r"variable of its program is vm\['x'\]"):
            self.vm.x

    def test_functions_take_names(self):
        f = self.vm.eval("fn f(a, b=2, ...rest, key=0) = (a, b, rest, key)\nf")
        self.assertEqual(f(1, key=9), [1, 2, [], 9])
        self.assertEqual(f(b=5, a=4), [4, 5, [], 0])
        self.assertEqual(f(1, 2, 3, 4), [1, 2, [3, 4], 0])
        with self.assertRaisesRegex(weft.Error, "kee"):
            f(1, kee=2)
        self.assertRegex(repr(f), "weft.*f")

    def test_compile(self):
        f = weft.compile("(x, y) => sqrt(x * x + y * y)")
        self.assertEqual(f(3.0, 4.0), 5.0)
        self.assertEqual(weft.compile("fn g(x) = x + 1", memory=1 << 28)(2), 3)
        with self.assertRaisesRegex(TypeError, "must end with a function, not int"):
            weft.compile("3")
        with self.assertRaises(weft.SyntaxError) as caught:
            weft.compile("let = 3")
        self.assertEqual((caught.exception.line, caught.exception.column), (1, 5))

    def test_values_that_stay(self):
        r = self.vm.eval("ref(3)")
        self.assertEqual((type(r), r.type), (weft.Value, "ref"))
        self.assertEqual(self.vm.eval("r => r.value + 1")(r), 4)
        self.assertIs(self.vm.eval("f32"), weft.f32)
        self.assertEqual(self.vm.eval("(d, x) => array(x, dtype=d).dtype")(weft.f16, 1), weft.f16)
        with self.assertRaisesRegex(TypeError, "made by a VM"):
            weft.Value()

    def test_what_no_program_can_have(self):
        f = self.vm.eval("x => x")
        for x, why in ((object(), "object is nothing that a program can have"), (b"ab", "decode"),
                       ({1: 2}, "names as keys, got 1"), (2**70, "beyond i64"), ("\ud800", "UTF-8"), ({1}, "set")):
            with self.assertRaisesRegex((TypeError, OverflowError, ValueError), why):
                f(x)
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(ValueError, "nested too deep"):
            f(endless)
        with self.assertRaisesRegex(TypeError, "source text is wanted, got int"):
            self.vm.eval(3)
        with self.assertRaisesRegex(TypeError, "the name of a source is a text"):
            self.vm.eval("1", 3)
        with self.assertRaisesRegex(TypeError, "Weft has no dtype 'int8'"):
            self.vm.array([1], dtype="int8")

    def test_output_and_input(self):
        said = []
        lines = iter(["one\n", "x" * 100 + "\n", ""])
        vm = weft.VM(output=said.append, input=lambda: next(lines))
        vm.eval('print("a", 1)')
        self.assertEqual("".join(said), "a 1\n")
        self.assertEqual(vm.eval("(read_line(), len(read_line()), read_line())"), ["one", 100, None])
        lines = iter(["a\nb", "", "y" * 100000, None])
        vm = weft.VM(input=lambda: next(lines))
        self.assertEqual(vm.eval("(read_line(), read_line(), read_line())"), ["a", "b", None])
        self.assertEqual(vm.eval("(len(read_line()), read_line())"), [100000, None])
        self.assertIsNone(weft.VM(input=lambda: None).eval("read_line()"))

    def test_output_that_raises(self):
        def full(text):
            raise RuntimeError("the disk is full")
        with self.assertRaisesRegex(weft.Error, "RuntimeError: the disk is full") as caught:
            weft.VM(output=full).eval("print(1)")
        self.assertIsInstance(caught.exception.__cause__, RuntimeError)

    def test_modules(self):
        vm = weft.VM(modules={"m.weft": "fn f(x) = x * 3"})
        self.assertEqual(vm.eval('import "m.weft" as m\nm.f(2)'), 6)
        with self.assertRaises(weft.Error):
            vm.eval('import "other.weft" as o')

    def test_tools(self):
        self.assertEqual(self.vm.format("let   a=1"), "let a = 1\n")
        start, words = self.vm.complete("linalg.sv")
        self.assertIn("svd", " ".join(words))
        self.assertEqual(start, 7)
        self.assertIn("compiles", self.vm.stats())
        with self.assertRaisesRegex(ValueError, "dump: unknown"):
            self.vm.dump("nonsense")
        f = self.vm.eval("x => x + 1")
        self.assertIn("compiled", f.dump("graph"))


class Errors(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()

    def test_an_error_has_kind_place_and_text(self):
        with self.assertRaises(weft.Error) as caught:
            self.vm.eval("let a = [1, 2]\na[5]", "cell")
        e = caught.exception
        self.assertEqual((e.kind, e.line), ("index", 2))
        self.assertIsInstance(e, IndexError)
        self.assertIn("cell:2", str(e))
        self.assertIn("^", str(e))

    def test_kinds_are_python_errors(self):
        for program, cls in (('1 + "a"', TypeError), ("[1, 2] + [1, 2, 3]", ValueError), ("{a: 1}.b", KeyError),
                             ("x_y", NameError), ('error("x", kind="value")', ValueError)):
            with self.subTest(program), self.assertRaises(cls) as caught:
                self.vm.eval(program)
            self.assertIsInstance(caught.exception, weft.Error)

    def test_errors_can_be_pickled(self):
        for program in ("[1][3]", "zeros(2) + zeros(3)", "nope"):
            with self.assertRaises(weft.Error) as caught:
                self.vm.eval(program)
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((type(again), str(again), again.kind),
                             (type(caught.exception), str(caught.exception), caught.exception.kind))

    def test_limits(self):
        with self.assertRaises(weft.LimitError) as caught:
            weft.VM(fuel=1000).eval(LOOP)
        self.assertEqual(caught.exception.limit, "fuel")
        with self.assertRaises(weft.LimitError) as caught:
            weft.VM(deadline=0.1).eval(LOOP)
        self.assertEqual(caught.exception.limit, "deadline")
        with self.assertRaises(weft.LimitError) as caught:
            weft.VM(memory=1 << 24).eval("zeros(10000000)")
        self.assertEqual(caught.exception.limit, "memory")
        with self.assertRaises(weft.LimitError) as caught:
            self.vm.eval('read_text("x")')
        self.assertEqual(caught.exception.limit, "files")
        self.vm.limits(fuel=100)
        with self.assertRaises(weft.LimitError):
            self.vm.eval(LOOP)
        self.vm.limits()
        self.assertEqual(self.vm.eval("1"), 1)

    def test_options_are_checked(self):
        for given, why in (({"memory": -1}, "memory: from 1"), ({"fuel": 1.5}, "fuel: a whole number"),
                           ({"deadline": 0}, "deadline: more than 0"), ({"backend": "no"}, "backend is unknown: no"),
                           ({"arrays": "torch"}, "arrays:"), ({"output": 3}, "output: a function"),
                           ({"modules": 3}, "modules:"), ({"memory": 1000}, "memory")):
            with self.subTest(given), self.assertRaisesRegex((ValueError, TypeError, MemoryError), why):
                weft.VM(**given)

    def test_exit(self):
        with self.assertRaises(weft.ProgramExit) as caught:
            self.vm.eval("exit(3)")
        self.assertEqual(caught.exception.code, 3)
        self.assertEqual(self.vm.eval("1"), 1)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.mkdir(os.path.join(self.folder.name, "in"))
        with open(os.path.join(self.folder.name, "secret"), "w") as f:
            f.write("secret")

    def tearDown(self):
        self.folder.cleanup()

    def test_below_a_folder(self):
        inside = os.path.join(self.folder.name, "in")
        for files in (inside, os.fsencode(inside), pathlib.Path(inside)):
            vm = weft.VM(files=files)
            self.assertEqual(vm.eval('write_text("a.txt", "text"); read_text("a.txt")'), "text")
            self.assertEqual(vm.eval("list_dir()"), ["a.txt"])
            for path in ("../secret", os.path.join(self.folder.name, "secret")):
                with self.assertRaisesRegex(OSError, "Permission denied"):
                    vm.eval(f'read_text("{path}")')
            with self.assertRaises(weft.LimitError):
                vm.eval("read_line()")
        with open(os.path.join(inside, "a.txt")) as f:
            self.assertEqual(f.read(), "text")

    def test_folders_that_are_none(self):
        with self.assertRaises(FileNotFoundError):
            weft.VM(files=os.path.join(self.folder.name, "none"))
        with self.assertRaises(NotADirectoryError):
            weft.VM(files=os.path.join(self.folder.name, "secret"))
        with self.assertRaisesRegex(TypeError, "files: a folder"):
            weft.VM(files=1)
        with self.assertRaisesRegex(ValueError, "zero byte"):
            weft.VM(files="a\0b")
        with self.assertRaises(ValueError):
            weft.VM(files=self.folder.name, backend="none")

    def test_all_or_none(self):
        path = os.path.join(self.folder.name, "secret")
        self.assertEqual(weft.VM(files=True).eval(f'read_text("{path}")'), "secret")
        for files in (False, None):
            with self.assertRaises(weft.LimitError):
                weft.VM(files=files).eval(f'read_text("{path}")')


class PythonFunctions(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()

    def test_called_by_a_program(self):
        self.vm["add"] = lambda a, b: a + b
        self.assertEqual(self.vm.eval("add(1, add(2, 3))"), 6)
        self.assertEqual(self.vm.eval("let s = 0\nfor i in 0..2000 { s = add(s, i) }\ns"), 1999000)
        self.assertEqual(self.vm.eval("(f, x) => f(f(x))")(lambda x: x * 2, 5), 20)

    def test_may_run_programs(self):
        self.vm["inner"] = lambda x: self.vm.eval("n => n * 10")(x) + self.vm["k"]
        self.vm["k"] = 1
        self.assertEqual(self.vm.eval("inner(4)"), 41)

    def test_exceptions_go_through(self):
        def fails(x):
            raise ValueError(f"bad {x}")
        self.vm["fails"] = fails
        with self.assertRaisesRegex(weft.Error, "ValueError: bad 3") as caught:
            self.vm.eval("fails(3)")
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(self.vm.eval("try { fails(4) } catch e { (e.kind, e.message) }"),
                         ["value", "ValueError: bad 4"])
        with self.assertRaises(weft.Error) as caught:  # another error does not get it as its cause
            self.vm.eval("try { fails(5) } catch e { 0 }\n[1][7]")
        self.assertIsNone(caught.exception.__cause__)

    def test_keyboard_interrupt_cannot_be_caught_by_a_program(self):
        def stop():
            raise KeyboardInterrupt
        self.vm["stop"] = stop
        with self.assertRaises(KeyboardInterrupt):
            self.vm.eval("try { stop() } catch e { 0 }\nlet n = 0\nwhile n < 100000000 { n += 1 }")
        self.assertEqual(self.vm.eval("2"), 2)

    def test_derivatives_and_batches(self):
        self.vm["h"] = lambda x: x * 2
        with self.assertRaisesRegex(NotImplementedError, "reads a value while a derivative is taken"):
            self.vm.eval("grad(x => h(x))(3.0)")
        self.assertEqual(self.vm.eval("grad(x => x * h(stop_gradient(x)))(3.0)"), 6.0)
        self.assertEqual(list(self.vm.eval("map(h, arange(3.0))")), [0, 2, 4])

    def test_what_does_not_fit_its_parameters(self):
        self.vm["two"] = lambda a, b: a
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'b'"):
            self.vm.eval("two(1)")
        with self.assertRaisesRegex(TypeError, "takes no arguments by name"):
            self.vm.eval("two(1, b=2)")

    def test_signature_and_documentation_come_along(self):
        def blur(image, radius=1, *rest, edge="wrap", flag=True, scale=1e-06):
            """Blurs an image.

            Twice.
            """
            return [image, radius, list(rest), edge, flag, scale]
        self.vm["blur"] = blur
        self.assertEqual(self.vm.eval("blur(5)"), [5, 1, [], "wrap", True, 1e-06])
        self.assertEqual(self.vm.eval("blur(5, 2, 3, 4, edge=nil)"), [5, 2, [3, 4], None, True, 1e-06])
        self.assertEqual(self.vm.eval("blur(radius=7, image=1, flag=false)"), [1, 7, [], "wrap", False, 1e-06])
        self.assertEqual(self.vm["blur"](1, radius=3), [1, 3, [], "wrap", True, 1e-06])
        with self.assertRaisesRegex(TypeError, "blur: there is no parameter 'raduis'; did you mean 'radius'"):
            self.vm.eval("blur(1, raduis=2)")
        with self.assertRaisesRegex(TypeError, "blur: the argument 'image' is missing"):
            self.vm.eval("blur()")
        printed = []
        vm = weft.VM(output=printed.append)
        vm["tools"] = {"blur": blur}
        vm.eval("help(tools.blur)")
        self.assertEqual("".join(printed),
                         'blur(image, radius=1, ...rest, edge="wrap", flag=true, scale=1e-06)\n'
                         "  Blurs an image.\n  \n  Twice.\n")

    def test_keyword_only_arguments(self):
        def only(*, a, b=2):
            return [a, b]
        f = self.vm.function(only)
        self.assertEqual(f(a=1), [1, 2])
        self.assertEqual(f(b=1, a=0), [0, 1])

    def test_a_signature_that_has_no_like_is_left_out(self):
        def options(x, **more):
            return [x, more]
        def word(fn, b=1):
            return [fn, b]
        def late(a=1, *, b):
            return [a, b]
        def default(a, b=(1, 2)):
            return [a, list(b)]
        for f, args, want in ((options, "1", [1, {}]), (word, "1", [1, 1]), (default, "1", [1, [1, 2]]),
                              (lambda x, y=2: [x, y], "1", [1, 2]), (max, "(1, 2)", 2), (len, "(1, 2)", 2)):
            self.vm["f"] = f
            self.assertEqual(self.vm.eval(f"f({args})"), want)
        self.vm["f"] = late
        with self.assertRaisesRegex(TypeError, "missing 1 required keyword-only argument: 'b'"):
            self.vm.eval("f(1)")

    def test_defaults_of_every_kind(self):
        def f(a=None, b=-3, c=2.5, d='say "no" \\ {x}', e="", g=1e300, h=-0.0):
            return [a, b, c, d, e, g, str(h)]
        self.vm["f"] = f
        self.assertEqual(self.vm.eval("f()"), [None, -3, 2.5, 'say "no" \\ {x}', "", 1e300, "-0.0"])
        self.assertEqual(self.vm.eval("f(b=1)")[1], 1)

    def test_system_exit_comes_out(self):
        self.vm["leave"] = lambda: sys.exit(3)
        with self.assertRaises(SystemExit) as caught:
            self.vm.eval("try { leave() } catch e { 0 }\n1")
        self.assertEqual(caught.exception.code, 3)

    def test_a_result_that_no_program_can_have(self):
        self.vm["odd"] = lambda: object()
        with self.assertRaisesRegex(weft.Error, "object is nothing that a program can have"):
            self.vm.eval("odd()")

    def test_endless_recursion(self):
        self.vm["again"] = lambda n: self.vm.eval("n => again(n + 1)")(n)
        with self.assertRaisesRegex(weft.Error, "recursion"):
            self.vm.eval("again(0)")
        self.assertEqual(self.vm.eval("3"), 3)

    def test_are_freed(self):
        class Big:
            def __call__(self):
                return 1
        import weakref
        big = Big()
        seen = weakref.ref(big)
        self.assertEqual(self.vm.eval("f => f()")(big), 1)
        del big
        self.vm.eval("0")
        gc.collect()
        self.assertIsNone(seen())

    def test_function_once(self):
        f = self.vm.function(lambda x: x + 1)
        self.assertEqual(f(1), 2)
        with self.assertRaisesRegex(TypeError, "a function is wanted"):
            self.vm.function(3)


class AsyncFunctions(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()
        self.order = []

        async def fetch(name, count=1):
            self.order.append(f"asked {name}")
            await asyncio.sleep(0)
            self.order.append(f"told {name}")
            return [name] * count

        async def fails(text):
            await asyncio.sleep(0)
            raise KeyError(text)
        self.vm["fetch"], self.vm["fails"] = fetch, fails

    def test_a_program_waits_as_often_as_it_likes(self):
        text = 'let n = 0; for i in 0..3 { n += len(fetch(f"{i}", i)) }; n + len(fetch("end"))'
        self.assertEqual(asyncio.run(self.vm.eval_async(text)), 4)
        self.assertEqual(self.order[:3], ["asked 0", "told 0", "asked 1"])
        self.assertEqual(asyncio.run(self.vm.eval_async("1 + 1")), 2)
        f = self.vm.eval("(x, n=2) => fetch(x, n)")
        self.assertEqual(asyncio.run(f.call_async("y", n=3)), ["y", "y", "y"])
        self.assertEqual(asyncio.run(f.call_async("y")), ["y", "y"])

    def test_programs_of_two_vms_take_turns(self):
        other = weft.VM()
        other["fetch"] = fetch_of(self.order)

        async def both():
            return await asyncio.gather(self.vm.eval_async('fetch("a")[0]'), other.eval_async('fetch("b")'))
        self.assertEqual(asyncio.run(both()), ["a", "b"])
        self.assertEqual(self.order, ["asked a", "asked b", "told a", "told b"])

    def test_exceptions_go_through_the_program(self):
        caught = 'try { fails("x") } catch e { e.kind }'
        self.assertEqual(asyncio.run(self.vm.eval_async(caught)), "key")
        with self.assertRaises(weft.KeyError) as raised:
            asyncio.run(self.vm.eval_async('let a = 1\nfails("x")'))
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertEqual(raised.exception.line, 2)

        async def odd():
            return object()
        self.vm["odd"] = odd
        with self.assertRaisesRegex(weft.TypeError, "nothing that a program can have"):
            asyncio.run(self.vm.eval_async("odd()"))
        self.assertEqual(asyncio.run(self.vm.eval_async("try { odd() } catch e { e.kind }")), "type")

    def test_where_nobody_awaits(self):
        with self.assertRaisesRegex(weft.NotImplementedError, "eval_async"):
            self.vm.eval('fetch("a")')
        with self.assertRaisesRegex(weft.NotImplementedError, "cannot wait inside"):
            asyncio.run(self.vm.eval_async('map(fetch, ("a", "b"))'))
        self.vm["inner"] = lambda: self.vm.eval('fetch("a")')
        with self.assertRaises(weft.NotImplementedError):
            asyncio.run(self.vm.eval_async("inner()"))
        self.assertEqual(self.order, [])
        self.assertEqual(self.vm.eval("1 + 1"), 2)

    def test_nothing_else_runs_meanwhile(self):
        async def meanwhile():
            task = asyncio.create_task(self.vm.eval_async('let a = 5; fetch("a")'))
            await asyncio.sleep(0)
            with self.assertRaisesRegex(RuntimeError, "waits for an async function"):
                self.vm.eval("1")
            with self.assertRaisesRegex(RuntimeError, "waits for an async function"):
                await self.vm.eval_async("1")
            self.assertEqual(self.vm["a"], 5)
            return await task
        self.assertEqual(asyncio.run(meanwhile()), ["a"])

    def test_a_cancelled_task_ends_the_program(self):
        async def cancelled():
            task = asyncio.create_task(self.vm.eval_async('let a = 1; try { fetch("a") } catch e { }; a = 2'))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return self.vm.eval("a")
        self.assertEqual(asyncio.run(cancelled()), 1)

    def test_time_that_is_over_ends_the_program(self):
        async def forever():
            await asyncio.sleep(3600)
        self.vm["forever"] = forever
        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(asyncio.wait_for(self.vm.eval_async("forever()"), 0.05))
        self.assertEqual(self.vm.eval("1 + 1"), 2)

    def test_an_interrupt_that_came_meanwhile(self):
        async def stops():
            self.vm.interrupt()
        self.vm["stops"] = stops
        with self.assertRaises(weft.Interrupted):
            asyncio.run(self.vm.eval_async("try { stops() } catch e { 1 }"))
        self.assertEqual(self.vm.eval("1 + 1"), 2)

    def test_are_freed(self):
        class Big:
            async def __call__(self):
                return 1
        big = Big()
        watch = weakref.ref(big)
        self.vm["big"] = big
        self.assertEqual(asyncio.run(self.vm.eval_async("big()")), 1)
        self.vm["big"] = None
        del big
        gc.collect()
        self.vm.eval("1")
        self.assertIsNone(watch())


def fetch_of(order):
    async def fetch(name):
        order.append(f"asked {name}")
        await asyncio.sleep(0)
        order.append(f"told {name}")
        return name
    return fetch


class Compiled(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()

    def test_programs_as_bytes(self):
        self.vm["k"] = 3
        program = self.vm.compile("fn f(x) = x + k\nf(4)", "f.weft")
        self.assertIs(type(program), bytes)
        self.assertTrue(weft.is_compiled(program) and not weft.is_compiled(b"1 + 1"))
        self.assertEqual(self.vm.load_compiled(program), 7)
        self.assertEqual(self.vm.load_compiled(bytearray(program), "here/f.weftc"), 7)
        self.assertLess(len(self.vm.compile("1 + 1 + 1", strip=True)), len(self.vm.compile("1 + 1 + 1")))
        with self.assertRaises(weft.SyntaxError):
            self.vm.compile("let = 1")
        with self.assertRaisesRegex(weft.NameError, "k is not declared"):
            weft.VM().load_compiled(program)
        with self.assertRaises(weft.SyntaxError):
            self.vm.load_compiled(program[:-1] + bytes([program[-1] ^ 1]))
        with self.assertRaises(weft.SyntaxError):
            self.vm.load_compiled(b"")
        with self.assertRaisesRegex(TypeError, "source text is wanted, got bytes"):
            self.vm.compile(b"1")
        with self.assertRaises(TypeError):
            self.vm.load_compiled("1 + 1")

    def test_text_of_a_file(self):
        self.assertEqual(self.vm.load_text("let a = 3\na", "no/such.weft"), 3)
        with self.assertRaisesRegex(weft.NameError, "no/such.weft:1"):
            self.vm.load_text("b", "no/such.weft")

    def test_errors_show_their_place(self):
        program = self.vm.compile("let a = 1\na + nil", "f.weft")
        with self.assertRaises(weft.TypeError) as raised:
            self.vm.load_compiled(program)
        self.assertEqual(raised.exception.line, 2)
        self.assertIn("f.weft:2", str(raised.exception))


class Modules(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()

    def test_variables_of_its_own(self):
        one, two = self.vm.module("one"), self.vm.module("two")
        one["x"], two["x"] = 1, 2
        self.assertEqual((one.eval("x"), two.eval("x + 1")), (1, 3))
        self.assertIn("x", one)
        self.assertNotIn("x", self.vm)
        self.assertEqual(one.load_compiled(one.compile("x + 1")), 2)
        with self.assertRaises(ValueError):
            self.vm.module("a b")
        with self.assertRaises(ValueError):
            self.vm.module("linalg")

    def test_a_namespace_of_functions(self):
        canvas = self.vm.module("canvas")
        canvas["line"] = lambda *points: len(points)
        canvas["_kept"] = 1
        self.vm["canvas"] = canvas
        self.assertEqual(self.vm.eval("canvas.line(1, 2)"), 2)
        with self.assertRaises(weft.Error):
            self.vm.eval("canvas._kept")

        async def later():
            return 5
        canvas["later"] = later
        self.assertEqual(asyncio.run(self.vm.eval_async("canvas.later()")), 5)
        self.assertEqual(asyncio.run(canvas.eval_async("later() + 1")), 6)

    def test_closed(self):
        script = self.vm.module("script")
        f = script.eval("let k = 1; fn f() = k; f")
        script.close()
        with self.assertRaises(ValueError):
            script.eval("1")
        with self.assertRaises(ValueError):
            script.close()
        with self.assertRaises(weft.NameError):
            f()

    def test_what_is_left(self):
        self.assertEqual(self.vm.left(), (None, None, None))
        self.vm.limits(memory=1 << 30, fuel=1000000, deadline=60)
        memory, fuel, seconds = self.vm.left()
        self.assertTrue(memory < 1 << 30 and fuel <= 1000000 and seconds <= 60)
        self.assertGreaterEqual(self.vm.collect(), 0)
        self.vm.set_device("cpu")
        with self.assertRaisesRegex(ValueError, "no device 'none'"):
            self.vm.set_device("none")


class Arrays(unittest.TestCase):
    """Without NumPy."""

    def setUp(self):
        self.vm = weft.VM(arrays="weft")

    def test_dtypes_shapes_lists(self):
        for dtype in "bool u8 i32 i64 u32 u64 f16 bf16 f32 f64 c64 c128".split():
            x = self.vm.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
            self.assertEqual((x.dtype, x.shape, x.ndim, x.size, len(x)), (dtype, (2, 3), 2, 6, 2))
            self.assertEqual(x.tolist(), [[0, 1, 1], [1, 0, 1]])
            self.assertIsInstance(repr(x), str)
        self.assertEqual(self.vm.array([1.5, 2]).tolist(), [1.5, 2.0])
        self.assertEqual(self.vm.eval("zeros((2, 0))").tolist(), [[], []])
        self.assertEqual(self.vm.eval("zeros((0, 2))").tolist(), [])
        self.assertEqual(self.vm.eval("zeros((2, 3, 0)).T").tolist(), [])
        self.assertEqual(self.vm.array([2]).item(), 2)
        with self.assertRaisesRegex(ValueError, "one element"):
            self.vm.array([2, 3]).item()
        with self.assertRaisesRegex(ValueError, "truth"):
            bool(self.vm.array([2, 3]))

    def test_buffers_come_in_without_a_copy(self):
        data = array.array("d", [1, 2, 3])
        x = self.vm.lend(data)
        data[0] = 5
        self.assertEqual(x.tolist(), [5, 2, 3])
        with self.assertRaises(BufferError):
            data.append(4)  # it cannot move while it is lent
        del x
        data.append(4)
        self.assertEqual(self.vm.eval("x => sum(x)")(data), 14.0)
        y = self.vm.eval("x => x")(memoryview(data)[::-2])
        self.assertEqual(y.tolist(), [4, 2])
        with self.assertRaisesRegex(TypeError, "no memory to lend"):
            self.vm.lend([1, 2])

    def test_a_variable_is_a_copy(self):
        data = array.array("q", [1, 2, 3])
        self.vm["x"] = data
        self.vm["r"] = {"a": [data]}
        data[0] = 9
        self.assertEqual(self.vm["x"].tolist(), [1, 2, 3])
        self.assertEqual(self.vm["r"]["a"][0].tolist(), [1, 2, 3])

    def test_memoryview(self):
        x = self.vm.eval("reshape(arange(6.0), (2, 3))")
        m = x.memoryview()
        self.assertEqual((m.shape, m.format, m.readonly, m[1, 2]), ((2, 3), "d", True, 5.0))
        self.assertEqual(self.vm.eval("x => x.T")(x).memoryview().tolist(), [[0, 3], [1, 4], [2, 5]])
        with self.assertRaisesRegex(BufferError, "f16"):
            self.vm.array([1], dtype="f16").memoryview()
        if sys.version_info >= (3, 12):
            self.assertEqual(memoryview(x)[0, 1], 1.0)

    def test_results_outlive_the_vm(self):
        x = self.vm.eval("arange(100000.0)")
        m = x.memoryview()
        self.vm.close()
        with self.assertRaisesRegex(ValueError, "the VM is closed"):
            self.vm.eval("1")
        self.assertEqual(repr(self.vm), "<weft.VM, closed>")
        del self.vm, x
        gc.collect()
        self.assertEqual(m[99999], 99999.0)

    def test_other_vms(self):
        other = weft.VM(arrays="weft")
        x = self.vm.eval("arange(1000.0)")
        y = other.eval("x => x")(x)
        self.assertEqual(y._view().data, x._view().data)
        self.assertEqual(other.eval("x => sum(x)")(x), 499500.0)
        with self.assertRaisesRegex(TypeError, "Function of another VM"):
            other.eval("f => f")(self.vm.eval("x => x"))

    def test_dlpack_both_ways(self):
        x = self.vm.eval("reshape(arange(600.0), (2, 300)).T")
        self.assertEqual(x.__dlpack_device__(), (1, 0))

        class Only:  # an object with nothing but the protocol
            def __init__(self, **given):
                self.given = given

            def __dlpack__(self, *, max_version=None):
                return x.__dlpack__(max_version=max_version if self.given.get("new") else None,
                                    copy=self.given.get("copy"))
        same = self.vm.eval("x => x")
        self.assertEqual(same(Only(new=True))._view().data, x._view().data)
        self.assertEqual(same(Only()).tolist(), x.tolist())
        self.assertNotEqual(same(Only())._view().data, x._view().data)  # older than version 1: a copy
        y = self.vm.eval("arange(500.0) + 1")
        self.assertIn("dltensor", repr(y.__dlpack__(copy=False)))
        self.vm["kept"] = y
        with self.assertRaisesRegex(BufferError, "ask for a copy"):
            self.vm.eval("kept").__dlpack__(copy=False)
        with self.assertRaisesRegex(BufferError, "stream"):
            x.__dlpack__(stream=1)
        with self.assertRaisesRegex(BufferError, "dl_device"):
            x.__dlpack__(dl_device=(2, 0))
        x.__dlpack__(max_version=(1, 0))  # nobody takes it: freed with its capsule

    def test_dlpack_refused(self):
        class Device:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **_):
                raise AssertionError("not asked")

        class Odd:
            def __dlpack__(self, **_):
                return 3
        f = self.vm.eval("x => x")
        with self.assertRaisesRegex(TypeError, "Device: its data lies on a device"):
            f(Device())
        with self.assertRaisesRegex(TypeError, "Odd: __dlpack__ gave no capsule"):
            f(Odd())

    def test_arrays_on_a_device(self):
        driver = os.environ.get("WEFT_CUDA_DRIVER")
        if not driver:
            self.skipTest("WEFT_CUDA_DRIVER names no driver")
        for arrays in ("weft", None):
            vm = weft.VM(gpu=True, cuda_driver=driver, arrays=arrays)
            x = vm.eval('to(arange(3.0), "gpu")')
            self.assertIs(type(x), weft.Array)
            self.assertIn("1.0", repr(x))
            self.assertEqual((x.shape, x.dtype, x.tolist()), ((3,), weft.f64, [0, 1, 2]))
            self.assertRaisesRegex(BufferError, "on a device: to", x.memoryview)
            self.assertRaisesRegex(BufferError, "on a device; to", lambda: x.__dlpack__(max_version=(1, 0), copy=False))
            for version in (None, (1, 0)):
                class Only:
                    def __dlpack__(self, **given):
                        return x.__dlpack__(max_version=version)
                self.assertEqual(list(vm.eval("x => x + 1")(Only())), [1, 2, 3])
            if np is not None:
                self.assertEqual(np.asarray(x, dtype=np.float32).tolist(), [0, 1, 2])
                self.assertEqual(np.from_dlpack(x).tolist(), [0, 1, 2])
            self.assertEqual(list(vm.eval('x => to(x, "cpu")')(x)), [0, 1, 2])
            self.assertIn("gpu", vm.eval("x => x.device")(x))
            self.assertEqual(vm.eval('sum(to(arange(3.0), "gpu"))'), 3)

    def test_never_pickled(self):
        for x in (self.vm, self.vm.eval("[1, 2]"), self.vm.eval("x => x"), self.vm.eval("ref(1)")):
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(x)
        x = self.vm.eval("[1, 2]")
        self.assertIs(copy.deepcopy([x])[0], x)
        self.assertIs(pickle.loads(pickle.dumps(weft.f32)), weft.f32)

    def test_into(self):
        f = self.vm.eval("x => x * 2")
        out = array.array("d", [0, 0, 0])
        self.assertIs(f.into(out, array.array("d", [1, 2, 3])), out)
        self.assertEqual(out.tolist(), [2, 4, 6])
        with self.assertRaisesRegex(ValueError, r"shape \(3,\), the array of \(2,\)"):
            f.into(out, array.array("d", [1, 2]))
        with self.assertRaisesRegex(TypeError, "dtype f64, the array of i64"):
            f.into(out, array.array("q", [1, 2, 3]))
        with self.assertRaisesRegex(ValueError, "cannot be written"):
            f.into(memoryview(b"123"), 1)
        with self.assertRaisesRegex(TypeError, "int is no array"):
            f.into(3, 1)
        out.append(1)  # it was given back

    def test_unsupported_formats(self):
        f = self.vm.eval("x => x")
        for x in (array.array("b", [1]), array.array("h", [1])):
            with self.assertRaisesRegex(TypeError, "is not supported: Weft has bool, u8"):
                f(x)
        with self.assertRaisesRegex(TypeError, "not aligned"):
            f(memoryview(bytearray(17))[1:].cast("d"))


@needs_numpy
class NumPy(unittest.TestCase):
    def setUp(self):
        self.vm = weft.VM()
        self.same = self.vm.eval("x => x")

    def test_every_dtype_without_a_copy(self):
        for name in "bool uint8 int32 int64 uint32 uint64 float16 float32 float64 complex64 complex128".split():
            a = np.array([[0, 1, 1], [1, 0, 1]] * 50).astype(name)
            for view in (a, a.T, a[::-2, 1:], np.asfortranarray(a), np.broadcast_to(a[0], (4, 3)), a[:0]):
                b = self.same(view)
                self.assertIs(type(b), np.ndarray)
                self.assertEqual((b.dtype, b.shape), (view.dtype, view.shape))
                self.assertTrue(np.array_equal(b, view))
                if view.size:
                    self.assertEqual(b.ctypes.data, view.ctypes.data)
                    self.assertFalse(b.flags.writeable)  # it is the host's memory, lent
            s = self.same(a[0, 1])
            self.assertEqual(type(s), bool if name == "bool" else type(a[0, 1]))

    def test_results_may_be_written_where_nobody_else_holds_them(self):
        b = self.vm.eval("arange(1000.0) * 2")
        b[0] = 7
        self.assertEqual(b[0], 7)
        kept = self.vm.eval("let kept = arange(1000.0)\nkept")
        with self.assertRaises(ValueError):
            kept[0] = 1
        self.assertEqual(self.vm.eval("kept[0]"), 0)

    def test_weak_numbers(self):
        f = self.vm.eval("(x, s) => x * s")
        image = np.ones(3, dtype=np.float32)
        self.assertEqual(f(image, 0.5).dtype, np.float32)
        self.assertEqual(f(image, np.float64(0.5)).dtype, np.float64)
        self.assertEqual(f(np.ones(3, dtype=np.uint8), 2).dtype, np.uint8)
        self.assertIs(type(self.vm.eval("1 + 2")), int)
        self.assertIs(type(self.vm.eval("sum(arange(3))")), np.int64)
        self.assertIs(type(self.vm.eval("mean([1.0, 2.0])")), np.float64)

    def test_read_only_and_swapped_and_odd(self):
        a = np.arange(3.0)
        a.flags.writeable = False
        self.assertEqual(self.same(a).sum(), 3)
        for bad, why in ((np.arange(3, dtype=">i4"), "swapped"), (np.arange(3, dtype=np.int16), "dtype int16 is not"),
                         (np.array(["a"]), "is not supported"), (np.array([object()]), "is not supported"),
                         (np.zeros(2, dtype="M8[s]"), "datetime64"),
                         (np.zeros(3, dtype=[("a", "u1"), ("b", "f8")])["b"], "not aligned"),
                         (np.zeros((1,) * 17), "rank 17"), (np.ma.masked_array([1, 2], [0, 1]), "masked")):
            with self.subTest(why), self.assertRaisesRegex(TypeError, why):
                self.same(bad)

    def test_lifetime(self):
        a = np.arange(5.0)
        before = sys.getrefcount(a)
        y = self.vm.lend(a)
        del a
        gc.collect()
        self.assertEqual(y.tolist(), [0, 1, 2, 3, 4])
        a = np.asarray(y)
        self.assertFalse(a.flags.writeable)
        a = np.arange(5.0)
        for _ in range(100):
            self.vm.eval("x => sum(x)")(a)
        self.assertEqual(sys.getrefcount(a), before)
        b = self.vm.eval("arange(100000.0)")[5:]
        self.vm.close()
        del self.vm, self.same
        gc.collect()
        self.assertEqual(b[0], 5)

    def test_the_program_keeps_an_argument(self):
        self.vm.eval("let box = ref(nil)\nfn keep(x) { box.value = x }")
        a = np.arange(5.0)
        self.vm["keep"](a)
        at = a.ctypes.data
        del a
        gc.collect()
        self.assertEqual(self.vm.eval("box.value").ctypes.data, at)
        self.assertEqual(self.vm.eval("sum(box.value)"), 10)

    def test_a_variable_is_a_copy(self):
        a = np.arange(6.0).reshape(2, 3).T
        self.vm["x"] = a
        a[0, 0] = 9
        self.assertEqual(self.vm["x"][0, 0], 0)
        self.vm["x"] = self.vm.lend(a)
        self.assertEqual(self.vm["x"].ctypes.data, a.ctypes.data)

    def test_array_protocols(self):
        vm = weft.VM(arrays="weft")
        x = vm.eval("reshape(arange(600.0), (20, 30)).T")
        versioned = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)  # else DLPack gives a copy
        for a in (np.asarray(x), np.from_dlpack(x)) if versioned else (np.asarray(x),):
            self.assertEqual(a.ctypes.data, x._view().data)
            self.assertEqual((a.shape, a.strides), (x.shape, x.strides))
            self.assertFalse(a.flags.writeable)
        self.assertEqual(np.from_dlpack(x).tolist(), x.tolist())
        self.assertNotEqual(np.array(x, copy=True).ctypes.data, x._view().data)
        self.assertEqual(np.asarray(x, dtype=np.float32).dtype, np.float32)
        with self.assertRaisesRegex(TypeError, "NumPy has no bf16"):
            np.asarray(vm.array([1, 2], dtype="bf16"))
        self.assertIsInstance(self.vm.eval("bf16([1, 2])"), weft.Array)
        self.assertEqual(vm.array(np.arange(3), dtype="f32").dtype, weft.f32)

    def test_python_functions_see_arrays(self):
        seen = []
        self.vm["look"] = lambda x: seen.append(x) or x.sum()
        self.assertEqual(self.vm.eval("let big = arange(1000.0)\nlook(big)"), 499500)
        self.assertFalse(seen[0].flags.writeable)
        self.vm.eval("big = nil")
        self.assertEqual(seen[0][999], 999)

    def test_into(self):
        f = self.vm.eval("x => x * 2")
        out = np.zeros((3, 4))[:, ::2]
        f.into(out, np.ones((3, 2)))
        self.assertTrue((out == 2).all())
        a = np.arange(5.0)
        self.vm.eval("x => x[::-1]").into(a, a)
        self.assertEqual(a.tolist(), [4, 3, 2, 1, 0])
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "cannot be written"):
            f.into(out, np.ones((3, 2)))

    def test_examples_of_the_documents(self):
        """Blocks of Python run; what stands behind #= is the value of its line, up to a comma with words."""
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        compared = 0
        for page in ("python/README.md", "docs/embedding.md"):
            with open(os.path.join(root, page), encoding="utf-8") as file:
                blocks = file.read().split("```python\n")[1:]
            self.assertTrue(blocks)
            for block in blocks:
                names, lines = {}, block.split("\n```")[0].split("\n")
                for node in ast.parse("\n".join(lines)).body:
                    code, mark, want = "\n".join(lines[node.lineno - 1:node.end_lineno]).partition("#=")
                    with self.subTest(page=page, code=code):
                        if mark:
                            got, want = eval(code, names), eval(want.partition(", since")[0], names)
                            self.assertTrue(np.array_equal(got, want), got)
                            compared += 1
                        else:
                            exec(code, names)
        self.assertGreaterEqual(compared, 9)

    def test_derivatives(self):
        g = self.vm.eval("grad((p, x) => sum(p.w * x + p.b))")({"w": np.ones(3), "b": 0.0}, np.arange(3.0))
        self.assertEqual(g["w"].tolist(), [0, 1, 2])

    def test_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        with self.assertRaisesRegex(TypeError, "bfloat16"):
            self.same(np.ones(3, dtype=ml_dtypes.bfloat16))


class Other(unittest.TestCase):
    def test_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("JAX is not installed")
        vm = weft.VM(arrays="weft")
        x = jnp.arange(100.0)
        y = vm.eval("x => x")(x)
        self.assertEqual(y._view().data, x.unsafe_buffer_pointer())
        self.assertEqual(float(jnp.from_dlpack(vm.eval("f32(arange(10))")).sum()), 45.0)
        self.assertEqual(vm.eval("x => x")(jnp.ones(3, dtype=jnp.bfloat16)).dtype, weft.bf16)
        halves = jnp.from_dlpack(vm.array([1, 2], dtype="bf16"))
        self.assertEqual((halves.dtype, halves.tolist()), (jnp.bfloat16, [1, 2]))

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        vm = weft.VM(arrays="weft")
        x = torch.arange(100.0)
        y = vm.eval("x => x")(x)
        self.assertEqual(y._view().data, x.data_ptr())
        self.assertEqual(torch.from_dlpack(vm.eval("arange(10.0)")).sum().item(), 45.0)


class Threads(unittest.TestCase):
    def test_interrupt_from_another_thread(self):
        vm = weft.VM()
        threading.Timer(0.3, vm.interrupt).start()
        with self.assertRaises(weft.Interrupted):
            vm.eval(LOOP)
        self.assertEqual(vm.eval("1"), 1)

    def test_python_goes_on_while_a_program_runs(self):
        vm, ticks = weft.VM(deadline=30), []

        def tick():
            while len(ticks) < 20:
                ticks.append(time.monotonic())
                time.sleep(0.005)
            vm.interrupt()
        thread = threading.Thread(target=tick)
        thread.start()
        with self.assertRaises(weft.Interrupted):
            vm.eval(LOOP)
        thread.join()

    def test_threads_take_turns(self):
        vm, results = weft.VM(), []
        f = vm.eval("n => { let s = 0\n for i in 0..n { s += i }\n s }")

        def work():
            for _ in range(50):
                results.append(f(1000))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(results, [499500] * 200)

    def test_values_are_dropped_in_any_thread(self):
        vm = weft.VM(arrays="weft")
        held = [vm.eval("arange(1000.0)") for _ in range(200)]

        def drop():
            while held:
                try:
                    held.pop()
                except IndexError:
                    return
        threads = [threading.Thread(target=drop) for _ in range(3)]
        for t in threads:
            t.start()
        while held:
            vm.eval("sum(arange(2000.0))")
        for t in threads:
            t.join()

    def test_ctrl_c(self):
        program = ("import os, signal, sys, threading, weft\n"
                   "vm = weft.VM()\n"
                   "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
                   "try:\n    vm.eval('let i = 0\\nwhile true { i += 1 }')\n"
                   "except KeyboardInterrupt:\n    print('stopped', vm.eval('1 + 1'))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("stopped 2\n", "", 0))

    def test_ctrl_c_inside_of_another_vm(self):
        program = ("import os, signal, threading, weft\n"
                   "a, b = weft.VM(), weft.VM()\n"
                   "a['inner'] = lambda: b.eval('let i = 0\\nwhile true { i += 1 }')\n"
                   "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
                   "try:\n    a.eval('try { inner() } catch e { 0 }\\n0')\n"
                   "except KeyboardInterrupt:\n    print('stopped', a.eval('1'), b.eval('2'))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("stopped 1 2\n", ""))

    def test_ctrl_c_with_a_handler_that_does_not_raise(self):
        program = ("import os, signal, threading, weft\n"
                   "signal.signal(signal.SIGINT, lambda *_: print('handled'))\n"
                   "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
                   "try:\n    weft.VM().eval('let i = 0\\nwhile true { i += 1 }')\n"
                   "except weft.Interrupted:\n    print('interrupted')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("handled\ninterrupted\n", ""))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        program = ("import os, sys, weft\nvm = weft.VM()\nvm.eval('sum(exp(zeros(10000000)))')\npid = os.fork()\n"
                   "if pid == 0:\n    try:\n        vm.eval('1')\n    except RuntimeError as e:\n"
                   "        ok = 'parent' in str(e) and weft.VM().eval('sum(exp(zeros(10000000)))') == 1e7\n"
                   "        os._exit(0 if ok else 3)\n"
                   "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n")
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((done.stderr, done.returncode), ("", 0))

    def test_exit_while_things_live(self):
        program = ("import weft\nvm = weft.VM()\nvm['f'] = lambda: 1\nx = vm.eval('arange(10.0)')\n"
                   "c = weft.VM(arrays='weft').eval('[1, 2]').__dlpack__(max_version=(1, 0))\nprint('end')\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("end\n", "", 0))


class Types(unittest.TestCase):
    """The file of types has what there is, under the same names."""

    def test_types_are_those_of_the_package(self):
        with open(os.path.join(os.path.dirname(weft.__file__), "__init__.pyi"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        said = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        said.update({node.target.id: node for node in tree.body if isinstance(node, ast.AnnAssign)})
        public = {name for name in vars(weft) if not name.startswith("_")
                  and type(getattr(weft, name)).__name__ != "module"}
        self.assertEqual(public - set(said), set())
        self.assertEqual({n for n in said if not n.startswith("_")} - public, set())
        shared = weft.VM.__mro__[1]  # what VM and Module have in common
        for cls in (weft.VM, weft.Module, shared, weft.Array, weft.Function, weft.Value, weft.Error):
            body = said["_Names" if cls is shared else cls.__name__].body
            methods = {n.name: n for n in body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
            fields = {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
            there = {name for name, what in vars(cls).items() if not name.startswith("_")}
            self.assertEqual(there - set(methods) - fields, set(), cls)
            for name, node in methods.items():
                what = inspect.getattr_static(cls, name)
                if not isinstance(what, property):
                    want = [p for p in inspect.signature(what).parameters]
                    a = node.args
                    got = [x.arg for x in a.posonlyargs + a.args] + ([a.vararg.arg] if a.vararg else []) + \
                        [x.arg for x in a.kwonlyargs] + ([a.kwarg.arg] if a.kwarg else [])
                    if name not in ("__exit__",):
                        self.assertEqual(got, want, (cls, name))


class Import(unittest.TestCase):
    def test_a_library_that_is_not_there(self):
        for path, why in (("/nonexistent/libweft.so", "is not at /nonexistent/libweft.so"),
                          (__file__, "cannot be loaded")):
            env = dict(os.environ, WEFT_LIBRARY=path)
            done = subprocess.run([sys.executable, "-c", "import weft"], capture_output=True, text=True, env=env)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.strip().split("\n")[-1], "ImportError: weft: .*" + why)

    def test_version(self):
        self.assertRegex(weft.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
