# A decision tree and a forest of trees on handwritten digits, written with records and recursion; NumPy.
# draws: 1
from pathlib import Path

import numpy as np

data = np.loadtxt(Path(__file__).parents[3] / "examples/digits.csv", delimiter=",")
x, y = data[:900, :64], data[:900, 64].astype(int)
train, test = np.arange(600), np.arange(600, 900)


def best_cut(v, labels):
    order = np.argsort(v, kind="stable")
    hot = np.eye(10)[labels[order]]
    left = np.cumsum(hot, axis=0)[:-1]
    right = hot.sum(axis=0) - left
    n = np.arange(1, len(v))
    gini = n - np.sum(left**2, axis=1) / n + (len(v) - n) - np.sum(right**2, axis=1) / (len(v) - n)
    ordered = v[order]
    cost = np.where(ordered[1:] > ordered[:-1], gini, np.inf)
    at = np.argmin(cost)
    return cost[at], (ordered[at] + ordered[at + 1]) / 2


def grow(x, y, depth, features, rng):
    counts = np.bincount(y, minlength=10)
    if depth == 0 or len(y) < 4 or counts.max() == len(y):
        return {"label": np.argmax(counts)}
    best, feature, cut = np.inf, -1, 0.0
    for f in rng.permutation(64)[:features]:
        cost, at = best_cut(x[:, f], y)
        if cost < best:
            best, feature, cut = cost, f, at
    if feature < 0:
        return {"label": np.argmax(counts)}
    low = x[:, feature] <= cut
    return {"feature": feature, "cut": cut, "low": grow(x[low], y[low], depth - 1, features, rng),
            "high": grow(x[~low], y[~low], depth - 1, features, rng)}


def classify(tree, row):
    while "label" not in tree:
        tree = tree["low"] if row[tree["feature"]] <= tree["cut"] else tree["high"]
    return tree["label"]


def leaves(tree):
    return 1 if "label" in tree else leaves(tree["low"]) + leaves(tree["high"])


tree = grow(x[train], y[train], 8, 64, np.random.default_rng(1))
said = np.array([classify(tree, x[i]) for i in test])
print(f"one tree: {leaves(tree)} leaves, right on more than 60 %: {np.mean(said == y[test]) > 0.6}")

votes = np.zeros((len(test), 10))
for t in range(10):
    rng = np.random.default_rng(100 + t)
    rows = rng.choice(train, len(train))
    own = grow(x[rows], y[rows], 8, 8, rng)
    for i, row in enumerate(test):
        votes[i, classify(own, x[row])] += 1
forest = np.argmax(votes, axis=1)
print("a forest of ten does better:", np.mean(forest == y[test]) > np.mean(said == y[test]))
