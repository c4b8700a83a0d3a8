# Linear programs, dual prices; SciPy.
# rounding: 3-5
import numpy as np
from scipy.optimize import linprog


def simplex(c, a, b):
    found = linprog(-np.asarray(c), A_ub=a, b_ub=b)
    if found.status == 3:
        raise ValueError("the program has no largest value")
    return found.x, -found.fun, -found.ineqlin.marginals


c, a = np.array([120.0, 90.0]), np.array([[1.0, 1.0], [4.0, 2.0], [30.0, 25.0]])
b = np.array([40.0, 120.0, 1100.0])
x, value, prices = simplex(c, a, b)
print(f"wheat {x[0]:.2f}, barley {x[1]:.2f}, gain {value:.2f}")
print("limits kept:", np.all(a @ x <= b + 1e-9), "dual value:", f"{prices @ b:.2f}")
for name, price in zip(("land", "work", "money"), prices):
    print(f"one more of {name:<6} is worth {abs(price):.2f}")

rng = np.random.default_rng(6)
a2, b2, c2 = rng.uniform(size=(8, 12)), 1 + rng.uniform(size=8), rng.uniform(size=12)
x, value, prices = simplex(c2, a2, b2)
print("strong duality:", abs(prices @ b2 - value) < 1e-9)
print("dual feasible:", np.all(a2.T @ prices >= c2 - 1e-9))
try:
    simplex([1.0], [[-1.0]], [1.0])
except ValueError as e:
    print(e)
