# Runs the other side of the tables of docs/guide/from-python.md, from-numpy.md and from-jax.md, as far as it is
# installed: it gives what the page says of Weft.
import math
import re

try:
    import numpy as np
except ImportError:
    np = None
try:
    import jax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None


def parse(text):
    """A value as Weft shows it, as one of Python."""
    words = {"true": "True", "false": "False", "nil": "None", "inf": "math.inf", "nan": "math.nan"}
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)  # texts stay
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\b(true|false|nil|inf|nan)\b", lambda m: words[m[0]], parts[i])
        parts[i] = re.sub(r"([{,] ?)(\w+):", r'\1"\2":', parts[i])
    return eval("".join(parts), {"math": math})


def same(a, b):
    if isinstance(b, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in b)
    if isinstance(b, (str, bool, type(None))):
        return bool(a == b)
    if isinstance(b, (tuple, list)):
        a = a.tolist() if hasattr(a, "tolist") else a
        return isinstance(a, (tuple, list)) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return bool(getattr(a, "shape", ()) == () and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6))


def cells(line):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def run(name, column, names):
    checked, failed, head, block = 0, 0, None, None
    for number, line in enumerate(open(f"docs/guide/from-{name}.md"), 1):
        line = line.rstrip("\n")
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
                print(f"not ok docs/peers-{name}: line {number}: {code[0]}: {why}")
    if not checked:
        print(f"not ok docs/peers-{name}: no row was run")
    elif not failed:
        print(f"ok docs/peers-{name}")


run("python", "Python", {})
if np is None:
    print("skip docs/peers-numpy: NumPy is not installed")
else:
    run("numpy", "NumPy", {})
if jax is None:
    print("skip docs/peers-jax: JAX is not installed")
else:
    run("jax", "JAX", {"jax": jax})
