# Who will come back? Logistic regression, folds, the curve of hits and false alarms, what matters; NumPy, SciPy.
# draws: 1-3 5-9 26-31
# left out: 10-25
import numpy as np
from scipy.special import erfc, expit

rng = np.random.default_rng(8)
n = 600
names = ("visits", "age", "spent", "noise")
raw = np.stack((5 * rng.exponential(size=n), 40 + 12 * rng.normal(size=n), np.exp(3 + 0.8 * rng.normal(size=n)),
                rng.normal(size=n)), axis=1)
odds = 0.35 * raw[:, 0] - 0.06 * (raw[:, 1] - 40) + 0.5 * np.log(raw[:, 2]) - 3.2
y = (rng.uniform(size=n) < expit(odds)).astype(float)
prepared = np.concatenate((raw[:, :2], np.log(raw[:, 2:3]), raw[:, 3:]), axis=1)


def fit(x, y, penalty):
    center, scale = x.mean(axis=0), x.std(axis=0)
    u = np.concatenate(((x - center) / scale, np.ones((len(x), 1))), axis=1)
    ridge = 2 * penalty * np.append(np.ones(x.shape[1]), 0)
    v = np.zeros(u.shape[1])
    for step in range(20):
        q = expit(u @ v)
        g = u.T @ (q - y) / len(y) + ridge * v
        curve = (u.T * (q * (1 - q))) @ u / len(y) + np.diag(ridge)
        if np.max(np.abs(g)) < 1e-10:
            break
        v = v - np.linalg.solve(curve, g)
    return {"w": v[:-1], "b": v[-1], "center": center, "scale": scale, "curve": curve}


def score(m, x):
    return expit((x - m["center"]) / m["scale"] @ m["w"] + m["b"])


def area(score, y):
    order = np.argsort(np.argsort(score)) + 1
    pos, neg = y.sum(), (1 - y).sum()
    return (np.sum(order * y) - pos * (pos + 1) / 2) / (pos * neg)


folds = np.split(rng.permutation(n), 5)
for penalty in (0.0, 0.01, 0.1):
    areas = []
    for i, test in enumerate(folds):
        train = np.concatenate(folds[:i] + folds[i + 1:])
        areas.append(area(score(fit(prepared[train], y[train], penalty), prepared[test]), y[test]))
    print(f"penalty {penalty:<5} area under the curve {np.mean(areas):.3f}",
          f"(folds {min(areas):.2f} to {max(areas):.2f})")

m = fit(prepared, y, 0.0)
errors = np.sqrt(np.diag(np.linalg.inv(m["curve"])) / n)[:-1]
print(f"{'':<8}{'weight':>8}{'error':>8}{'z':>8}{'p':>9}")
for name, w, e in zip(names, m["w"], errors):
    print(f"{name:<8}{w:8.3f}{e:8.3f}{w / e:8.2f}{erfc(abs(w / e) / np.sqrt(2.0)):9.1e}")

s = score(m, prepared)
ordered = np.argsort(-s)
hits = np.cumsum(y[ordered]) / y.sum()
alarms = np.cumsum(1 - y[ordered]) / (1 - y).sum()
print(f"area by trapezoids {np.trapezoid(hits, alarms):.4f}, by ranks {area(s, y):.4f}")
at = np.argmax(hits - alarms)
print(f"best threshold {s[ordered[at]]:.2f}: hits {hits[at]:.2f}, false alarms {alarms[at]:.2f}")
fifth = (s * 5).astype(int)
k = np.bincount(fifth)
for said, came, count in zip(np.bincount(fifth, s) / k, np.bincount(fifth, y) / k, k):
    print(f"said {said:.2f}, came {came:.2f} ({count})")
