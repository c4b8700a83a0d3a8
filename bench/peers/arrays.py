#!/usr/bin/env python3
"""The programs of bench/arrays.weft and bench/networks.weft in Python: arrays.py PEER NAME ROUNDS [turns]

Prints a check sum and the least seconds of a call. With `turns`, before that, for each line of its input, which is a
number of calls, the least seconds of one. Ends with status 3, silent, when the peer is not installed or has no such
program. PEER: numpy numexpr numba jax torch. Compilation is not timed. Threads: OMP_NUM_THREADS and the like. """

import importlib.util
import math
import os
import sys
import time

PEER, NAME, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
SECONDS = 3  # calls that take long are fewer, but at least two
if any(importlib.util.find_spec(m) is None for m in {"numpy", PEER}):
    sys.exit(3)
import numpy as np  # noqa: E402

THREADS = int(os.environ.get("WEFT_THREADS", "0")) or os.cpu_count()


def calls(f, settle, rounds):
    best, begin = math.inf, time.perf_counter()
    for i in range(rounds):
        t = time.perf_counter()
        if i > 1 and t - begin > SECONDS:
            break
        r = settle(f())
        best = min(best, time.perf_counter() - t)
    return r, best


def least(f, settle=lambda r: r):
    r, best = settle(f()), 0.0
    if sys.argv[4:] != ["turns"]:
        return calls(f, settle, ROUNDS)
    for line in sys.stdin:
        r, best = calls(f, settle, int(line))
        print(best, flush=True)
    return r, best


# ---- inputs: bench/arrays.weft's and bench/networks.weft's ----------------------------------------------------------

N = 4000000


def series():
    i = np.arange(N)
    return (i % 1000) * 0.001 + 0.5, (i % 777) * 0.002 + 0.25


def rows():
    return ((np.arange(4096 * 1024) % 997) * 0.01).astype(np.float32).reshape(4096, 1024)


def fill(shape, seed):
    return (((np.arange(math.prod(shape)) * 7919 + seed * 104729) % 10007) / 10007 - 0.5).reshape(shape)


def network(i, h, o):
    return {
        "w1": fill((i, h), 1) * 0.3,
        "b1": fill((h,), 2) * 0.3,
        "w2": fill((h, o), 3) * 0.3,
        "b2": fill((o,), 4) * 0.3,
    }


def inputs():
    if NAME == "black-scholes":
        u, w = series()
        return [u, w, u, w]
    if NAME in ("triad", "chain", "hypot", "correlation"):
        return list(series())
    if NAME in ("moments", "cumsum", "histogram"):
        return [series()[0]]
    if NAME == "squares":
        return [(np.arange(100000000) % 1000) * 0.001]
    if NAME == "softmax":
        return [rows()]
    if NAME == "layer-norm":
        return [rows(), (np.arange(1024) * 0.001 + 0.5).astype(np.float32), (np.arange(1024) * 0.01).astype(np.float32)]
    if NAME in ("jacobi", "columns"):
        return [series()[0].reshape(2000, 2000).copy()]
    if NAME == "gelu":
        return [(series()[0] - 1.0).astype(np.float32)]
    if NAME == "kmeans":
        x = (np.arange(16000000) * 7919 % 10007 * 0.001).reshape(1000000, 16)
        return [x, x[:16].copy()]
    if NAME == "mlp":
        return [
            fill((512, 256), 5).astype(np.float32),
            {k: v.astype(np.float32) for k, v in network(256, 1024, 256).items()},
        ]
    if NAME == "train":
        return [network(64, 64, 10), fill((1797, 64), 5), np.eye(10)[np.arange(1797) * 7 % 10]]
    if NAME == "recurrent":
        return [fill((1, 64), 5), fill((64, 64), 6) * 0.2, fill((1000, 1, 64), 7)]
    if NAME == "small":
        return [np.arange(8) * 1.5, np.arange(8) * 0.5]
    sys.exit(3)


def total(r):
    if NAME in ("softmax", "layer-norm"):
        return float(np.sum(np.asarray(r)[17, :] * np.arange(1024, dtype=np.float32)))
    if NAME == "histogram":
        return float(np.sum(np.asarray(r)[:64] * np.arange(64)))
    if NAME == "mlp":
        return float(np.sum(np.asarray(r)[:, 0] * np.arange(512, dtype=np.float32)))
    if NAME == "train":
        return float(r[0]) + float(np.sum(np.asarray(r[1]["w1"]) * fill((64, 64), 6)))
    return float(np.sum(np.asarray(r)))


# ---- programs over a module that speaks NumPy's names (numpy, jax.numpy, torch) -------------------


