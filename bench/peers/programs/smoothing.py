# Yearly sunspot numbers: moving averages, exponential smoothing, autocorrelation, a forecast; NumPy and SciPy.
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import minimize
from scipy.special import expit

data = np.loadtxt(Path(__file__).parents[3] / "examples/sunspots.csv", delimiter=",", skiprows=1)
years, spots = data.T
print(f"{len(years)} years from {years[0]:.0f} to {years[-1]:.0f}, mean {spots.mean():.1f}")
eleven = sliding_window_view(spots, 11).mean(axis=-1)
print(f"mean of eleven years: {eleven.min():.1f} to {eleven.max():.1f},",
      f"most around {years[5 + eleven.argmax()]:.0f}")


def exponential(x, alpha):
    level, before = x[0], []
    for v in x.tolist():
        before.append(level)
        level = alpha * v + (1 - alpha) * level
    return np.array(before)


def squared_error(v):
    return np.mean((spots - exponential(spots, expit(v[0]))) ** 2)


best = minimize(squared_error, [0.0])
print(f"weight {expit(best.x[0]):.3f}, error {np.sqrt(best.fun):.1f} against {spots.std():.1f} of the mean")


def autocorrelation(x, most):
    d = x - x.mean()
    return np.array([np.sum(d[:len(x) - k] * d[k:]) for k in range(most + 1)]) / np.sum(d**2)


r = autocorrelation(spots, 30)
peak = 6 + r[6:].argmax()
print(f"the cycle has {peak} years, correlation {r[peak]:.2f}")

order, cut = 9, 250
windows = sliding_window_view(spots, order + 1)
past, now = windows[:, :-1], windows[:, -1]
a = np.concatenate((past, np.ones((len(past), 1))), axis=1)
w = np.linalg.lstsq(a[:cut], now[:cut])[0]
errors = now[cut:] - a[cut:] @ w
naive = np.sqrt(np.mean(np.diff(now[cut:]) ** 2))
print(f"one year ahead: error {np.sqrt(np.mean(errors**2)):.1f}, of last year's value {naive:.1f}")
