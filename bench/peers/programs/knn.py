# The k nearest neighbours of handwritten digits; the best k is chosen by cross-validation; NumPy.
# draws: 6
from pathlib import Path

import numpy as np

data = np.loadtxt(Path(__file__).parents[3] / "examples/digits.csv", delimiter=",")
order = np.random.default_rng(1).permutation(len(data))[:600]
x, y = data[order, :64], data[order, 64].astype(int)


def distances(a, b):
    return np.sum(a**2, 1, keepdims=True) + np.sum(b**2, 1) - 2 * (a @ b.T)


def classify(known, labels, new, k):
    near = np.argpartition(distances(new, known), k - 1, axis=1)[:, :k]
    return np.eye(10)[labels[near]].sum(axis=1).argmax(axis=1)


folds = 5
part = np.arange(len(x)) % folds
for k in (1, 3, 5, 9, 15):
    right = 0
    for f in range(folds):
        train, held = part != f, part == f
        right += np.sum(classify(x[train], y[train], x[held], k) == y[held])
    print(f"k = {k:>2}: accuracy above 90 %: {right / len(x) > 0.9}")

train, held = np.arange(450), np.arange(450, 600)
said = classify(x[train], y[train], x[held], 3)
table = np.zeros((10, 10), int)
np.add.at(table, (y[held], said), 1)
print("confusions", table.sum() - table.trace(), "of", table.sum())
print("rows add up:", np.all(table.sum(axis=1) == np.bincount(y[held], minlength=10)))
