# A Kalman filter follows a falling and drifting body; a smoother looks back; NumPy.
# draws: 1 2
import numpy as np

dt = 0.1
f = np.array([[1.0, dt, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, dt], [0.0, 0.0, 0.0, 1.0]])
push = np.array([0.0, 0.0, -0.5 * 9.81 * dt**2, -9.81 * dt])
h = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
q, r = 1e-4 * np.eye(4), 0.25 * np.eye(2)

steps = 60
s, truth = np.array([0.0, 8.0, 0.0, 25.0]), np.empty((steps, 4))
for i in range(steps):
    truth[i] = s = f @ s + push
seen = truth @ h.T + 0.5 * np.random.default_rng(4).normal(size=(steps, 2))

x, p = np.zeros(4), 100.0 * np.eye(4)
xm, xs = np.empty((2, steps, 4))
pm, ps = np.empty((2, steps, 4, 4))
for i, z in enumerate(seen):
    xm[i], pm[i] = f @ x + push, f @ p @ f.T + q
    gain = np.linalg.solve(h @ pm[i] @ h.T + r, h @ pm[i]).T
    xs[i] = x = xm[i] + gain @ (z - h @ xm[i])
    ps[i] = p = pm[i] - gain @ h @ pm[i]

smoothed, back = xs.copy(), ps.copy()
for i in reversed(range(steps - 1)):
    c = np.linalg.solve(pm[i + 1], f @ ps[i]).T
    smoothed[i] = xs[i] + c @ (smoothed[i + 1] - xm[i + 1])
    back[i] = ps[i] + c @ (back[i + 1] - pm[i + 1]) @ c.T


def rms(x):
    return np.sqrt(np.mean(np.sum((x[10:] - truth[10:]) ** 2 * [1.0, 0.0, 1.0, 0.0], axis=1)))


raw = np.sqrt(np.mean(np.sum((seen[10:] - truth[10:] @ h.T) ** 2, axis=1)))
print(f"error of positions: measured {raw:.2f}, filtered {rms(xs):.2f}, smoothed {rms(smoothed):.2f}")
print(f"velocity at the end {xs[-1, 1]:.1f} {xs[-1, 3]:.1f}, true {truth[-1, 1]:.1f} {truth[-1, 3]:.1f}")
spread = np.sqrt(ps[:, 0, 0])
print("uncertainty falls:", np.all(np.diff(spread[:20]) < 0), f"to {spread[-1]:.2f}")