def programs(m, erf, tanh_gelu):
    last = {"axis": 1, "keepdims": True}

    def cdf(x):
        return 0.5 * (1.0 + erf(x * 0.7071067811865476))

    def black_scholes(s, k, t, v):
        w = v * m.sqrt(t)
        d1 = (m.log(s / k) + (0.02 + 0.5 * v * v) * t) / w
        return s * cdf(d1) - k * m.exp(-0.02 * t) * cdf(d1 - w)

    def top(x):
        return m.amax(x, **last) if m.__name__ == "torch" else m.max(x, **last)

    def softmax(x):
        e = m.exp(x - top(x))
        return e / m.sum(e, **last)

    def correlation(x, y):
        a, b = x - m.mean(x), y - m.mean(y)
        return m.sum(a * b) / m.sqrt(m.sum(a * a) * m.sum(b * b))

    def layer_norm(x, gain, bias):
        c = x - m.mean(x, **last)
        return c / m.sqrt(m.mean(c * c, **last) + 1e-5) * gain + bias

    def kmeans(x, centres):
        nearest = m.argmin(m.sum((x[:, None, :] - centres) ** 2, axis=2), axis=1)
        one = m.eye(16, dtype=x.dtype)[nearest]
        return one.T @ x / m.maximum(m.sum(one, axis=0), m.ones(16, dtype=x.dtype))[:, None]

    def mlp(x, p):
        return tanh_gelu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    return {
        "black-scholes": black_scholes,
        "triad": lambda a, b: a + 3.0 * b,
        "chain": lambda x, y: ((((x * 1.5 + y) * x - 2.0) * y + x) * 0.25 - y) * x + 1.0,
        "hypot": lambda x, y: m.sqrt(x * x + y * y),
        "squares": lambda x: m.sum(x * x),
        "moments": lambda x: m.sum(x) + m.sum(x * x) + m.max(x),
        "softmax": softmax,
        "layer-norm": layer_norm,
        "jacobi": lambda a: 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]),
        "gelu": lambda x: 0.5 * x * (1.0 + erf(x * 0.7071067811865476)),
        "columns": lambda x: m.sum(x, axis=0),
        "correlation": correlation,
        "kmeans": kmeans,
        "cumsum": lambda x: m.cumsum(x, 0),
        "mlp": mlp,
        "small": lambda a, b: a + b,
    }


def loss_of(m):
    def loss(p, x, labels):
        h = m.tanh(x @ p["w1"] + p["b1"])
        z = h @ p["w2"] + p["b2"]
        t = (m.amax if m.__name__ == "torch" else m.max)(z, axis=1, keepdims=True)
        every = m.log(m.sum(m.exp(z - t), axis=1, keepdims=True)) + t
        return -m.mean(m.sum((z - every) * labels, axis=1))

    return loss


def with_numpy():
    if PEER == "numpy" and NAME in ("black-scholes", "gelu") and importlib.util.find_spec("scipy") is None:
        sys.exit(3)  # NumPy has no erf
    erf = None
    if NAME in ("black-scholes", "gelu"):
        from scipy.special import erf

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.float32(0.7978845608028654) * (x + np.float32(0.044715) * x * x * x)))

    def recurrent(h, w, xs):
        sums = np.empty(len(xs))
        for i, x in enumerate(xs):
            h = np.tanh(h @ w + x)
            sums[i] = np.sum(h)
        return np.sum(h) + np.sum(sums)

    table = programs(np, erf, gelu)
    table["recurrent"] = recurrent
    table["histogram"] = lambda x: np.bincount((x * 32.0).astype(np.int64), minlength=64)
    return table, lambda f: f, inputs(), lambda r: r


def with_numexpr():
    import numexpr

    numexpr.set_num_threads(THREADS)
    text = {
        "triad": "x0 + 3.0 * x1",
        "chain": "((((x0 * 1.5 + x1) * x0 - 2.0) * x1 + x0) * 0.25 - x1) * x0 + 1.0",
        "hypot": "sqrt(x0 * x0 + x1 * x1)",
        "squares": "sum(x0 * x0)",
        "small": "x0 + x1",
    }
    if NAME not in text:
        sys.exit(3)
    return (
        {NAME: lambda *xs: numexpr.evaluate(text[NAME], {f"x{i}": x for i, x in enumerate(xs)})},
        lambda f: f,
        inputs(),
        lambda r: r,
    )


