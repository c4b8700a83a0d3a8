# Weather as a Markov chain: its stationary state, waiting times, a simulation, and an estimate; NumPy.
# draws: 5-7
import bisect

import numpy as np

states = ("sun", "clouds", "rain")
p = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4]])
assert np.allclose(p.sum(axis=1), 1)

limit = np.linalg.matrix_power(p, 60)[0]
a = np.concatenate((p.T - np.eye(3), np.ones((1, 3))))
stationary = np.linalg.lstsq(a, [0.0, 0.0, 0.0, 1.0])[0]
print("stationary", ", ".join(f"{s} {v:.4f}" for s, v in zip(states, stationary)), np.allclose(limit, stationary))
days = np.linalg.solve(np.eye(2) - p[:2, :2], np.ones(2))
print(f"first rain after {days[0]:.2f} days from sun, {days[1]:.2f} from clouds")


def simulate(rng, n):
    steps = np.cumsum(p, axis=1).tolist()
    s, out = 0, []
    for u in rng.uniform(size=n).tolist():
        s = min(bisect.bisect_left(steps[s], u), 2)
        out.append(s)
    return np.array(out)


seen = simulate(np.random.default_rng(17), 20000)
shares = np.bincount(seen, minlength=3) / len(seen)
print("simulated near:", np.all(np.abs(shares - stationary) < 0.02))
counts = np.zeros((3, 3))
np.add.at(counts, (seen[:-1], seen[1:]), 1)
estimate = counts / counts.sum(axis=1, keepdims=True)
print("estimated near:", np.max(np.abs(estimate - p)) < 0.02)

ends = np.nonzero(np.append(np.diff(seen) != 0, True))[0]
lengths = np.diff(np.concatenate(([-1], ends)))
for k in range(3):
    own = lengths[seen[ends] == k]
    print(f"{states[k]:<7} lasts about {1 / (1 - p[k, k]):.2f} days, in the simulation {own.mean():.1f}")
