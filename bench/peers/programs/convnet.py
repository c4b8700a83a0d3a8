# A convolutional network is trained by Adam on the handwritten digits of examples/digits.csv; JAX.
# draws: 1-3
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

data = np.loadtxt(Path(__file__).parents[3] / "examples/digits.csv", delimiter=",")
images = jnp.asarray(data[:, :64].reshape(-1, 1, 8, 8), jnp.float32) / 16
labels = jnp.asarray(data[:, 64], jnp.int32)
train, test = np.arange(1200), np.arange(1200, 1797)


def start(key):
    a, b, c = random.split(key, 3)
    return {
        "conv": random.normal(a, (8, 1, 3, 3)) * 0.3, "conv_b": jnp.zeros((8, 1, 1)),
        "hidden": jax.nn.initializers.he_normal()(b, (128, 32)), "hidden_b": jnp.zeros(32),
        "out": jax.nn.initializers.glorot_normal()(c, (32, 10)), "out_b": jnp.zeros(10),
    }


def network(p, x):
    maps = jax.nn.relu(lax.conv(x, p["conv"], (1, 1), "SAME") + p["conv_b"])
    maps = lax.reduce_window(maps, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    flat = maps.reshape(x.shape[0], 128)
    return jax.nn.relu(flat @ p["hidden"] + p["hidden_b"]) @ p["out"] + p["out_b"]


def loss(p, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(network(p, x)), y[:, None], axis=1))


@jax.jit
def step(p, m, v, t, x, y):  # Adam, as Kingma and Ba have it
    l, g = jax.value_and_grad(loss)(p, x, y)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(
        lambda p, m, v: p - 0.01 * m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), p, m, v)
    return l, p, m, v


params = start(random.key(0))
m = v = jax.tree.map(jnp.zeros_like, params)
order = np.random.default_rng(5).permutation(train)
t = 0
for epoch in range(3):
    total = 0.0
    for i in range(12):
        batch = order[i * 100:(i + 1) * 100]
        t += 1
        l, params, m, v = step(params, m, v, float(t), images[batch], labels[batch])
        total += float(l)
    print(f"epoch {epoch}: loss {total / 12:.2f}")
reached = jnp.mean(jnp.argmax(jax.jit(network)(params, images[test]), axis=1) == labels[test])
print("accuracy above 0.85 on unseen digits:", bool(reached > 0.85))
