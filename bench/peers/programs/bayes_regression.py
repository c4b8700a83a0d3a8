# Bayesian linear regression: the exact posterior, and the same by Hamiltonian Monte Carlo; NumPy.
# draws: 1 5
import numpy as np

rng = np.random.default_rng(21)
n = 40
x = rng.uniform(-2, 2, n)
y = 1.5 - 0.8 * x + 0.3 * rng.normal(size=n)
a = np.stack((np.ones(n), x), axis=1)
noise, wide = 0.3, 10.0

precision = a.T @ a / noise**2 + np.eye(2) / wide**2
cov = np.linalg.inv(precision)
m = cov @ (a.T @ y) / noise**2
print(f"exact: intercept {m[0]:.3f} +- {np.sqrt(cov[0, 0]):.3f}, slope {m[1]:.3f} +- {np.sqrt(cov[1, 1]):.3f}")


def log_posterior(w):
    return -0.5 * np.sum(((y - a @ w) / noise) ** 2) - 0.5 * np.sum((w / wide) ** 2)


def force(w):
    return a.T @ (y - a @ w) / noise**2 - w / wide**2


def hmc(w, size, moves):
    p = rng.normal(size=w.shape)
    q, r = w, p + size / 2 * force(w)
    for i in range(moves):
        q = q + size * r
        r = r + (size / 2 if i == moves - 1 else size) * force(q)
    change = log_posterior(q) - np.sum(r**2) / 2 - log_posterior(w) + np.sum(p**2) / 2
    yes = np.log(rng.uniform()) < change
    return (q if yes else w), yes


w = np.zeros(2)
draws, accepted = [], 0
for i in range(1500):
    w, yes = hmc(w, 0.04, 7)
    if i >= 300:
        draws.append(w)
        accepted += yes
d = np.stack(draws)
print(f"draws {d.shape}, more than 80 % accepted: {accepted / len(d) > 0.8}")
print("means agree:", np.all(np.abs(d.mean(axis=0) - m) < 0.03))
print("errors agree:", np.allclose(d.std(axis=0), np.sqrt(np.diag(cov)), rtol=0.15))

at = np.array([1.0, 2.5])
print(f"at x = 2.5: {at @ m:.2f} +- {np.sqrt(at @ cov @ at + noise**2):.2f}")
