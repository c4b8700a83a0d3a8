# Chance as a tool: integrals and their errors, fewer draws for the same error, walks, percolation; NumPy, SciPy.
# draws: 1-5 9-12
import numpy as np
from scipy.special import erfc


def estimate(v):
    return v.mean(), v.std(ddof=1) / np.sqrt(len(v))


rng = np.random.default_rng(2024)
n = 200000
x = rng.uniform(size=(n, 2))
area, off = estimate(4.0 * (np.sum(x * x, axis=1) < 1))
print(f"pi: {area:.3f} ± {off:.3f}, {abs(area - np.pi) < 4 * off}")

u = x[:, 0]
plain = np.exp(u)
mirrored = (np.exp(u) + np.exp(1 - u)) / 2
c = np.cov(np.stack((plain, u)))
control = plain - c[0, 1] / c[1, 1] * (u - 0.5)
truth, base = np.e - 1, plain.var()
for name, v in (("plain", plain), ("mirrored", mirrored), ("control", control)):
    m, e = estimate(v)
    print(f"{name:<9}variance {v.var():.5f}, {base / v.var():4.0f} times less, right: {abs(m - truth) < 4 * e}")

z = rng.normal(size=n) + 5
weight = np.where(z > 5, np.exp(-5 * z + 12.5), 0.0)
exact = 0.5 * erfc(5 / np.sqrt(2.0))
print(f"P(Z > 5): {weight.mean():.2e}, exact {exact:.2e}, plain draws that would see it: {np.sum(z - 5 > 5)}")

steps = 2 * (rng.uniform(size=(2000, 1000)) < 0.5) - 1
walk = np.cumsum(steps, axis=1)
for k in (10, 100, 1000):
    print(f"after {k:4} steps: {np.sqrt(np.mean(walk[:, k - 1] ** 2.0)) / np.sqrt(k):.1f} times the root")
turns = np.sum(walk[:, 1::2] == 0, axis=1)
print(f"walks that never come home: {np.mean(turns == 0):.3f}, by the arc sine law {1 / np.sqrt(np.pi * 500):.3f}")


def runs_through(open):
    wet = np.zeros(open.shape, bool)
    now = np.pad(open[:1], ((0, len(open) - 1), (0, 0)))
    while np.any(now != wet):
        wet = now
        p = np.pad(wet, 1)
        now = open & (wet | p[2:, 1:-1] | p[:-2, 1:-1] | p[1:-1, 2:] | p[1:-1, :-2])
    return np.any(wet[-1])


for share in (0.5, 0.59, 0.7):
    print(f"share {share}: through in {sum(runs_through(rng.uniform(size=(24, 24)) < share) for _ in range(40))} of 40")
