# _interrupt.py — Ctrl-C stops a program while the main thread of Python waits for it.
#
# A handler written in Python runs when the call into the library has returned, which is too late. Python writes the
# number of each signal into a pipe as soon as it comes (signal.set_wakeup_fd); a thread reads it there and interrupts
# the VM. The call then returns, and Python's own handler raises KeyboardInterrupt.
import os
import signal
import threading

from ._library import quick

_pipe = None       # (read, write)
_running: list = []  # the VMs that the main thread waits for: one, and those whose programs its functions run
_hit: set = set()  # of those, the ones that were interrupted here
_others = -1       # who wanted the signals before
_guard = threading.Lock()
_main = threading.main_thread().ident


def _forget():  # in a child process: the thread is not there
    global _pipe, _guard
    _pipe, _guard = None, threading.Lock()
    _running.clear()


os.register_at_fork(after_in_child=_forget)


def _watch(read):
    while True:
        try:
            signals = os.read(read, 64)
        except OSError:
            return
        if not signals:
            return
        with _guard:
            if signal.SIGINT in signals:
                for vm in _running:
                    quick.weft_interrupt(vm)
                    _hit.add(vm.value)
            if _others >= 0:
                try:
                    os.write(_others, signals)
                except OSError:
                    pass


def _start():
    global _pipe
    read, write = os.pipe()
    os.set_blocking(write, False)
    _pipe = (read, write)
    threading.Thread(target=_watch, args=(read,), name="weft-signals", daemon=True).start()


class Watch:
    """While it is entered in the main thread, SIGINT interrupts `vm`."""

    __slots__ = ("vm", "on", "before")

    def __init__(self, vm):
        self.vm, self.on, self.before = vm, False, None

    def __enter__(self):
        global _others
        if threading.get_ident() != _main:
            return self
        if not _running:
            try:
                if _pipe is None:
                    _start()
                self.before = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
            except (ValueError, OSError, RuntimeError):
                return self  # not the main interpreter: Ctrl-C waits
            _others = self.before
        self.on = True
        with _guard:
            _running.append(self.vm)
        return self

    def __exit__(self, *_):
        global _others
        if not self.on:
            return
        with _guard:
            _running.pop()
            if self.vm.value in _hit:  # it came when the program had ended: the next one must not get it
                _hit.discard(self.vm.value)
                quick.weft_interrupt_forget(self.vm)
        if self.before is not None:
            _others = -1
            signal.set_wakeup_fd(self.before, warn_on_full_buffer=False)
