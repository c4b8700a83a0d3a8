#!/usr/bin/env python3
"""The twenty kernels in Weft beside NumPy: peer.py WEFT SIZE [NAME…]

Results must agree. Of each pair of runs, one after the other, the ratio of their least calls; of the pairs the median.
NumPy's inputs are copied outside of what is timed, since its kernels write into them. """

import math
import os
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from inputs import SIZES, make  # noqa: E402
from kernels import RUN  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = float(os.environ.get("BENCH_SECONDS", "0.5"))
PAIRS = int(os.environ.get("BENCH_PAIRS", "3"))


def copy(r):
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in r.items()}


def numpy_least(name, given):
    best, begin, rounds = math.inf, time.monotonic(), 0
    while rounds < 2 or (time.monotonic() - begin < BUDGET and rounds < 2000):
        r = copy(given)
        t = time.perf_counter()
        RUN[name](r)
        best, rounds = min(best, time.perf_counter() - t), rounds + 1
    return best


def weft_least(weft, name, size, given, folder):
    place = os.path.join(folder, name)
    os.makedirs(place, exist_ok=True)
    for k, v in given.items():
        np.save(os.path.join(place, k), v)
    command = [weft, os.path.join(HERE, "time.weft"), str(BUDGET), name, place, *given]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip().splitlines()[0])
    outs = sorted(f for f in os.listdir(place) if f.startswith("out"))
    return min(map(float, ended.stdout.split())), [np.load(os.path.join(place, f)) for f in outs]


def same(got, want):
    want = np.asarray(want)
    loose = 1e-3 if want.dtype == np.float32 else 1e-8
    return got.shape == want.shape and np.allclose(got, want, rtol=loose, atol=loose * 1e-2, equal_nan=True)


def main():
    weft, size, *names = sys.argv[1:]
    folder = os.path.join("build", "bench", "npbench")
    os.makedirs(folder, exist_ok=True)
    ratios, bad = [], 0
    for name in names or SIZES:
        given = make(name, size)
        try:
            _, got = weft_least(weft, name, size, given, folder)
        except RuntimeError as e:
            print(f"npbench {name:10} {size}  {e}  MISSED", flush=True)
            bad += 1
            continue
        want = RUN[name](copy(given))
        if len(got) != len(want) or not all(map(same, got, want)):
            print(f"npbench {name:10} {size}  the results differ from NumPy's  MISSED", flush=True)
            bad += 1
            continue
        pairs = [(numpy_least(name, given), weft_least(weft, name, size, given, folder)[0]) for _ in range(PAIRS)]
        n, w = sorted(pairs, key=lambda p: p[0] / p[1])[len(pairs) // 2]
        ratios.append(n / w)
        slow = "" if n >= w else "  MISSED"
        print(
            f"npbench {name:10} {size} {w * 1e3:10.3f} ms   NumPy {n * 1e3:10.3f} ms   {n / w:7.2f} times as fast  "
            f"(at least 1){slow}",
            flush=True,
        )
        bad += n < w
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"npbench {len(ratios)} kernels of size {size}: {mean:.2f} times as fast as NumPy {np.__version__}, "
            f"geometric mean  (at least 5){'' if mean >= 5 else '  MISSED'}"
        )
        bad += mean < 5
    sys.exit(bad > 0)


main()
