"""Inputs of the twenty kernels for a size of sizes.json: a record (dict) of arrays and numbers, the same every time."""
import json
import os

import numpy as np

SIZES = json.load(open(os.path.join(os.path.dirname(__file__), "sizes.json")))


def flow(p):
    nx, ny = p["nx"], p["ny"]
    zeros = {k: np.zeros((ny, nx)) for k in "uvp"}
    return {**p, **zeros, "dx": 2 / (nx - 1), "dy": 2 / (ny - 1), "dt": 0.1 / ((nx - 1) * (ny - 1))}


def cholesky(p, rng):
    a = rng.random((p["N"], p["N"]))
    return {"A": a @ a.T + p["N"] * np.eye(p["N"])}


def layers(p, rng):
    """LeNet-5 on H × W images of one channel."""
    def weights(*shape):
        return (rng.random(shape, dtype=np.float32) - np.float32(0.5)) / np.float32(np.sqrt(np.prod(shape[:-1])))

    side = [((p[k] - 4) // 2 - 4) // 2 for k in "HW"]
    flat = side[0] * side[1] * 16
    shapes = {
        "conv1": (5, 5, 1, 6),
        "conv1bias": (6,),
        "conv2": (5, 5, 6, 16),
        "conv2bias": (16,),
        "fc1w": (flat, 120),
        "fc1b": (120,),
        "fc2w": (120, 84),
        "fc2b": (84,),
        "fc3w": (84, 10),
        "fc3b": (10,),
    }
    return {
        "input": rng.random((p["N"], p["H"], p["W"], 1), dtype=np.float32),
        **{k: weights(*s) for k, s in shapes.items()},
    }


def nbody(p, rng):
    n = p["N"]
    return {
        **p,
        "mass": 20.0 * np.ones((n, 1)) / n,
        "pos": rng.standard_normal((n, 3)),
        "vel": rng.standard_normal((n, 3)),
        "Nt": int(np.ceil(p["tEnd"] / p["dt"])),
    }


def sparse(p, rng):
    rows = np.sort(rng.integers(0, p["M"], p["nnz"]))
    starts = np.searchsorted(rows, np.arange(p["M"] + 1))
    return {
        "A_row": starts.astype(np.int64),
        "A_col": rng.integers(0, p["N"], p["nnz"]),
        "A_val": rng.random(p["nnz"]),
        "x": rng.random(p["N"]),
    }


def columns(p, rng):
    i, j, k = p["I"], p["J"], p["K"]
    fields = {name: rng.random((i, j, k)) for name in ("utens_stage", "u_stage", "u_pos", "utens")}
    return {**fields, "wcon": rng.random((i + 1, j, k)), "dtr_stage": 3.0 / 20.0}


def make(name, size):
    p = SIZES[name][size]
    n = p.get("N", 0)
    rng = np.random.default_rng(42)
    f32 = lambda *shape: rng.random(shape, dtype=np.float32)
    return {
        "adist": lambda: {k: rng.random(n) * 3 for k in ("theta_1", "phi_1", "theta_2", "phi_2")},
        "azimhist": lambda: {"data": rng.random(n), "radius": rng.random(n), "npt": p["npt"]},
        "cavtflow": lambda: flow(p),
        "chanflow": lambda: flow(p),
        "cholesky": lambda: cholesky(p, rng),
        "conv2d": lambda: {
            "input": f32(n, p["H"], p["W"], p["C_in"]),
            "weights": f32(p["K"], p["K"], p["C_in"], p["C_out"]),
            "bias": f32(p["C_out"]),
        },
        "crc16": lambda: {"data": rng.integers(0, 256, n)},
        "deriche": lambda: {"alpha": 0.25, "imgIn": rng.random((p["W"], p["H"]))},
        # diagonally dominant: the order of sums shows in no digit
        "durbin": lambda: {"r": 0.25 * rng.random(n) / (1.0 + np.arange(n)) ** 1.5},
        "fdtd_2d": lambda: {
            "TMAX": p["TMAX"],
            **{k: rng.random((p["NX"], p["NY"])) for k in ("ex", "ey", "hz")},
            "_fict_": rng.random(p["TMAX"]),
        },
        "npgofast": lambda: {"a": rng.random((n, n))},
        "hdiff": lambda: {
            "in_field": rng.random((p["I"] + 4, p["J"] + 4, p["K"])),
            "coeff": rng.random((p["I"], p["J"], p["K"])),
        },
        "heat3d": lambda: {"TSTEPS": p["TSTEPS"], "A": rng.random((n, n, n)), "B": rng.random((n, n, n))},
        "jacobi2d": lambda: {"TSTEPS": p["TSTEPS"], "A": rng.random((n, n)), "B": rng.random((n, n))},
        "lenet": lambda: layers(p, rng),
        "nbody": lambda: nbody(p, rng),
        "seidel2d": lambda: {"TSTEPS": p["TSTEPS"], "N": n, "A": rng.random((n, n))},
        "softmax": lambda: {"x": f32(n, p["H"], p["SM"], p["SM"])},
        "spmv": lambda: sparse(p, rng),
        "vadv": lambda: columns(p, rng),
    }[name]()
