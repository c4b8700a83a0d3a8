"""The twenty kernels as a NumPy user writes them: the peer of the programs in Weft beside this file, and what makes
their inputs.

Each function computes what its namesake in NAME.weft computes; RUN gives for a record of inputs the list of results.
"""

import numpy as np


def arc_distance(theta_1, phi_1, theta_2, phi_2):
    h = np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(h), np.sqrt(1 - h))


def azimuthal_mean(data, radius, npt):
    counts = np.histogram(radius, npt)[0]
    sums = np.histogram(radius, npt, weights=data)[0]
    return sums / counts


def source(b, rho, dt, dx, dy, u, v):
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    b[1:-1, 1:-1] = rho * (1 / dt * (ux + vy) - ux**2 - 2 * (uy * vx) - vy**2)


def pressure(p, b, nit, dx, dy):
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def moved(m, w, e, s, n, um, vm, slope, dt, dx, dy, nu):
    return (
        m - um * dt / dx * (m - w) - vm * dt / dy * (m - s) - slope
        + nu * (dt / dx**2 * (e - 2 * m + w) + dt / dy**2 * (n - 2 * m + s))
    )


def cavity_flow(u, v, p, nt, nit, dt, dx, dy, rho, nu):
    b = np.zeros_like(u)
    for _ in range(nt):
        un, vn = u.copy(), v.copy()
        source(b, rho, dt, dx, dy, u, v)
        pressure(p, b, nit, dx, dy)
        um, vm = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        u[1:-1, 1:-1] = moved(um, un[1:-1, :-2], un[1:-1, 2:], un[:-2, 1:-1], un[2:, 1:-1], um, vm,
                              dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2]), dt, dx, dy, nu)
        v[1:-1, 1:-1] = moved(vm, vn[1:-1, :-2], vn[1:-1, 2:], vn[:-2, 1:-1], vn[2:, 1:-1], um, vm,
                              dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1]), dt, dx, dy, nu)
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0
    return [u, v, p]


def periodic_source(b, rho, dt, dx, dy, u, v):
    source(b, rho, dt, dx, dy, u, v)
    for at, left, right in ((-1, -2, 0), (0, -1, 1)):
        ux = (u[1:-1, right] - u[1:-1, left]) / (2 * dx)
        uy = (u[2:, at] - u[:-2, at]) / (2 * dy)
        vx = (v[1:-1, right] - v[1:-1, left]) / (2 * dx)
        vy = (v[2:, at] - v[:-2, at]) / (2 * dy)
        b[1:-1, at] = rho * (1 / dt * (ux + vy) - ux**2 - 2 * (uy * vx) - vy**2)


def periodic_pressure(p, b, nit, dx, dy):
    d = 2 * (dx**2 + dy**2)
    k = dx**2 * dy**2 / d
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
        ) / d - k * b[1:-1, 1:-1]
        p[1:-1, -1] = ((pn[1:-1, 0] + pn[1:-1, -2]) * dy**2 + (pn[2:, -1] + pn[:-2, -1]) * dx**2) / d - k * b[1:-1, -1]
        p[1:-1, 0] = ((pn[1:-1, 1] + pn[1:-1, -1]) * dy**2 + (pn[2:, 0] + pn[:-2, 0]) * dx**2) / d - k * b[1:-1, 0]
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


