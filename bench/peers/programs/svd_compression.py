# A picture is kept by its largest singular values: how much each rank explains, and what it costs; NumPy.
# draws: 8
import numpy as np

h, w = 40, 60
y, x = np.linspace(-1, 1, h)[:, None], np.linspace(-1.5, 1.5, w)
smooth = np.exp(-3 * (x**2 + y**2)) + 0.3 * np.cos(8 * x) * np.sin(6 * y)
picture = smooth + (np.abs(x + y) < 0.1)

u, s, vh = np.linalg.svd(picture, full_matrices=False)
kept = np.cumsum(s**2) / np.sum(s**2)
print(f"{h * w} numbers; singular values {s[0]:.2f} to {s[-1]:.1e}")
for k in (1, 2, 5, 10, 20):
    close = (u[:, :k] * s[:k]) @ vh[:k]
    error = np.linalg.norm(picture - close) / np.linalg.norm(picture)
    print(f"rank {k:>2}: {kept[k - 1]:7.2%} of the energy, error {error:.3f}, {k * (h + w + 1):>4} numbers")
rest = np.linalg.norm(picture - (u[:, :5] * s[:5]) @ vh[:5])
print("error is what the rest has:", np.allclose(rest, np.linalg.norm(s[5:])))

known = np.random.default_rng(8).uniform(size=smooth.shape) < 0.6
guess = np.where(known, smooth, 0)
for i in range(200):
    a, t, b = np.linalg.svd(guess, full_matrices=False)
    guess = np.where(known, smooth, (a[:, :2] * t[:2]) @ b[:2])
print(f"{known.mean():.0%} known, the rest within 0.01:", np.max(np.abs(guess - smooth)) < 0.01)
