# PageRank of a small web, by iteration on a matrix and as the solution of a linear system; NumPy.
import numpy as np

links = {"home": ("about", "shop", "blog"), "about": ("home",), "shop": ("home", "cart"), "cart": ("shop", "home"),
         "blog": ("home", "about", "shop"), "lost": ()}
names = list(links)
n = len(names)
place = {name: i for i, name in enumerate(names)}
m = np.zeros((n, n))
for source, targets in links.items():
    if not targets:
        m[:, place[source]] = 1 / n
    for to in targets:
        m[place[to], place[source]] = 1 / len(targets)
assert np.allclose(m.sum(axis=0), 1)

damping, rank, steps = 0.85, np.ones(n) / n, 0
while True:
    following = damping * (m @ rank) + (1 - damping) / n
    steps += 1
    change = np.sum(np.abs(following - rank))
    rank = following
    if change < 1e-12:
        break
print(f"{steps} steps, ranks add up to {rank.sum():.6f}")
for i in np.argsort(-rank, kind="stable"):
    print(f"{names[i]:<6} {rank[i]:.4f}")

exact = np.linalg.solve(np.eye(n) - damping * m, np.full(n, (1 - damping) / n))
print("solved directly:", np.allclose(rank, exact))


def gain(i):
    changed = m.copy()
    changed[:, place["lost"]] = np.eye(n)[i]
    return np.linalg.solve(np.eye(n) - damping * changed, np.full(n, (1 - damping) / n))[place["home"]]


print("lost should link to", names[np.argmax([gain(i) for i in range(n)])])