def channel_flow(u, v, p, nit, dt, dx, dy, rho, nu, force):
    b = np.zeros_like(u)
    change, steps = 1.0, 0
    while change > 0.001:
        un, vn = u.copy(), v.copy()
        periodic_source(b, rho, dt, dx, dy, u, v)
        periodic_pressure(p, b, nit, dx, dy)
        um, vm = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        u[1:-1, 1:-1] = moved(um, un[1:-1, :-2], un[1:-1, 2:], un[:-2, 1:-1], un[2:, 1:-1], um, vm,
                              dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2]), dt, dx, dy, nu) + force * dt
        v[1:-1, 1:-1] = moved(vm, vn[1:-1, :-2], vn[1:-1, 2:], vn[:-2, 1:-1], vn[2:, 1:-1], um, vm,
                              dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1]), dt, dx, dy, nu)
        for at, left, right in ((-1, -2, 0), (0, -1, 1)):
            um, vm = un[1:-1, at], vn[1:-1, at]
            u[1:-1, at] = moved(um, un[1:-1, left], un[1:-1, right], un[:-2, at], un[2:, at], um, vm,
                                dt / (2 * rho * dx) * (p[1:-1, right] - p[1:-1, left]), dt, dx, dy, nu) + force * dt
            v[1:-1, at] = moved(vm, vn[1:-1, left], vn[1:-1, right], vn[:-2, at], vn[2:, at], um, vm,
                                dt / (2 * rho * dy) * (p[2:, at] - p[:-2, at]), dt, dx, dy, nu)
        u[0, :] = 0
        u[-1, :] = 0
        v[0, :] = 0
        v[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return [steps, u, v, p]


def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return a


def conv2d(x, weights):
    k = weights.shape[0]
    n, h, w, _ = x.shape
    out = np.empty((n, h - k + 1, w - k + 1, weights.shape[3]), dtype=np.float32)
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            out[:, i, j, :] = np.sum(
                x[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out


def crc16(data):
    crc = 0xFFFF
    for b in data.tolist():
        byte = b & 0xFF
        for _ in range(8):
            if (crc & 1) ^ (byte & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


def deriche(alpha, image):
    k = (1 - np.exp(-alpha)) ** 2 / (1 + alpha * np.exp(-alpha) - np.exp(2 * alpha))
    a1, a2, a3, a4 = k, k * np.exp(-alpha) * (alpha - 1), k * np.exp(-alpha) * (alpha + 1), -k * np.exp(-2 * alpha)
    b1, b2 = 2.0**-alpha, -np.exp(-2 * alpha)
    w, h = image.shape
    y1, y2 = np.zeros_like(image), np.zeros_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, h):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -2] = a3 * image[:, -1]
    for j in range(h - 3, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    mid = y1 + y2
    y1[0, :] = a1 * mid[0, :]
    y1[1, :] = a1 * mid[1, :] + a2 * mid[0, :] + b1 * y1[0, :]
    for i in range(2, w):
        y1[i, :] = a1 * mid[i, :] + a2 * mid[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0
    y2[-2, :] = a3 * mid[-1, :]
    for i in range(w - 3, -1, -1):
        y2[i, :] = a3 * mid[i + 1, :] + a4 * mid[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


def durbin(r):
    y = np.zeros_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, len(r)):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def fdtd(steps, ex, ey, hz, drive):
    for t in range(steps):
        ey[0, :] = drive[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return [ex, ey, hz]


def go_fast(a):
    trace = 0.0
    for i in range(len(a)):
        trace += np.tanh(a[i, i])
    return a + trace


def hdiff(x, coeff):
    lap = 4 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    fx = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = np.where(fx * (x[2:-1, 2:-2] - x[1:-2, 2:-2]) > 0, 0, fx)
    fy = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = np.where(fy * (x[2:-2, 2:-1] - x[2:-2, 1:-2]) > 0, 0, fy)
    return x[2:-2, 2:-2] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def spread(to, a):
    to[1:-1, 1:-1, 1:-1] = (
        0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
        + a[1:-1, 1:-1, 1:-1]
    )


def heat(steps, a, b):
    for _ in range(1, steps):
        spread(b, a)
        spread(a, b)
    return [a, b]


def jacobi(steps, a, b):
    for _ in range(1, steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return [a, b]


def max_pool2(x):
    n, h, w, c = x.shape
    out = np.empty((n, h // 2, w // 2, c), dtype=x.dtype)
    for i in range(h // 2):
        for j in range(w // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def lenet5(x, p):
    x = max_pool2(np.maximum(conv2d(x, p["conv1"]) + p["conv1bias"], 0))
    x = max_pool2(np.maximum(conv2d(x, p["conv2"]) + p["conv2bias"], 0))
    x = np.reshape(x, (len(x), -1))
    x = np.maximum(x @ p["fc1w"] + p["fc1b"], 0)
    x = np.maximum(x @ p["fc2w"] + p["fc2b"], 0)
    return x @ p["fc3w"] + p["fc3b"]


def differences(pos):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    return x.T - x, y.T - y, z.T - z


def acceleration(pos, mass, g, softening):
    dx, dy, dz = differences(pos)
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** -1.5
    ax = g * (dx * inv_r3) @ mass
    ay = g * (dy * inv_r3) @ mass
    az = g * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def energy(pos, vel, mass, g):
    kinetic = 0.5 * np.sum(mass * vel**2)
    dx, dy, dz = differences(pos)
    inv_r = np.sqrt(dx**2 + dy**2 + dz**2)
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    return kinetic, g * np.sum(np.triu(-(mass * mass.T) * inv_r, 1))


def nbody(mass, pos, vel, steps, dt, g, softening):
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = acceleration(pos, mass, g, softening)
    ke, pe = np.zeros(steps + 1), np.zeros(steps + 1)
    ke[0], pe[0] = energy(pos, vel, mass, g)
    for i in range(steps):
        vel += acc * dt / 2
        pos += vel * dt
        acc = acceleration(pos, mass, g, softening)
        vel += acc * dt / 2
        ke[i + 1], pe[i + 1] = energy(pos, vel, mass, g)
    return [ke, pe]


def seidel(steps, n, a):
    for _ in range(steps - 1):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return a


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def spmv(rows, cols, vals, x):
    y = np.empty(len(rows) - 1, vals.dtype)
    for i in range(len(rows) - 1):
        own = slice(rows[i], rows[i + 1])
        y[i] = vals[own] @ x[cols[own]]
    return y


def vadv(out, u, wcon, pos, tens, dtr):
    ni, nj, nk = out.shape
    c, d = np.zeros((ni, nj, nk)), np.zeros((ni, nj, nk))
    above = 0.25 * (wcon[1:, :, 1] + wcon[:-1, :, 1])
    c[:, :, 0] = above * 0.5
    first = dtr - c[:, :, 0]
    d[:, :, 0] = (dtr * pos[:, :, 0] + tens[:, :, 0] + out[:, :, 0] - above * 0.5 * (u[:, :, 1] - u[:, :, 0])) / first
    c[:, :, 0] /= first
    for k in range(1, nk - 1):
        below = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        above = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        a = below * 0.5
        c[:, :, k] = above * 0.5
        b = dtr - a - c[:, :, k]
        correction = -(below * 0.5) * (u[:, :, k - 1] - u[:, :, k]) - above * 0.5 * (u[:, :, k + 1] - u[:, :, k])
        d[:, :, k] = dtr * pos[:, :, k] + tens[:, :, k] + out[:, :, k] + correction
        divided = 1.0 / (b - c[:, :, k - 1] * a)
        c[:, :, k] *= divided
        d[:, :, k] = (d[:, :, k] - d[:, :, k - 1] * a) * divided
    last = nk - 1
    below = -0.25 * (wcon[1:, :, last] + wcon[:-1, :, last])
    a = below * 0.5
    correction = -(below * 0.5) * (u[:, :, last - 1] - u[:, :, last])
    d[:, :, last] = dtr * pos[:, :, last] + tens[:, :, last] + out[:, :, last] + correction
    d[:, :, last] = (d[:, :, last] - d[:, :, last - 1] * a) / (dtr - a - c[:, :, last - 1] * a)
    x = d[:, :, last]
    out[:, :, last] = dtr * (x - pos[:, :, last])
    for k in range(nk - 2, -1, -1):
        x = d[:, :, k] - c[:, :, k] * x
        out[:, :, k] = dtr * (x - pos[:, :, k])
    return out


RUN = {
    "adist": lambda r: [arc_distance(r["theta_1"], r["phi_1"], r["theta_2"], r["phi_2"])],
    "azimhist": lambda r: [azimuthal_mean(r["data"], r["radius"], r["npt"])],
    "cavtflow": lambda r: cavity_flow(*(r[k] for k in "u v p nt nit dt dx dy rho nu".split())),
    "chanflow": lambda r: channel_flow(*(r[k] for k in "u v p nit dt dx dy rho nu F".split())),
    "cholesky": lambda r: [cholesky(r["A"])],
    "conv2d": lambda r: [conv2d(r["input"], r["weights"]) + r["bias"]],
    "crc16": lambda r: [crc16(r["data"])],
    "deriche": lambda r: [deriche(r["alpha"], r["imgIn"])],
    "durbin": lambda r: [durbin(r["r"])],
    "fdtd_2d": lambda r: fdtd(r["TMAX"], r["ex"], r["ey"], r["hz"], r["_fict_"]),
    "npgofast": lambda r: [go_fast(r["a"])],
    "hdiff": lambda r: [hdiff(r["in_field"], r["coeff"])],
    "heat3d": lambda r: heat(r["TSTEPS"], r["A"], r["B"]),
    "jacobi2d": lambda r: jacobi(r["TSTEPS"], r["A"], r["B"]),
    "lenet": lambda r: [lenet5(r["input"], r)],
    "nbody": lambda r: nbody(*(r[k] for k in "mass pos vel Nt dt G softening".split())),
    "seidel2d": lambda r: [seidel(r["TSTEPS"], r["N"], r["A"])],
    "softmax": lambda r: [softmax(r["x"])],
    "spmv": lambda r: [spmv(r["A_row"], r["A_col"], r["A_val"], r["x"])],
    "vadv": lambda r: [vadv(*(r[k] for k in "utens_stage u_stage wcon u_pos utens dtr_stage".split()))],
}