def with_numba():
    import numba

    numba.set_num_threads(min(THREADS, numba.config.NUMBA_NUM_THREADS))
    fast = numba.njit(parallel=True, fastmath=True)

    @fast
    def black_scholes(s, k, t, v):
        out = np.empty_like(s)
        for i in numba.prange(len(s)):
            w = v[i] * math.sqrt(t[i])
            d1 = (math.log(s[i] / k[i]) + (0.02 + 0.5 * v[i] * v[i]) * t[i]) / w
            d2 = d1 - w
            n1 = 0.5 * (1.0 + math.erf(d1 * 0.7071067811865476))
            n2 = 0.5 * (1.0 + math.erf(d2 * 0.7071067811865476))
            out[i] = s[i] * n1 - k[i] * math.exp(-0.02 * t[i]) * n2
        return out

    @fast
    def squares(x):
        s = 0.0
        for i in numba.prange(len(x)):
            s += x[i] * x[i]
        return s

    @fast
    def softmax(x):
        out = np.empty_like(x)
        for i in numba.prange(x.shape[0]):
            e = np.exp(x[i] - np.max(x[i]))
            out[i] = e / np.sum(e)
        return out

    @fast
    def jacobi(a):
        out = np.empty((a.shape[0] - 2, a.shape[1] - 2))
        for i in numba.prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = 0.2 * (a[i + 1, j + 1] + a[i + 1, j] + a[i + 1, j + 2] + a[i + 2, j + 1] + a[i, j + 1])
        return out

    @numba.njit(fastmath=True)
    def histogram(x):
        out = np.zeros(64, np.int64)
        for v in x:
            out[int(v * 32.0)] += 1
        return out

    @numba.njit(fastmath=True)
    def kmeans(x, centres):
        sums, counts = np.zeros_like(centres), np.zeros(len(centres))
        for i in range(len(x)):
            best, at = np.inf, 0
            for k in range(len(centres)):
                d = 0.0
                for j in range(x.shape[1]):
                    d += (x[i, j] - centres[k, j]) ** 2
                if d < best:
                    best, at = d, k
            counts[at] += 1
            sums[at] += x[i]
        return sums / np.maximum(counts, 1.0).reshape(-1, 1)

    table = {
        "black-scholes": black_scholes,
        "squares": squares,
        "softmax": softmax,
        "jacobi": jacobi,
        "histogram": histogram,
        "kmeans": kmeans,
        "triad": fast(lambda a, b: a + 3.0 * b),
        "chain": fast(lambda x, y: ((((x * 1.5 + y) * x - 2.0) * y + x) * 0.25 - y) * x + 1.0),
        "hypot": fast(lambda x, y: np.sqrt(x * x + y * y)),
        "cumsum": numba.njit(lambda x: np.cumsum(x)),
        "small": numba.njit(lambda a, b: a + b),
    }
    return table, lambda f: f, inputs(), lambda r: r


def with_jax():
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if THREADS < os.cpu_count():  # it takes as many threads as the process may use processors
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-THREADS:])
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    table = programs(jnp, jax.scipy.special.erf, jax.nn.gelu)
    value_and_grad = jax.value_and_grad(loss_of(jnp))

    def train(p, x, labels):
        v, g = value_and_grad(p, x, labels)
        return v, jax.tree.map(lambda a, d: a - 0.1 * d, p, g)

    def recurrent(h, w, xs):
        def step(s, x):
            n = jnp.tanh(s @ w + x)
            return n, jnp.sum(n)

        end, sums = jax.lax.scan(step, h, xs)
        return jnp.sum(end) + jnp.sum(sums)

    table.update(
        train=train, recurrent=recurrent, histogram=lambda x: jnp.bincount((x * 32.0).astype(jnp.int64), length=64)
    )
    given = jax.tree.map(jnp.asarray, inputs())
    return table, (lambda f: f) if NAME == "small" else jax.jit, given, jax.block_until_ready


def with_torch():
    import torch

    torch.set_num_threads(THREADS)
    table = programs(torch, torch.erf, lambda x: torch.nn.functional.gelu(x, approximate="tanh"))
    loss = loss_of(torch)

    def train(p, x, labels):
        p = {k: v.detach().requires_grad_() for k, v in p.items()}
        v = loss(p, x, labels)
        v.backward()
        return v.detach(), {k: (a - 0.1 * a.grad).detach() for k, a in p.items()}

    def recurrent(h, w, xs):
        sums = []
        for x in xs:
            h = torch.tanh(h @ w + x)
            sums.append(torch.sum(h))
        return torch.sum(h) + torch.sum(torch.stack(sums))

    table.update(
        train=train, recurrent=recurrent, histogram=lambda x: torch.bincount((x * 32.0).to(torch.int64), minlength=64)
    )

    def tensor(v):
        return {k: torch.from_numpy(a) for k, a in v.items()} if isinstance(v, dict) else torch.from_numpy(v)

    plain = NAME in ("small", "train", "recurrent")
    return table, (lambda f: f) if plain else torch.compile, [tensor(v) for v in inputs()], lambda r: r


def main():
    table, compiled, given, settle = globals()[f"with_{PEER}"]()
    if NAME not in table:
        sys.exit(3)
    f = compiled(table[NAME])
    if NAME == "small":  # a thousand sums a round, one is told
        def many():
            for _ in range(1000):
                r = f(*given)
            return r

        r, best = least(many, settle)
        best /= 1000
    else:
        r, best = least(lambda: f(*given), settle)
    print(total(r), best)


main()
