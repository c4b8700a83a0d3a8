#!/usr/bin/env python3
"""Weft and a peer in turns: turns.py WEFT PROGRAM PEER NAME ROUNDS PAIRS

Both processes live side by side and are asked by turns for some calls each (`turns` as their last argument: a number of
calls a line, answered by the least seconds of one), so that what a machine does that others use too, for seconds or
minutes, meets both alike. Prints the median of the ratios, the medians of the seconds of Weft and of the peer, and both
check sums. Ends with status 3, silent, when the peer is not installed or has no such program; with 1 when it fails, or
Weft does. """

import os
import statistics
import subprocess
import sys
import time

WEFT, PROGRAM, PEER, NAME, ROUNDS, PAIRS = *sys.argv[1:5], int(sys.argv[5]), int(sys.argv[6])
TURNS = 6  # of each pair of processes; the first two are not counted
MORE_TURNS = 16  # of a pair whose ratio is not far from 1
TURN_SECONDS = 0.05
PAIR_SECONDS = 6
# of a median: more pairs would not change who is faster; they may, so three times as many are asked
FAR, NEAR = 0.7, 0.97
TIMEOUT = 300
middle = statistics.median


def pause(blas):
    """Seconds until threads that look for more work have gone to sleep: those of OpenBLAS take long."""
    return 0.25 if blas and NAME in ("mlp", "train", "recurrent", "kmeans") else 0.03


class Side:
    def __init__(self, command, blas, env=None):
        self.pause = pause(blas)
        self.process = subprocess.Popen(
            ["timeout", str(TIMEOUT), *command, NAME, str(ROUNDS), "turns"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
        )
        self.calls = 1

    def turn(self):
        """The least seconds of some calls; None: the process ended."""
        try:
            print(self.calls, file=self.process.stdin, flush=True)
            seconds = float(self.process.stdout.readline())
        except (BrokenPipeError, ValueError):
            return None
        self.calls = max(2, min(ROUNDS, int(TURN_SECONDS / seconds)))
        time.sleep(self.pause)
        return seconds

    def end(self):
        """The check sum; None: it failed, or is not there."""
        try:
            rest = self.process.communicate()[0].split()
        except (BrokenPipeError, ValueError):
            rest = []
        return float(rest[0]) if self.process.returncode == 0 and rest else None


def pair():
    weft = Side([WEFT, f"bench/{PROGRAM}.weft"], True, {**os.environ, "WEFT_HOT": "0"})
    peer = Side([sys.executable, "bench/peers/arrays.py", PEER], PEER == "numpy")
    begin, times = time.monotonic(), []
    for i in range(MORE_TURNS):
        if i >= TURNS and middle(w / p for w, p in times) < FAR:
            break
        w, p = weft.turn(), peer.turn()
        if w is None or p is None:
            break
        if i == 0:
            begin = time.monotonic()  # starting and compiling took place until here
        if i > 1 or p > PAIR_SECONDS / 4:
            times.append((w, p))
        if i > 1 and time.monotonic() - begin > PAIR_SECONDS:
            break
    return times, weft.end(), peer.end(), peer.process.returncode


def main():
    times, ratio = [], 1
    for i in range(3 * PAIRS):
        some, mine, theirs, status = pair()
        if theirs is None:
            sys.exit(3 if status == 3 else f"{PEER} failed")
        if mine is None or not some:
            sys.exit(f"{NAME}: Weft failed beside {PEER}")
        times += some
        ratio = middle(w / p for w, p in times)
        if ratio < FAR or i + 1 >= PAIRS and ratio < NEAR:
            break
    print(ratio, middle(w for w, _ in times), middle(p for _, p in times), mine, theirs)


main()
