#!/usr/bin/env python3
"""Makes the small cases in tiny/ from a selection of NPBench as JSON: convert.py CASES.json

The file is a list of {name, tiny: {inputs, returns, outputs_in_place}}, a tensor is {dtype, shape, data}. Each becomes
a module in Weft with `input`, a record, and `expected`, a list. LeNet's weights would be most of all that: its case has
inputs by formula, and the results are those of kernels.py (NumPy), which must first agree with the selection's. """

import json
import os
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = (
    "# Inputs and results of {}, from NPBench (github.com/spcl/npbench, BSD-3-Clause, copyright ETH Zurich and the\n"
    "# NPBench authors).\n"
)
CALLED = {"nan": "nan", "inf": "inf", "-inf": "-inf"}


def number(v):
    return CALLED.get(v, repr(v)) if not isinstance(v, bool) else str(v).lower()


def is_tensor(v):
    return isinstance(v, dict) and "dtype" in v


def value(v):
    if not is_tensor(v):
        return number(v)
    flat = "[" + ", ".join(number(x) for x in v["data"]) + "]"
    flat = flat if v["dtype"] in ("f64", "i64") else f"{v['dtype']}({flat})"
    return flat if len(v["shape"]) == 1 else f"reshape({flat}, {tuple(v['shape'])})"


def folded(text):
    """Lines of at most 120 columns: lists end theirs behind a comma."""
    fold = textwrap.TextWrapper(120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if len(line) <= 120 else fold.fill(line) for line in text.split("\n"))


LENET = '''# Inputs by formula for lenet, and its results with NumPy.
fn spread(n, scale) = f32((((arange(n) * 7919) % 1009) / 1009 - 0.5) * scale)
let input = {{
  input: reshape(spread(784, 2.0), (1, 28, 28, 1)),
{weights}
}}
let expected = (
  reshape(f32({result}), (1, 10)),
)
'''


def lenet(case):
    import numpy as np

    from kernels import RUN

    def array(t):
        return np.array(t["data"], dtype=np.float32).reshape(t["shape"])

    given = {k: array(v) for k, v in case["inputs"].items() if is_tensor(v)}
    assert np.allclose(RUN["lenet"](given)[0], array(case["returns"][0]), rtol=1e-4)
    shapes = {k: v.shape for k, v in given.items() if k != "input"}
    scales = {k: 0.25 if len(s) > 1 else 0.5 for k, s in shapes.items()}

    def spread(shape, scale):
        n = int(np.prod(shape))
        return np.float32(((np.arange(n) * 7919 % 1009) / 1009 - 0.5) * scale).reshape(shape)

    made = {"input": spread((1, 28, 28, 1), 2.0), **{k: spread(s, scales[k]) for k, s in shapes.items()}}
    weights = ",\n".join(
        f"  {k}: reshape(spread({int(np.prod(s))}, {scales[k]}), {tuple(s)})" for k, s in shapes.items()
    )
    return LENET.format(weights=weights, result=[float(x) for x in RUN["lenet"](made)[0].ravel()])


def main():
    os.makedirs(os.path.join(HERE, "tiny"), exist_ok=True)
    for kernel in json.load(open(sys.argv[1])):
        name, case = kernel["name"], kernel["tiny"]
        with open(os.path.join(HERE, "tiny", name + ".weft"), "w") as out:
            if name == "lenet":
                out.write(folded(lenet(case)))
                continue
            fields = ",\n".join(f"  {k}: {value(v)}" for k, v in case["inputs"].items())
            results = list(case["returns"] or []) + list(case["outputs_in_place"].values())
            expected = "".join(f"  {value(v)},\n" for v in results)
            out.write(HEAD.format(name) + folded(f"let input = {{\n{fields}\n}}\nlet expected = (\n{expected})\n"))


main()
