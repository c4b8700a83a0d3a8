# run.py — runs one file of tests and prints a line for each: ok, not ok or skip, with the reason.
import importlib
import os
import sys
import unittest


class Lines(unittest.TestResult):
    """run.py PREFIX MODULE [-CLASS...]: all but these classes; what went wrong goes to standard error."""

    def __init__(self, prefix):
        super().__init__()
        self.prefix = prefix

    def say(self, how, test, why=""):
        name = ".".join(test.id().split(".")[1:3])
        print(f"{how} {self.prefix}-{name}" + (": " + " ".join(str(why).split()) if why else ""), flush=True)

    def addSuccess(self, test):
        self.say("ok", test)

    def addSkip(self, test, reason):
        self.say("skip", test, reason)

    def wrong(self, test, error):
        print(self._exc_info_to_string(error, test), file=sys.stderr)
        self.say("not ok", test, f"{error[0].__name__}: {error[1]}"[:200])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.wrong(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.wrong(test, error)

    def addSubTest(self, test, part, error):
        super().addSubTest(test, part, error)
        if error is not None:
            self.wrong(test, error)


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    module = importlib.import_module(sys.argv[2])
    for name in sys.argv[3:]:
        delattr(module, name[1:])
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = Lines(sys.argv[1])
    suite.run(result)
    return not (result.testsRun and result.wasSuccessful())


if __name__ == "__main__":
    sys.exit(main())
