# Where functions are zero: by halving, by Newton, of many at once, of systems, of polynomials; SciPy.
import numpy as np
from scipy.optimize import bisect, brentq, newton, root


def kepler(m, e):
    return newton(lambda x: x - e * np.sin(x) - m, m, lambda x: 1 - e * np.cos(x), tol=1e-12)


print("Kepler, e = 0.3:")
for m in (0.5, 1.0, 2.0, 3.0):
    print(f"  M = {m}: E = {kepler(m, 0.3):.8f}")
places = np.linspace(0, np.pi, 1000)
many = kepler(places, 0.3)
print(f"a thousand at once, all right: {np.allclose(many - 0.3 * np.sin(many), places, atol=1e-12)}")
x = kepler(1.0, 0.3)
print(f"dE/de at M = 1: {np.sin(x) / (1 - 0.3 * np.cos(x)):.6f}")


def drag(v):
    return 0.3 * v**1.8 + 2 * v - 100


print(f"terminal speed: {brentq(drag, 0.0, 100.0):.6f}, by halving {bisect(drag, 0.0, 100.0):.6f}")
try:
    brentq(drag, 50.0, 100.0)
except ValueError:
    print("no change of sign: value")

for start in ([2.0, 0.3], [0.3, 2.0], [-2.0, -0.3]):
    r = root(lambda p: (p[0] ** 2 + p[1] ** 2 - 4, p[0] * p[1] - 1), start, tol=1e-10).x
    print(f"circle and hyperbola: ({r[0]:.6f}, {r[1]:.6f})")

print("roots of x^3 - 6x^2 + 11x - 6:", np.sort(np.roots([1.0, -6.0, 11.0, -6.0]).real).round(10).tolist())
z = np.roots([1.0, 0.0, 0.0, -1.0])
print(f"cube roots of 1: {np.sum(np.abs(z**3 - 1) < 1e-12)} of {len(z)}")

w, h = 48, 24
plane = np.linspace(-1.5, 1.5, w) + 1j * np.linspace(-1.5, 1.5, h)[:, None]
for step in range(40):
    plane = plane - (plane**3 - 1) / (3 * plane**2)
turns = (np.round(np.angle(plane) / (2 * np.pi / 3)).astype(int) + 3) % 3
for row in turns:
    print("".join(".+#"[k] for k in row))
