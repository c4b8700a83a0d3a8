# A decaying oscillation is fitted to noisy samples; errors come from the covariance; SciPy.
# draws: 1-5
import numpy as np
from scipy.optimize import curve_fit


def model(t, a, d, f, p):
    return a * np.exp(-d * t) * np.cos(f * t + p)


truth = np.array([2.5, 0.4, 3.0, 0.6])
t = np.linspace(0, 6, 80)
y = model(t, *truth) + 0.1 * np.random.default_rng(7).normal(size=t.shape)
p, cov = curve_fit(model, t, y, [1.0, 0.2, 2.8, 0.0])
error = np.sqrt(np.diag(cov))
for name, v, e, true in zip(("amplitude", "decay", "frequency", "phase"), p, error, truth):
    print(f"{name:<10} {v:7.3f} +- {e:.3f}   true {true}   {abs(v - true) < 3 * e}")

residual = y - model(t, *p)
print(f"residual std {residual.std():.3f}, R2 {1 - np.sum(residual**2) / np.sum((y - y.mean()) ** 2):.4f}")
q, _ = curve_fit(model, t, y, [1.0, 0.2, 2.8, 0.0], sigma=0.1 * np.ones(80))
print("weights of one size change nothing:", np.allclose(p, q, rtol=1e-6))


def jacobian(t, a, d, f, p):
    e, c, s = np.exp(-d * t), np.cos(f * t + p), np.sin(f * t + p)
    return np.stack((e * c, -a * t * e * c, -a * t * e * s, -a * e * s), axis=1)


gradient = lambda v: jacobian(t, *v).T @ (model(t, *v) - y)
h = 1e-5
hessian = np.stack([(gradient(p + h * e) - gradient(p - h * e)) / (2 * h) for e in np.eye(4)])
positive = np.all(np.linalg.eigvalsh((hessian + hessian.T) / 2) > 0)
print("gradient small:", np.max(np.abs(gradient(p))) < 1e-3, "eigenvalues:", positive)
