# Shortest paths: Dijkstra, Floyd and Warshall, (min, +) products; NumPy and SciPy.
import numpy as np
from scipy.sparse.csgraph import dijkstra, floyd_warshall

names = ("A", "B", "C", "D", "E", "F")
roads = ((0, 1, 7.0), (0, 2, 9.0), (0, 5, 14.0), (1, 2, 10.0), (1, 3, 15.0), (2, 3, 11.0), (2, 5, 2.0),
         (3, 4, 6.0), (4, 5, 9.0))
n = len(names)
d = np.where(np.eye(n) == 1, 0.0, np.inf)
for a, b, w in roads:
    d[a, b] = d[b, a] = w

best, previous = dijkstra(d, indices=0, return_predecessors=True)
for k in range(1, n):
    path, at = [names[k]], previous[k]
    while at >= 0:
        path.insert(0, names[at])
        at = previous[at]
    print(f"{names[k]}: {best[k]:4.0f} by {' '.join(path)}")

all_pairs = floyd_warshall(d)
print("Floyd and Warshall agree:", np.array_equal(all_pairs[0], best), "longest:", all_pairs.max())
steps = d
for _ in range(3):
    steps = np.min(steps[:, :, None] + steps, axis=1)
print("by squaring:", np.array_equal(steps, all_pairs))
