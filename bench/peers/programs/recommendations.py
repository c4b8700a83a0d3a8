# A table of ratings with gaps is factored by alternating least squares (NumPy), and by gradients (JAX).
# rounding: 1 3-8
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
films = ("Alien", "Brazil", "Casablanca", "Dune", "Emma", "Fargo")
nan = np.nan
ratings = np.array([[5.0, 4.0, 1.0, 5.0, 1.0, nan], [4.0, nan, 1.0, 4.0, nan, 2.0], [1.0, 1.0, 5.0, nan, 5.0, 4.0],
                    [nan, 2.0, 4.0, 1.0, 4.0, 5.0], [5.0, 5.0, nan, 4.0, 2.0, 1.0]])
known = ~np.isnan(ratings)
r = np.where(known, ratings, 0)
users, items, rank, weight = 5, 6, 2, 0.1


def solve_side(r, known, other):
    out = []
    for row, mask in zip(r, known):
        a = other * mask[:, None]
        out.append(np.linalg.solve(a.T @ a + weight * np.eye(rank), a.T @ row))
    return np.stack(out)


def cost(u, v):
    return jnp.sum(jnp.where(known, (u @ v.T - r) ** 2, 0)) + weight * (jnp.sum(u**2) + jnp.sum(v**2))


rng = np.random.default_rng(14)
start = {"u": rng.normal(size=(users, rank)), "v": rng.normal(size=(items, rank))}
u, v = start["u"], start["v"]
for i in range(60):
    u = solve_side(r, known, v)
    v = solve_side(r.T, known.T, u)
error = np.sqrt(np.sum(np.where(known, (u @ v.T - r) ** 2, 0)) / known.sum())
print(f"alternating: cost {cost(u, v):.3f}, error {error:.3f}")


@jax.jit
def step(p, m, s, t):
    g = jax.grad(lambda p: cost(p["u"], p["v"]))(p)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    s = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, s, g)
    p = jax.tree.map(
        lambda p, m, s: p - 0.05 * m / (1 - 0.9**t) / (jnp.sqrt(s / (1 - 0.999**t)) + 1e-8), p, m, s)
    return p, m, s


p, m = start, jax.tree.map(jnp.zeros_like, start)
s = m
for i in range(800):
    p, m, s = step(p, m, s, i + 1.0)
print("gradients come as near:", bool(cost(p["u"], p["v"]) < cost(u, v) * 1.05))

guess = u @ v.T
for user, item in np.argwhere(~known):
    print(f"user {user} may give {films[item]:<10} {guess[user, item]:.1f}")
unit = v / np.linalg.norm(v, axis=1, keepdims=True)
print("nearest to Alien:", films[np.argsort(-(unit @ unit[0]))[1]])
