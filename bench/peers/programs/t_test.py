# Two groups are compared: Student's and Welch's test, a permutation test, a bootstrap interval; SciPy.
# draws: 5 6
import numpy as np
from scipy import stats

a = np.array([24.1, 27.3, 22.8, 25.9, 26.4, 23.7, 28.0, 25.2])
b = np.array([21.9, 23.4, 20.1, 24.8, 22.5, 21.2, 23.9])
print(f"means {a.mean():.3f} {b.mean():.3f}, stds {a.std(ddof=1):.3f} {b.std(ddof=1):.3f}")
student = stats.ttest_ind(a, b)
welch = stats.ttest_ind(a, b, equal_var=False)
print(f"student t = {student.statistic:.4f}, p = {student.pvalue:.5f}")
print(f"welch   t = {welch.statistic:.4f}, p = {welch.pvalue:.5f}")
pooled = np.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
print(f"Cohen's d = {(a.mean() - b.mean()) / pooled:.3f}")

rng = np.random.default_rng(1)
both = np.concatenate((a, b))
observed = a.mean() - b.mean()
shuffled = rng.permuted(np.tile(both, (4000, 1)), axis=1)
differences = shuffled[:, :8].mean(axis=1) - shuffled[:, 8:].mean(axis=1)
p = np.mean(np.abs(differences) >= abs(observed) - 1e-12)
print(f"permutation test: p about {p:.3f}", abs(p - student.pvalue) < 0.01)
interval = stats.bootstrap((a,), np.mean, n_resamples=2000, method="percentile", rng=rng).confidence_interval
print(f"bootstrap of the mean: {interval.low:.1f} to {interval.high:.1f}, inside {a.min()} to {a.max()}")
