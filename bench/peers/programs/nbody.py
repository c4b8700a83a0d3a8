# Bodies under gravity: the leapfrog method keeps the energy, and an orbit comes out as Kepler says; NumPy.
# rounding: 1
import numpy as np


def accelerations(x, mass):
    d = x[None] - x[:, None]
    r2 = np.sum(d**2, axis=-1) + np.eye(len(x))
    return np.sum(mass[None, :, None] * d / r2[..., None] ** 1.5, axis=1)


def energy(x, v, mass):
    d = x[None] - x[:, None]
    r = np.sqrt(np.sum(d**2, axis=-1) + np.eye(len(x)))
    pairs = np.triu(np.outer(mass, mass) / r, 1)
    return 0.5 * np.sum(mass * np.sum(v**2, axis=1)) - np.sum(pairs)


def leapfrog(x, v, mass, dt, n):
    a = accelerations(x, mass)
    for i in range(n):
        v = v + dt / 2 * a
        x = x + dt * v
        a = accelerations(x, mass)
        v = v + dt / 2 * a
    return x, v


mass = np.array([1.0, 1e-6])
x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
v = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
n = 2000
x1, v1 = leapfrog(x, v, mass, 2 * np.pi / n, n)
off = abs(energy(x1, v1, mass) - energy(x, v, mass))
print(f"back within {np.linalg.norm(x1[1] - x[1]):.0e}, energy off by {off:.0e}")

rng = np.random.default_rng(2)
m = np.ones(24) / 24
p = rng.normal(size=(24, 3))
w = 0.3 * rng.normal(size=(24, 3))
w -= w.mean(axis=0)
p2, w2 = leapfrog(p, w, m, 0.002, 300)
print("momentum stays 0:", np.max(np.abs(np.sum(m[:, None] * w2, axis=0))) < 1e-14)
print("energy kept:", abs(energy(p2, w2, m) / energy(p, w, m) - 1) < 0.01)
