# Regression by a Gaussian process: the length scale is found by the marginal likelihood; SciPy.
import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular
from scipy.optimize import minimize

x = np.array([-4.0, -3.1, -2.2, -1.0, 0.3, 1.1, 2.4, 3.6])
y = np.sin(x) + 0.05 * np.array([1.0, -1.0, 0.5, -0.5, 1.0, 0.0, -1.0, 0.5])


def kernel(a, b, length, scale):
    return scale**2 * np.exp(-0.5 * ((a[:, None] - b) / length) ** 2)


def cost(theta):
    length, scale, noise = np.exp(theta)
    l = cholesky(kernel(x, x, length, scale) + (noise**2 + 1e-10) * np.eye(len(x)), lower=True)
    alpha = solve_triangular(l, y, lower=True)
    return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diag(l))) + 0.5 * len(x) * np.log(2 * np.pi)


start = np.log([1.0, 1.0, 0.1])
found = minimize(cost, start)
length, scale, noise = np.exp(found.x)
print(f"length {length:.2f}, scale {scale:.2f}, noise {noise:.2f}, converged {found.success}")
print(f"likelihood from {-cost(start):.3f} to {-found.fun:.3f}")


def predict(at):
    k = kernel(x, x, length, scale) + (noise**2 + 1e-10) * np.eye(len(x))
    s = kernel(x, at, length, scale)
    mean = s.T @ solve(k, y)
    cov = kernel(at, at, length, scale) - s.T @ solve(k, s)
    return mean, np.sqrt(np.maximum(np.diag(cov), 0))


at = np.linspace(-5, 5, 11)
m, s = predict(at)
for t, mean, std in zip(at, m, s):
    print(f"{t:5.1f}  {mean:6.2f} +- {std:.2f}  sin {np.sin(t):6.2f}")
inside = np.mean(np.abs(m - np.sin(at)) < 3 * s + 0.1)
print(f"{inside:.0%} within three standard deviations")
