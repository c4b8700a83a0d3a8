# The heat equation on a plate: explicit steps, an implicit solver by tridiagonal systems; NumPy and SciPy.
import numpy as np
from scipy.linalg import solve_banded


def laplacian(u):
    p = np.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


n = 31
x = np.linspace(0, 1, n + 2)[1:-1]
h = 1 / (n + 1)
u0 = np.outer(np.sin(np.pi * x), np.sin(2 * np.pi * x))
dt, steps = 0.2 * h**2, 200
u = u0
for i in range(steps):
    u = u + dt / h**2 * laplacian(u)
exact = u0 * np.exp(-5 * np.pi**2 * dt * steps)
print(f"explicit: error {np.max(np.abs(u - exact)):.1e}")

big = 10 * dt
r = big / (2 * h**2)
bands = np.array([[0.0] + [-r] * (n - 1), [1 + 2 * r] * n, [-r] * (n - 1) + [0.0]])


def second(v):
    p = np.pad(v, ((1, 1), (0, 0)))
    return p[2:] + p[:-2] - 2 * v


v = u0
for i in range(steps // 10):
    v = solve_banded((1, 1), bands, v + r * second(v.T).T)
    v = solve_banded((1, 1), bands, (v + r * second(v)).T).T
print(f"implicit: error {np.max(np.abs(v - exact)):.1e}")
print("heat only falls:", np.sum(u**2) < np.sum(u0**2), "symmetric:", np.allclose(u, u[::-1]))
