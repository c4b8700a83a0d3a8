# Numbers between numbers: lines, a cubic spline, polynomials, surfaces; SciPy.
import numpy as np
from scipy.interpolate import BarycentricInterpolator, CubicSpline, RegularGridInterpolator


def runge(x):
    return 1 / (1 + 25 * x * x)


q = np.linspace(-1, 1, 1001)
print("largest error of 1 / (1 + 25 x^2)")
print(f"{'points':>8}{'lines':>10}{'spline':>10}{'equal':>10}{'Chebyshev':>10}")
for n in (5, 9, 17, 33):
    x = np.linspace(-1, 1, n)
    c = np.sort(np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n)))
    found = (np.interp(q, x, runge(x)), CubicSpline(x, runge(x), bc_type="natural")(q),
             BarycentricInterpolator(x, runge(x))(q), BarycentricInterpolator(c, runge(c))(q))
    print(f"{n:8}" + "".join(f"{np.max(np.abs(y - runge(q))):10.1e}" for y in found))

x = np.linspace(0, 2 * np.pi, 21)
s = CubicSpline(x, np.sin(x), bc_type="natural")
at = np.linspace(1, 5, 5)
print("slope of the spline of sin:", s(at, 1).round(4).tolist())
print("cos:                       ", np.cos(at).round(4).tolist())
print(f"area of the first half wave: {s.integrate(0, np.pi):.4f}")

z = np.arange(4)[:, None] * 10.0 + np.arange(5)
surface = RegularGridInterpolator((np.arange(4), np.arange(5)), z)
print("at (1.5, 2.25):", surface((1.5, 2.25)))
print("along the diagonal:", surface(np.stack((np.linspace(0, 3, 4), np.linspace(0, 4, 4)), 1)).round(2).tolist())
