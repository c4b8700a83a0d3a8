"""The rows of rows.weft in JAX, as one who knows JAX writes them; loops over steps are scans, as Python's would be
compiled step by step. rows.py NAME… prints for each its least time and a sum of the result."""
import sys
import time

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def data(shape, k):
    n = 1
    for s in shape:
        n *= s
    return jnp.sin(jnp.arange(n, dtype=float) * k).reshape(shape)


rnn_p = {"w": data((64, 64), 0.7) * 0.1, "u": data((32, 64), 1.3) * 0.1, "b": jnp.zeros(64)}
rnn_xs, rnn_y = data((100, 16, 32), 0.37), data((16, 64), 0.11)


def rnn(p):
    def step(h, x):
        return jnp.tanh(x @ p["u"] + h @ p["w"] + p["b"]), None
    h, _ = jax.lax.scan(step, jnp.zeros((16, 64)), rnn_xs)
    return jnp.mean((h - rnn_y) ** 2)


lstm_p = {"w": data((96, 256), 0.7) * 0.1, "b": jnp.zeros(256)}
lstm_xs, lstm_y = data((50, 16, 32), 0.37), data((16, 64), 0.11)


def lstm(p):
    def step(s, x):
        h, c = s
        z = jnp.concatenate((x, h), axis=1) @ p["w"] + p["b"]
        i, f = jax.nn.sigmoid(z[:, 0:64]), jax.nn.sigmoid(z[:, 64:128])
        g, o = jnp.tanh(z[:, 128:192]), jax.nn.sigmoid(z[:, 192:256])
        c = f * c + i * g
        return (o * jnp.tanh(c), c), None
    (h, _), _ = jax.lax.scan(step, (jnp.zeros((16, 64)), jnp.zeros((16, 64))), lstm_xs)
    return jnp.mean((h - lstm_y) ** 2)


big = data((1000, 200), 0.7)
conv_w, conv_x = data((3, 3, 8), 0.7), data((64, 28, 28), 0.37)


def conv(w):
    out = jnp.zeros((64, 26, 26, 8))
    for i in range(3):
        for j in range(3):
            out = out + conv_x[:, i:i + 26, j:j + 26][:, :, :, None] * w[i, j]
    return jnp.mean(jax.nn.relu(out) ** 2)


def rosen(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


at, long = data((100,), 0.7), data((10000,), 0.7)
net = {"w1": data((32, 64), 0.7) * 0.2, "b1": jnp.zeros(64), "w2": data((64, 10), 1.1) * 0.2, "b2": jnp.zeros(10)}
batch_x, batch_y = data((256, 32), 0.37), data((256, 10), 0.11)


def one(p, x, y):
    return jnp.sum((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"] - y) ** 2)


def mlp(p):
    z = jax.nn.relu(batch_x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return jnp.mean(jax.nn.logsumexp(z, axis=1) - jnp.sum(z * batch_y, axis=1))


rows_x = data((512, 256), 0.7)


def layer_norm(p):
    m = jnp.mean(rows_x, axis=1, keepdims=True)
    v = jnp.mean((rows_x - m) ** 2, axis=1, keepdims=True)
    return jnp.mean(((rows_x - m) / jnp.sqrt(v + 1e-5) * p["g"] + p["b"]) ** 2 * rows_x)


att_p = {"q": data((64, 64), 0.7) * 0.2, "k": data((64, 64), 1.1) * 0.2, "v": data((64, 64), 1.7) * 0.2}
att_x = data((128, 64), 0.37)


def attention(p):
    q, k, v = att_x @ p["q"], att_x @ p["k"], att_x @ p["v"]
    return jnp.mean((jax.nn.softmax(q @ k.T / 8.0, axis=1) @ v) ** 2)


seen = jnp.cumsum(data((300,), 0.9))


def kalman(p):
    f, q, r = jnp.array([[1.0, 1.0], [0.0, 1.0]]), jnp.exp(p["q"]) * jnp.eye(2), jnp.exp(p["r"])

    def step(state, y):
        m, c, s = state
        m, c = f @ m, f @ c @ f.T + q
        e, v = y - m[0], c[0, 0] + r
        k = c[:, 0] / v
        return (m + k * e, c - jnp.outer(k, c[0, :]), s + 0.5 * (jnp.log(v) + e * e / v)), None
    return jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), seen)[0][2]


def rate(p, y):
    return jnp.stack((p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]))


def ode(p):
    h = 0.01

    def step(y, _):
        k1 = rate(p, y)
        k2 = rate(p, y + h / 2 * k1)
        k3 = rate(p, y + h / 2 * k2)
        k4 = rate(p, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None
    y, _ = jax.lax.scan(step, jnp.ones(2), None, length=1000)
    return jnp.sum(y * y)


vag = jax.value_and_grad
rows = {
    "rnn_scan": (vag(rnn), rnn_p),
    "rnn_loop": (vag(rnn), rnn_p),
    "lstm_slices": (vag(lstm), lstm_p),
    "logsumexp": (vag(lambda x: jnp.sum(jax.nn.logsumexp(x, axis=1))), big),
    "conv_windows": (vag(conv), conv_w),
    "hessian": (jax.hessian(rosen), at),
    "hvp": (lambda x: jax.grad(lambda x: jnp.sum(jax.grad(rosen)(x) * long))(x), long),
    "per_example": (lambda p: jax.vmap(jax.grad(one), in_axes=(None, 0, 0))(p, batch_x, batch_y), net),
    "mlp": (vag(mlp), net),
    "layer_norm": (vag(layer_norm), {"g": jnp.ones(256), "b": jnp.zeros(256)}),
    "attention": (vag(attention), att_p),
    "kalman": (vag(kalman), {"q": -1.0, "r": 0.0}),
    "ode": (vag(ode), jnp.array([0.9, 0.4, 0.5, 0.7])),
}
for name in sys.argv[1:]:
    f, x = rows[name]
    f = jax.jit(f)
    r = jax.block_until_ready(f(x))
    least, until = 1e9, time.perf_counter() + 0.5
    while time.perf_counter() < until:
        t = time.perf_counter()
        r = jax.block_until_ready(f(x))
        least = min(least, time.perf_counter() - t)
    print(name, least, float(sum(jnp.sum(jnp.abs(v)) for v in jax.tree_util.tree_leaves(r))))
