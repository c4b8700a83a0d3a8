# An ensemble of predators and prey: one system for many parameters by vmap, and how its peak depends on them; JAX.
# draws: 2-8
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.integrate import solve_ivp

jax.config.update("jax_enable_x64", True)


def lotka(t, y, p):
    prey, hunters = y[0], y[1]
    return jnp.stack((p[0] * prey - p[1] * prey * hunters, p[2] * prey * hunters - p[3] * hunters))


t = jnp.linspace(0, 12, 61)
y0 = jnp.array([10.0, 5.0])


@jax.jit
def run(p):  # the classical method of Runge and Kutta, one step from each time to the next
    def step(y, ends):
        a, b = ends
        h = b - a
        k1 = lotka(a, y, p)
        k2 = lotka(a + h / 2, y + h / 2 * k1, p)
        k3 = lotka(a + h / 2, y + h / 2 * k2, p)
        k4 = lotka(b, y + h * k3, p)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return jnp.concatenate((y0[None], lax.scan(step, y0, (t[:-1], t[1:]))[1]))


base = jnp.array([1.1, 0.4, 0.1, 0.4])
ensemble = base * (1 + 0.1 * jax.random.normal(jax.random.key(3), (16, 4)))
all_runs = jax.jit(jax.vmap(run))(ensemble)
print("runs", all_runs.shape)
mean_run, spread = np.mean(all_runs, axis=0), np.std(all_runs, axis=0)
for i in range(0, 61, 10):
    (prey, hunters), (e, f) = mean_run[i], spread[i]
    print(f"t {t[i]:4.1f}  prey {prey:6.2f} +- {e:5.2f}  hunters {hunters:6.2f} +- {f:5.2f}")


def invariant(y, p):
    return p[2] * y[..., 0] - p[3] * np.log(y[..., 0]) + p[1] * y[..., 1] - p[0] * np.log(y[..., 1])


def right_side(s, y):
    return 1.1 * y[0] - 0.4 * y[0] * y[1], 0.1 * y[0] * y[1] - 0.4 * y[1]


v = invariant(np.asarray(run(base)), np.asarray(base))
exact = solve_ivp(right_side, (0, 12), (10, 5), "RK45", np.asarray(t), rtol=1e-9, atol=1e-12)
fine = invariant(exact.y.T, np.asarray(base))
print(f"drift of rk4 {np.max(np.abs(v - v[0])):.1e}, of dopri5 {np.max(np.abs(fine - fine[0])):.0e}")

peak = jax.jit(lambda p: jnp.max(run(p)[:, 1]))
slope = jax.jit(jax.grad(peak))(base)
print("d peak / d p", " ".join(f"{s:.2f}" for s in slope))
h = jnp.array([1e-5, 0.0, 0.0, 0.0])
print("by differences", f"{(peak(base + h) - peak(base - h)) / 2e-5:.2f}")
