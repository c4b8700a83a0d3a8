# Groups of points: k-means++ to begin with, Lloyd's steps, and how many groups there are; NumPy.
# draws: 1-5 7-10
import numpy as np


def distances(x, centres):
    d = x[:, None, :] - centres[None, :, :]
    return np.sum(d * d, axis=-1)


def first_centres(rng, x, k):
    centres = x[rng.integers(len(x))][None, :]
    for i in range(1, k):
        nearest = distances(x, centres).min(axis=1)
        at = rng.choice(len(x), p=nearest / nearest.sum())
        centres = np.concatenate((centres, x[at][None, :]))
    return centres


def kmeans(rng, x, k, steps=100):
    centres = first_centres(rng, x, k)
    labels = distances(x, centres).argmin(axis=1)
    for step in range(steps):
        member = np.eye(k)[labels]
        centres = (member.T @ x) / np.maximum(member.sum(axis=0), 1)[:, None]
        now = distances(x, centres).argmin(axis=1)
        if np.all(now == labels):
            break
        labels = now
    return {"centres": centres, "labels": labels, "inertia": distances(x, centres).min(axis=1).sum()}


def silhouette(x, labels, k):
    d = np.sqrt(distances(x, x))
    member = np.eye(k)[labels]
    sizes = member.sum(axis=0)
    sums = d @ member
    own = sums[np.arange(len(x)), labels] / np.maximum(sizes[labels] - 1, 1)
    following = np.where(member > 0, np.inf, sums / sizes).min(axis=1)
    return np.mean((following - own) / np.maximum(own, following))


rng = np.random.default_rng(11)
truth = np.array([[0.0, 0.0], [6.0, 1.0], [2.0, 7.0], [-5.0, 5.0]])
n = 150
which = np.repeat(np.arange(len(truth)), n)
x = truth[which] + rng.normal(size=(len(truth) * n, 2))
best, best_score = None, -1.0
for k in range(2, 7):
    fit = min((kmeans(rng, x, k) for _ in range(5)), key=lambda f: f["inertia"])
    score = silhouette(x, fit["labels"], k)
    print(f"{k} groups: inertia {fit['inertia']:8.1f}, silhouette {score:.3f}")
    if score > best_score:
        best, best_score = fit, score
k = len(best["centres"])
print(f"best: {k} groups")
for i in best["centres"][:, 0].argsort():
    c = best["centres"][i]
    print(f"  centre ({c[0]:5.2f}, {c[1]:5.2f}), {np.count_nonzero(best['labels'] == i)} points")
table = np.zeros((len(truth), k), int)
np.add.at(table, (which, best["labels"]), 1)
print(f"purity {table.max(axis=0).sum() / len(x):.3f}")
