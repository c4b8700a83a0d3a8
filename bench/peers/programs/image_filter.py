# An image filter: writes a picture as PNG, blurs it, finds its edges; NumPy, SciPy and Pillow.
# rounding: 3
import os

import numpy as np
from PIL import Image
from scipy.ndimage import correlate

h, w = 48, 64
y, x = np.arange(h)[:, None], np.arange(w)
disc = ((x - 32) ** 2 + (y - 24) ** 2 < 200).astype(float)
picture = np.stack((disc, 0.5 * disc + 0.2, (x + 0 * y) / (w - 1)), -1)
folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), "python-image-filter")
os.makedirs(folder, exist_ok=True)
Image.fromarray(np.floor(picture * 255 + 0.5).astype(np.uint8)).save(f"{folder}/in.png")

loaded = np.asarray(Image.open(f"{folder}/in.png")) / 255
print("loaded", loaded.shape, "f64 max error", f"{np.abs(loaded - picture).max():.4f}")

t = np.arange(5) - 2
g = np.exp(-t**2 / (2 * 1.2**2))
gaussian = np.outer(g, g) / g.sum() ** 2
blurred = correlate(loaded, gaussian[..., None], mode="nearest")
sobel = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
grey = blurred.mean(axis=-1)
edges = np.hypot(correlate(grey, sobel, mode="nearest"), correlate(grey, sobel.T, mode="nearest"))
Image.fromarray(np.floor(np.clip(edges, 0, 1) * 255 + 0.5).astype(np.uint8)).save(f"{folder}/edges.png")

print("mean before and after", f"{loaded.mean():.4f} {blurred.mean():.4f}")
at = edges.argmax()
print("strongest edge at", (int(at // w), int(at % w)), f"{edges.max():.3f}")
for row in edges[4:44:4, ::4]:
    print("".join("#" if v > 0.8 else "+" if v > 0.3 else "." for v in row))
