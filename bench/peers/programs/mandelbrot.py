# The Mandelbrot set, all points at once, as letters; and the same point by point in a loop; NumPy.
import numpy as np

h, w, most = 21, 56, 60
cx = np.linspace(-2.1, 0.7, w)
cy = np.linspace(-1.2, 1.2, h)[:, None]


def iterate(cx, cy, most):
    x, y = np.zeros((2, h, w))
    count = np.zeros((h, w), int)
    for i in range(most):
        inside = x * x + y * y <= 4
        count += inside
        following = x * x - y * y + cx
        y = np.where(inside, 2 * x * y + cy, y)
        x = np.where(inside, following, x)
    return count


count = iterate(cx, cy, most)
shades = " .:-=+*#%@"
for row in count:
    print("".join(shades[min(c // 6, 9)] for c in row))
print(f"{np.sum(count == most)} of {h * w} points stay")


def escape(a, b):
    x, y, n = 0.0, 0.0, 0
    while x * x + y * y <= 4 and n < most:
        x, y = x * x - y * y + a, 2 * x * y + b
        n += 1
    return n


a, b = cx.tolist(), cy[:, 0].tolist()
print("point by point the same:", all(escape(a[j], b[i]) == count[i, j] for i in range(h) for j in range(w)))
