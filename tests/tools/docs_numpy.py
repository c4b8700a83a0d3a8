# Runs the left side of the tables of docs/guide/from-numpy.md and from-jax.md: it gives what the page says of Weft.
import re
import sys

import numpy as np


def parse(text):
    """A value as Weft shows it, as one of Python."""
    text = re.sub(r"\b(true|false|nil|inf|nan)\b",
                  lambda m: {"true": "True", "false": "False", "nil": "None", "inf": "np.inf", "nan": "np.nan"}[m[0]],
                  text)
    return eval(re.sub(r"([{,] ?)(\w+):", r'\1"\2":', text), {"np": np})


def same(a, b):
    if isinstance(b, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in b)
    if isinstance(b, tuple) and isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b, atol=1e-6, equal_nan=True)


def cells(line):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def run(name, path, column, names):
    lines = open(path).read().split("\n")
    failed, checked, head, block = 0, 0, None, None
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if block is not None:
                exec("\n".join(block), names)
            block = [] if line == "```python" else None
        elif block is not None:
            block.append(line)
        elif not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
        elif column in head and "gives" in head and not line.startswith("| ---"):
            row = dict(zip(head, cells(line)))
            code = re.findall(r"`([^`]+)`", row[column])
            gives = re.findall(r"`([^`]+)`", row["gives"])
            if not code or not gives:
                continue
            checked += 1
            try:
                value = eval(code[0], names)
                if not same(value, parse(gives[0])):
                    raise ValueError(f"gives {value!r}".replace("\n", " "))
            except Exception as why:
                failed += 1
                print(f"not ok docs/{name}: line {number}: {code[0]}: {why}")
    if not checked:
        print(f"not ok docs/{name}: no row was run")
    elif not failed:
        print(f"ok docs/{name}")


run("numpy", "docs/guide/from-numpy.md", "NumPy", {})
try:
    import jax
except ImportError:
    print("skip docs/jax: JAX is not installed")
    sys.exit()
jax.config.update("jax_enable_x64", True)
run("jax", "docs/guide/from-jax.md", "JAX", {"jax": jax, "jnp": jax.numpy})
