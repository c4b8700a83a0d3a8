# An epidemic: a compartment model is fitted to case counts; a stochastic run shows how much chance there is; SciPy.
# draws: 1-3 5
import numpy as np
from scipy.optimize import least_squares


def simulate(p, days):
    beta, gamma = p
    s, i = 0.999, 0.001
    out = np.empty(days)
    for t in range(days):
        new = beta * s * i
        s, i = s - new, i + new - gamma * i
        out[t] = new
    return out


rng = np.random.default_rng(13)
days, population = 80, 10000.0
truth = (0.35, 0.12)
expected = population * simulate(truth, days)
cases = np.maximum(np.round(expected + np.sqrt(expected) * rng.normal(size=days)), 0)
print(f"{cases.sum():.0f} cases, most on day {cases.argmax()}")

fit = least_squares(lambda q: np.sqrt(population * simulate(np.exp(q), days)) - np.sqrt(cases), np.log([0.5, 0.2]))
p = np.exp(fit.x)
print(f"beta {p[0]:.3f}, gamma {p[1]:.3f}, reproduction number {p[0] / p[1]:.2f} of {truth[0] / truth[1]:.2f}")
less = population * simulate((0.8 * p[0], p[1]), days).sum()
print(f"with a fifth less contact {less / cases.sum():.0%} of the cases")
h = 1e-6
slope = (simulate((p[0] + h, p[1]), days).sum() - simulate((p[0] - h, p[1]), days).sum()) / (2 * h)
print("more contact, more cases:", slope > 0)


def chance(rng, n):
    s, i, peak = n - 5, 5, 0
    for day in range(120):
        caught = np.sum(rng.uniform(size=s) < 1 - np.exp(-p[0] * i / n))
        healed = np.sum(rng.uniform(size=i) < 1 - np.exp(-p[1]))
        s, i = s - caught, i + caught - healed
        peak = max(peak, i)
    return n - s, peak


sizes = [chance(np.random.default_rng(k), 500)[0] for k in range(12)]
print(f"of 500 people {min(sizes)} to {max(sizes)} fall ill in twelve runs")
