# The game of life on a torus: a glider, a pulsar's period, and how a random field settles; NumPy.
# draws: 11
import numpy as np

around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def following(board):
    n = sum(np.roll(board, s, axis=(0, 1)) for s in around)
    return ((n == 3) | ((board == 1) & (n == 2))).astype(np.int32)


glider = np.zeros((8, 10), np.int32)
glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
b = glider
for i in range(8):
    b = following(b)
for row in b:
    print("".join("#" if c else "." for c in row))
print("moved by two:", np.array_equal(b, np.roll(glider, (2, 2), axis=(0, 1))))

quarter = np.array([[0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 1],
                    [1, 0, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]])
side = np.hstack((quarter, np.zeros((6, 1), int), quarter[:, ::-1]))
pulsar = np.pad(np.vstack((side, np.zeros((1, 13), int), side[::-1])), 2).astype(np.int32)
now, period = following(pulsar), 1
while np.any(now != pulsar) and period < 10:
    now, period = following(now), period + 1
print(f"{pulsar.sum()} cells, period {period}")

field = (np.random.default_rng(9).uniform(size=(64, 64)) < 0.3).astype(np.int32)
alive = []
for i in range(200):
    if i % 50 == 0:
        alive.append(int(field.sum()))
    field = following(field)
print("cells after 0, 50, 100, 150 steps:", tuple(alive))
