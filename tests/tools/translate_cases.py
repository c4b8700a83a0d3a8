# Translates cases of public suites, recorded as JSON, into files of tests/cases.
#   python3 tests/tools/translate_cases.py FILE.json [FOLDER [LARGEST]]     the kind is told by the file's name:
# onnx_cases.json onnx_graphs.json vjp_cases.json control_flow_checks.json gradbench.json array_api_calls.json.
# Writes into FOLDER (tests/cases) and prints what was left out, with the reason. What stands before the first case of a
# file that is there (its comment, and the functions between #[ and #]) is kept: these are written by hand. Cases with
# more than LARGEST numbers (300) in one array, or twice as many in all, are left out; in suites of short calls a third.
import json
import math
import os
import re
import struct
import sys
import textwrap

LARGEST = 300


# ---- values as literals -----------------------------------------------------------------------------------------

def number(x, dtype):
    """A number as Weft writes it: of an f32 the fewest digits that read back."""
    if isinstance(x, str):
        return x
    if dtype == "bool":
        return "true" if x else "false"
    if not re.match("b?f", dtype):
        return str(int(x))
    if x != x:
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    text = repr(float(x))
    if dtype == "f32":
        for digits in range(1, 10):
            short = f"{x:.{digits}g}"
            if struct.pack("f", float(short)) == struct.pack("f", x):
                text = repr(float(short))
                break
    return text.replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def rounded(x):
    """A float for a comparison within a tolerance: six digits."""
    return x if isinstance(x, str) or not math.isfinite(x) else float(f"{x:.6g}")


def items(xs):
    """A list literal."""
    xs = [str(x) for x in xs]
    return "(" + ", ".join(xs) + ("," if len(xs) == 1 else "") + ")"


def tensor(t, brief=False):
    """An array as an expression: strong, of the record's dtype and shape."""
    dtype, shape = t["dtype"], t["shape"]
    data = [rounded(x) for x in t["data"]] if brief and dtype.startswith("f") else t["data"]
    if 0 in shape:
        return f"zeros({items(shape)}, dtype={dtype})"
    texts = [number(x, dtype) for x in data]
    if len(texts) > 3 and len(set(texts)) == 1:
        return f"full({items(shape)}, {texts[0]}, dtype={dtype})"
    if not shape:
        return f"{dtype}({texts[0]})"
    if len(shape) == 2:
        rows = [texts[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
        inner = "[" + ", ".join("[" + ", ".join(r) + "]" for r in rows) + "]"
    else:
        inner = "[" + ", ".join(texts) + "]"
    own = {"f64": any(c in inner for c in ".ein"), "i64": True, "bool": True}.get(dtype, False)
    text = inner if own else f"{dtype}({inner})"
    return text if len(shape) <= 2 else f"reshape({text}, {items(shape)})"


def wrapped(text):
    """A statement in lines of at most 120 columns."""
    return textwrap.wrap(text, 118, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def block(name, lines, marks=("#= true",)):
    return "\n".join(["#{ " + name] + [w for line in lines for w in wrapped(line)] + list(marks) + ["#}"])


def write(folder, stem, cases, note=(), first=""):
    """Keeps the head of the file, up to the line #], and writes the cases behind it."""
    path = os.path.join(folder, stem + ".weft")
    head = first
    if os.path.exists(path):
        text = open(path).read()
        if "\n#]\n" in text:
            head = text[:text.index("\n#]\n") + 4]
            head = "".join(line for line in head.splitlines(True) if not line.startswith("# - "))
    lines = head.splitlines(True)
    rows = [w for n in note for w in textwrap.wrap(n, 118, initial_indent="# - ", subsequent_indent="# -   ")]
    head = lines[0] + "".join(r + "\n" for r in rows) + "".join(lines[1:])
    with open(path, "w") as f:
        f.write(head + "\n".join(cases) + "\n")
    print(f"{path}: {len(cases)} cases, {os.path.getsize(path)} bytes")


class Skip(Exception):
    """A case that is left out, and why."""


# ---- operators of ONNX ------------------------------------------------------------------------------------------

DTYPES = {1: "f32", 2: "u8", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32", 16: "bf16"}
SAME_NAME = ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Reciprocal Relu Round Sigmoid Sign "
             "Sin Sinh Softplus Sqrt Tan Tanh").split()
BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "And": "&", "Or": "|", "Xor": "^", "BitwiseAnd": "&", "BitwiseOr": "|",
          "BitwiseXor": "^", "Equal": "==", "Greater": ">", "GreaterOrEqual": ">=", "Less": "<", "LessOrEqual": "<=",
          "MatMul": "@"}
REDUCTIONS = {"ReduceSum": "sum({})", "ReduceMean": "mean({})", "ReduceMax": "max({})", "ReduceMin": "min({})",
              "ReduceProd": "prod({})", "ReduceLogSumExp": "logsumexp({})", "ReduceL1": "sum(abs({}))",
              "ReduceL2": "norm({})", "ReduceLogSum": "log(sum({}))", "ReduceSumSquare": "sum(square({}))"}
FILES = {"elements": "elementwise-unary elementwise-binary activation cast creation",
         "arrays": "shape indexing linalg reduction scan-cumulative sort-set control-flow",
         "layers": "nn-conv-pool nn-norm nn-recurrent nn-loss nn-train-step", "attention": "nn-attention",
         "images": "signal-image"}
MOVED = {"MelWeightMatrix": "images", "Col2Im": "images", "DeformConv": "images", "OneHot": "arrays"}


class Node:
    """A use of an operator: names of its inputs (None where absent), their values where these are known."""

    def __init__(self, op, attrs, opset, names, values, outputs, shapes=None):
        self.op, self.attrs, self.opset = op, attrs, opset
        self.names, self.values, self.outputs = names, values, outputs
        self.shapes = shapes or [v["shape"] if v else None for v in values]

    def has(self, i):
        return i < len(self.names) and self.names[i] is not None

    def name(self, i):
        return self.names[i]

    def dtype(self, i=0):
        return self.values[i]["dtype"] if self.values[i] else None

    def known(self, i):
        return self.has(i) and self.values[i] is not None and "data" in self.values[i]

    def ints(self, i, attr=None):
        """The integers of an input, or of an attribute in older versions; None when neither is there."""
        if self.has(i):
            return [int(x) for x in self.values[i]["data"]] if self.known(i) else self.names[i]
        return self.attrs.get(attr)

    def list(self, i, attr=None):
        xs = self.ints(i, attr)
        return "nil" if xs is None else xs if isinstance(xs, str) else items(xs)

    def scalar(self, i, default=None):
        if not self.has(i):
            return default
        return number(self.values[i]["data"][0], self.values[i]["dtype"]) if self.known(i) else self.names[i]

    def attr(self, key, default=None):
        return self.attrs.get(key, default)

    def flag(self, key, default=0):
        return "true" if self.attrs.get(key, default) else "false"


def decimal(x):
    """An attribute, which is an f32."""
    return number(float(f"{x:.8g}"), "f32") if isinstance(x, float) else str(x)


def call(function, first, *rest, **options):
    parts = list(first) + [str(r) for r in rest] + [f"{k}={v}" for k, v in options.items() if v is not None]
    return f"{function}({', '.join(parts)})"


def quoted(text):
    return None if text is None else f'"{text}"'


def given(node, **names):
    """Options from attributes that are there: option=attribute."""
    return {o: decimal(node.attrs[a]) for o, a in names.items() if a in node.attrs}


def reduction(n):
    axes = n.list(1, "axes")
    keep = n.flag("keepdims", 1)
    empty = axes == "nil" or axes == "()"
    if empty and n.attr("noop_with_empty_axes"):
        return [n.name(0)]
    if empty:
        axes = "nil"
    name, dtype = n.name(0), n.dtype()
    if n.op in ("ReduceMax", "ReduceMin") and n.shapes[0] and 0 in n.shapes[0]:
        worst = "-inf" if n.op == "ReduceMax" else "inf"
        if dtype == "bool":
            return [f"{'any' if n.op == 'ReduceMax' else 'all'}({name}, {axes}, {keep})"]
        return [f"full_like(sum({name}, {axes}, {keep}), {worst})"]
    inner = REDUCTIONS[n.op]
    tail = f"{{}}, 2, {axes}, {keep}" if n.op == "ReduceL2" else f"{{}}, {axes}, {keep}"
    inner = inner.replace("abs({})", "abs({}), AXES").replace("square({})", "square({}), AXES")
    if "AXES" in inner:
        text = inner.replace("AXES", f"{axes}, {keep}").format(name)
    else:
        text = inner.replace("{}", tail).format(name)
    if dtype in ("i32", "u8", "u32", "bool") and n.op not in ("ReduceMax", "ReduceMin"):
        text = f"{dtype}({text})"
    return [text]


def arg_reduction(n):
    f = n.op.lower()
    axis, keep = n.attr("axis", 0), n.flag("keepdims", 1)
    if n.attr("select_last_index"):
        return [f"last_{f}({n.name(0)}, {axis}, {keep})"]
    return [f"{f}({n.name(0)}, {axis}, {keep})"]


def windows(n, dims, size):
    """(pads as pairs, extra at the end for ceil_mode, strides, dilations) of a convolution or pooling."""
    count = len(size)
    strides, dilations = n.attr("strides", [1] * count), n.attr("dilations", [1] * count)
    pads = n.attr("pads", [0] * 2 * count)
    pairs = [[pads[k], pads[count + k]] for k in range(count)]
    auto, extra = n.attr("auto_pad", "NOTSET"), [[0, 0] for _ in range(count)]
    if dims is None and (auto.startswith("SAME") or n.attr("ceil_mode")):
        raise Skip("windows that depend on a computed size")
    for k in range(count):
        span = (size[k] - 1) * dilations[k] + 1
        if auto.startswith("SAME"):
            out = -(-dims[k] // strides[k])
            total = max((out - 1) * strides[k] + span - dims[k], 0)
            small, large = total // 2, total - total // 2
            pairs[k] = [small, large] if auto == "SAME_UPPER" else [large, small]
        elif auto == "VALID":
            pairs[k] = [0, 0]
        if n.attr("ceil_mode"):
            room = dims[k] + sum(pairs[k]) - span
            out = -(-room // strides[k]) + 1
            if (out - 1) * strides[k] >= dims[k] + pairs[k][0]:
                out -= 1
            extra[k][1] = max((out - 1) * strides[k] - room, 0)
    return pairs, extra, strides, dilations


def pair_text(pairs):
    return items(items(p) for p in pairs)


def convolution(n):
    kernel = n.shapes[1][2:]
    pairs, _, strides, dilations = windows(n, n.shapes[0] and n.shapes[0][2:], kernel)
    text = call("nn.conv", n.names[:2], stride=items(strides), padding=pair_text(pairs), dilation=items(dilations),
                groups=n.attr("group", 1))
    if n.has(2):
        text += f" + reshape({n.name(2)}, {items([-1] + [1] * len(kernel))})"
    return [text]


def transposed_convolution(n):
    dims, kernel = n.shapes[0][2:], n.shapes[1][2:]
    count = len(kernel)
    strides, dilations = n.attr("strides", [1] * count), n.attr("dilations", [1] * count)
    more, pads = n.attr("output_padding", [0] * count), n.attr("pads", [0] * 2 * count)
    pairs = [[pads[k], pads[count + k]] for k in range(count)]
    shape, auto = n.attr("output_shape"), n.attr("auto_pad", "NOTSET")
    for k in range(count):
        if shape or auto.startswith("SAME"):
            out = shape[-count:][k] if shape else dims[k] * strides[k]
            total = strides[k] * (dims[k] - 1) + more[k] + (kernel[k] - 1) * dilations[k] + 1 - out
            small = total // 2
            pairs[k] = [small, total - small] if auto != "SAME_LOWER" else [total - small, small]
            if total < 0:
                more, pairs[k] = more[:k] + [more[k] - total] + more[k + 1:], [0, 0]
    text = call("nn.conv_transpose", n.names[:2], stride=items(strides), padding=pair_text(pairs),
                dilation=items(dilations), groups=n.attr("group", 1), output_padding=items(more))
    if n.has(2):
        text += f" + reshape({n.name(2)}, {items([-1] + [1] * count)})"
    return [text]


def pooling(n):
    size = n.attr("kernel_shape")
    pairs, extra, strides, dilations = windows(n, n.shapes[0] and n.shapes[0][2:], size)
    both = [[p[0] + e[0], p[1] + e[1]] for p, e in zip(pairs, extra)]
    if n.op == "MaxPool":
        out = [call("nn.max_pool", n.names[:1], items(size), stride=items(strides), padding=pair_text(both),
                    dilation=items(dilations))]
        if len(n.outputs) > 1 and n.outputs[1]:
            out.append(call("pool_places", n.names[:1], items(size), items(strides), pair_text(both),
                            items(dilations), n.flag("storage_order")))
        return out
    if n.op == "LpPool":
        return [call("lp_pool", n.names[:1], items(size), items(strides), pair_text(pairs), pair_text(extra),
                     items(dilations), p=decimal(n.attr("p", 2)))]
    if not any(map(any, both)):
        return [call("nn.avg_pool", n.names[:1], items(size), stride=items(strides), dilation=items(dilations))]
    return [call("average_pool", n.names[:1], items(size), items(strides), pair_text(pairs), pair_text(extra),
                 items(dilations), n.flag("count_include_pad"))]


def slices(n):
    if n.op == "Slice" and "starts" in n.attrs:
        starts, ends, axes, steps = n.attr("starts"), n.attr("ends"), n.attr("axes"), None
    else:
        starts, ends, axes, steps = (n.ints(k) for k in (1, 2, 3, 4))
    if any(isinstance(v, str) for v in (starts, ends, axes, steps)):
        count = next(len(v) for v in (starts, ends, axes, steps, [0]) if isinstance(v, list))
        every = (starts, ends, axes or range(count), steps or [1] * count)
        parts = [v if isinstance(v, str) else items(v) for v in every]
        return [call("slice_axes", n.names[:1], *parts)]
    rank = len(n.shapes[0]) if n.shapes[0] else None
    axes = axes if axes is not None else list(range(len(starts)))
    if rank is None and min(axes) < 0:
        parts = (starts, ends, axes, steps or [1] * len(axes))
        return [call("slice_axes", n.names[:1], *map(items, parts))]
    parts = [":"] * (max(a % rank if rank else a for a in axes) + 1)
    for k, a in enumerate(axes):
        step = steps[k] if steps else 1
        end = "" if abs(ends[k]) >= 2**31 - 1 else ends[k]
        parts[a % rank if rank else a] = f"{starts[k]}:{end}" + (f":{step}" if step != 1 else "")
    return [f"{n.name(0)}[{', '.join(parts)}]"]


def splitting(n):
    axis, parts = n.attr("axis", 0), n.ints(1, "split")
    size = n.shapes[0][axis] if n.shapes[0] else None
    count = n.attr("num_outputs", len(n.outputs))
    if isinstance(parts, str):
        return (f"split({n.name(0)}, cumsum({parts})[:-1], {axis})",)
    if parts is None and size is not None and size % count:
        each = -(-size // count)
        parts = [each] * (count - 1) + [size - each * (count - 1)]
    if parts is None:
        return (f"split({n.name(0)}, {count}, {axis})",)
    cuts = [sum(parts[:k + 1]) for k in range(len(parts) - 1)]
    return (f"split({n.name(0)}, {items(cuts)}, {axis})",)


def padding(n):
    mode = n.attr("mode", "constant")
    pads = n.ints(1, "pads")
    value = n.scalar(2, decimal(n.attr("value", 0)))
    if isinstance(pads, str) or n.shapes[0] is None:
        raise Skip("widths of a border that are computed")
    rank = len(n.shapes[0])
    axes = n.ints(3) if n.has(3) else list(range(rank))
    if min(pads) < 0:
        return [call("pad_axes", n.names[:1], items(pads), items(axes), f'"{mode}"', value)]
    pairs = [[0, 0] for _ in range(rank)]
    for k, a in enumerate(axes):
        pairs[a] = [pads[k], pads[len(axes) + k]]
    return [call("pad", n.names[:1], pair_text(pairs), mode=f'"{mode}"' if mode != "constant" else None,
                 value=value if mode == "constant" and str(value) != "0" else None)]


def unique_elements(n):
    axis = n.attr("axis")
    if not n.attr("sorted", 1):
        return (call("unique_in_order", n.names[:1], *([axis] if axis is not None else [])),)
    return (call("unique", n.names[:1], return_index="true", return_inverse="true", return_counts="true", axis=axis),)


def resizing(n):
    shape = n.shapes[0]
    axes = n.attr("axes", list(range(len(shape))))
    roi = n.values[1]["data"] if n.has(1) and n.values[1]["data"] else None
    scales = n.values[2]["data"] if n.has(2) and n.values[2]["data"] else None
    if scales:
        sizes = [int(math.floor(shape[a] * s)) for a, s in zip(axes, scales)]
    else:
        sizes = n.ints(3)
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        scales = [s / shape[a] for a, s in zip(axes, sizes)]
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales, sizes = [scale] * len(axes), [int(math.floor(scale * shape[a] + 0.5)) for a in axes]
    kept = [k for k, a in enumerate(axes) if not (sizes[k] == shape[a] and scales[k] == 1 and not roi)]
    pick = lambda xs: [xs[k] for k in kept]
    if roi:
        roi = pick(roi[:len(axes)]) + pick(roi[len(axes):])
    opts = {"mode": n.attr("mode", "nearest"), "how": n.attr("coordinate_transformation_mode", "half_pixel"),
            "nearest": n.attr("nearest_mode", "round_prefer_floor")}
    defaults = {"mode": "nearest", "how": "half_pixel", "nearest": "round_prefer_floor"}
    return [call("resize", n.names[:1], items(pick(axes)), items(pick(sizes)),
                 items(decimal(float(s)) for s in pick(scales)),
                 **{k: f'"{v}"' for k, v in opts.items() if v != defaults[k]},
                 roi=items(decimal(float(x)) for x in roi) if roi else None,
                 exclude="true" if n.attr("exclude_outside") else None,
                 antialias="true" if n.attr("antialias") else None,
                 **given(n, a="cubic_coeff_a", outside="extrapolation_value"))]


def recurrent(n):
    x, w, r = n.names[:3]
    kinds = {"RNN": 1, "GRU": 3, "LSTM": 4}
    gates, hidden = kinds[n.op], n.attr("hidden_size", n.shapes[2][2])
    layout, dirs = n.attr("layout", 0), n.shapes[1][0]
    steps, batch = (n.shapes[0][1], n.shapes[0][0]) if layout else n.shapes[0][:2]
    dtype = n.dtype()
    b = n.name(3) if n.has(3) else f"zeros({items([dirs, 2 * gates * hidden])}, dtype={dtype})"
    lengths = n.name(4) if n.has(4) else f"full({batch}, {steps})"
    start = f"zeros({items([batch, dirs, hidden] if layout else [dirs, batch, hidden])}, dtype={dtype})"
    states = [n.name(5) if n.has(5) else start]
    if n.op == "LSTM":
        states.append(n.name(6) if n.has(6) else start)
    usual = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[n.op]
    acts = n.attr("activations", usual * dirs)
    if "activation_alpha" in n.attrs or "activation_beta" in n.attrs:
        raise Skip("activations of a recurrent cell with parameters")
    per = len(usual)
    fs = items(items(f'"{a}"' for a in acts[d * per:(d + 1) * per]) for d in range(dirs))
    limit = decimal(n.attr("clip")) if "clip" in n.attrs else "nil"
    if n.op == "RNN":
        cell = f"(v, s, w, r, b, d) => rnn_step(v, s, w, r, b, {fs}[d], {limit})"
    elif n.op == "GRU":
        cell = f"(v, s, w, r, b, d) => gru_step(v, s, w, r, b, {fs}[d], {limit}, {n.flag('linear_before_reset')})"
    else:
        p = n.name(7) if n.has(7) else f"zeros({items([dirs, 3 * hidden])}, dtype={dtype})"
        cell = (f"(v, s, w, r, b, d) => lstm_step(v, s, w, r, b, {p}[d], {fs}[d], {limit}, "
                f"{n.flag('input_forget')})")
    return (f'recurrent({cell}, {x}, {w}, {r}, {b}, {lengths}, {items(states)}, '
            f'"{n.attr("direction", "forward")}", {layout})',)


def layer_normalisation(n):
    opts = given(n, axis="axis", eps="epsilon")
    return (call("layer_norm", n.names[:2], n.name(2) if n.has(2) else "nil", **opts),)


def loss(n):
    x, target = n.names[:2]
    weight = n.name(2) if n.has(2) else "nil"
    ignore = n.attr("ignore_index", "nil")
    tail = f'{target}, {weight}, {ignore}, "{n.attr("reduction", "mean")}"'
    if n.op == "NegativeLogLikelihoodLoss":
        return [f"nll_loss({x}, {tail})"]
    out = [f"nll_loss(nn.log_softmax({x}, 1), {tail})"]
    return out + ([f"nn.log_softmax({x}, 1)"] if len(n.outputs) > 1 else [])


def training(n):
    rest = len(n.names) - 2
    rate, t = n.names[:2]
    if n.op == "Adagrad":
        states, f = 1, lambda x, g, v: call("adagrad", [rate, t, x, g, *v], **given(
            n, decay="decay_factor", eps="epsilon", norm="norm_coefficient"))
    elif n.op == "Adam":
        states, f = 2, lambda x, g, v: call("adam", [rate, t, x, g, *v], **given(
            n, alpha="alpha", beta="beta", eps="epsilon", norm="norm_coefficient", norm_post="norm_coefficient_post"))
    else:
        states, f = 1, lambda x, g, v: call("momentum", [rate, t, x, g, *v], decimal(n.attr("alpha")), decimal(
            n.attr("beta")), decimal(n.attr("norm_coefficient")), "true" if n.attr("mode") == "nesterov" else "false")
    count = rest // (2 + states)
    names = n.names[2:]
    each = [f(names[k], names[count + k], [names[(2 + s) * count + k] for s in range(states)]) for k in range(count)]
    order = [f"{e}[{s}]" for s in range(1 + states) for e in each]
    return order


def bit_cast(n):
    """Between the dtypes that have a function among those written by hand."""
    kinds = {("f32", 6): "float_bits", ("i32", 1): "bits_float"}
    kind = (n.dtype(), n.attr("to"))
    if kind not in kinds:
        raise Skip("bits of other dtypes than f32 and i32")
    return f"{kinds[kind]}({n.name(0)})"


def attention(n):
    opts = {"mask": n.name(3) if n.has(3) else None, "past_key": n.name(4) if n.has(4) else None,
            "past_value": n.name(5) if n.has(5) else None, "lengths": n.name(6) if n.has(6) else None,
            "causal": "true" if n.attr("is_causal") else None,
            **{side: n.attr(f"{side}_window_size") for side in ("left", "right")
               if n.attr(f"{side}_window_size", -1) >= 0}}
    opts.update(given(n, q_heads="q_num_heads", kv_heads="kv_num_heads", scale="scale", softcap="softcap",
                      mode="qk_matmul_output_mode"))
    return (call("attention", n.names[:3], **opts),)


def flex_attention(n, graphs):
    mods = {k: graphs(n.attr(k)["graph"]) for k in ("score_mod", "prob_mod") if k in n.attrs}
    return [call("flex_attention", n.names[:3], **given(n, scale="scale"), **mods)]


def linear_attention(n):
    opts = {"past": n.name(3) if n.has(3) else None, "decay": n.name(4) if n.has(4) else None,
            "beta": n.name(5) if n.has(5) else None}
    rule = n.attr("update_rule")
    return (call("linear_attention", n.names[:3], **opts, **given(n, q_heads="q_num_heads", kv_heads="kv_num_heads",
                                                                  scale="scale"),
                 rule=f'"{rule}"' if rule else None),)


def rotary(n):
    heads = n.attr("num_heads") if len(n.shapes[0]) == 3 else None
    return [call("rotary", n.names[:3], positions=n.name(3) if n.has(3) else None, heads=heads,
                 interleaved="true" if n.attr("interleaved") else None, **given(n, width="rotary_embedding_dim"))]


def grid(n):
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.attr("mode", "linear"), n.attr("mode", "linear"))
    pad_mode = n.attr("padding_mode", "zeros")
    return [call("grid_sample", n.names[:2], f'"{mode}"', f'"{pad_mode}"', n.flag("align_corners"))]


def window(n):
    size = n.scalar(0)
    periodic = n.flag("periodic", 1)
    kind = {"Hann": "hann", "Hamming": "hamming", "Blackman": "blackman"}[n.op[:-6]]
    i = f"arange({size}) / ({size} - (if {periodic} {{ 0 }} else {{ 1 }}))"
    if kind == "hamming":
        return [f"f32(25 / 46 - 21 / 46 * cos(2 * pi * {i}))"]
    return [f'f32(signal.window("{kind}", {size}, {periodic}))']


def transform(n):
    axis = n.attr("axis", 1) if n.opset < 20 else int(n.scalar(2, -2))
    return [call("dft", n.names[:1], axis, n.flag("inverse"), n.flag("onesided"), length=n.scalar(1))]


def simple(n, graphs):
    """Operators that a line says, by their versions and attributes."""
    op, x = n.op, (n.name(0) if n.names else None)
    args = [m for m in n.names if m is not None]
    dtype = n.dtype() if n.names else None
    if op in SAME_NAME:
        return [f"{op.lower()}({x})"]
    if op in BINARY:
        y = n.name(1)
        return [f"{x} {BINARY[op]} {y}"]
    if op in REDUCTIONS:
        return reduction(n)
    table = {
        "Div": lambda: f"quotient({x}, {n.name(1)})" if dtype and not re.match("b?f", dtype) else (
            f"{x} / {n.name(1)}" if dtype else f"divided({x}, {n.name(1)})"),
        "BitShift": lambda: f"{x} {'<<' if n.attr('direction') == 'LEFT' else '>>'} {n.name(1)}",
        "BitwiseNot": lambda: f"~{x}", "Not": lambda: f"~{x}", "Neg": lambda: f"-{x}", "Identity": lambda: x,
        "Cast": lambda: f"astype({x}, {DTYPES[n.attr('to')]})", "CastLike": lambda: f"astype({x}, {n.name(1)}.dtype)",
        "BitCast": lambda: bit_cast(n),
        "Elu": lambda: call("elu", args, **given(n, alpha="alpha")),
        "Celu": lambda: call("celu", args, **given(n, alpha="alpha")),
        "Selu": lambda: call("selu", args, **given(n, alpha="alpha", gamma="gamma")),
        "LeakyRelu": lambda: call("leaky_relu", args, **given(n, alpha="alpha")),
        "HardSigmoid": lambda: call("hard_sigmoid", args, **given(n, alpha="alpha", beta="beta")),
        "HardSwish": lambda: call("hard_swish", args), "Mish": lambda: call("mish", args),
        "Swish": lambda: call("swish", args, **given(n, alpha="alpha")),
        "SwiGLU": lambda: call("swiglu", args, **given(n, alpha="alpha")),
        "Softsign": lambda: call("softsign", args),
        "ThresholdedRelu": lambda: call("thresholded_relu", args, **given(n, alpha="alpha")),
        "Shrink": lambda: call("shrink", args, **given(n, lambd="lambd", bias="bias")),
        "PRelu": lambda: f"where({x} < 0, {n.name(1)} * {x}, {x})",
        "Gelu": lambda: call("gelu", args, approximate="true" if n.attr("approximate") == "tanh" else None),
        "Hardmax": lambda: call("hardmax", args, n.attr("axis", -1)),
        "Softmax": lambda: call("nn.softmax", args, n.attr("axis", -1)),
        "LogSoftmax": lambda: call("nn.log_softmax", args, n.attr("axis", -1)),
        "IsInf": lambda: f"isinf({x})" if n.attr("detect_negative", 1) and n.attr("detect_positive", 1) else call(
            "is_infinite", args, n.flag("detect_negative", 1), n.flag("detect_positive", 1)),
        "IsNaN": lambda: f"isnan({x})", "Det": lambda: f"linalg.det({x})",
        "Clip": lambda: call("clip", [x], **given(n, min="min", max="max"), **{
            o: n.name(k) for k, o in ((1, "min"), (2, "max")) if n.has(k)}),
        "Max": lambda: f"reduce(maximum, {items(args)})", "Min": lambda: f"reduce(minimum, {items(args)})",
        "Sum": lambda: " + ".join(args), "Mean": lambda: f"({' + '.join(args)}) / {len(args)}",
        "Mod": lambda: f"{x} % {n.name(1)}" if not n.attr("fmod") else f"fmod({x}, {n.name(1)})" if dtype in (
            "f32", "f64") else f"astype(fmod({x}, {n.name(1)}), {x}.dtype)",
        "Pow": lambda: f"astype({x} ** {n.name(1)}, {dtype or x + '.dtype'})",
        "Where": lambda: call("where", args),
        "Constant": lambda: constant(n), "ConstantOfShape": lambda: filled(n),
        "EyeLike": lambda: call("eye", [f"{x}.shape[0]", f"{x}.shape[1]"], n.attr("k", 0), dtype=DTYPES[
            n.attr("dtype")] if "dtype" in n.attrs else x + ".dtype"),
        "Range": lambda: f"arange({', '.join(n.names)})",
        "Shape": lambda: f"array({x}.shape[{n.attr('start', 0)}:{n.attr('end', '')}], dtype=i64)",
        "Size": lambda: f"i64({x}.size)",
        "Concat": lambda: f"concat({items(args)}, {n.attr('axis')})",
        "Reshape": lambda: call("reshape_kept" if not n.attr("allowzero") and (
            not n.known(1) or 0 in n.ints(1)) else "reshape", [x], n.list(1)),
        "Flatten": lambda: flatten(n), "Transpose": lambda: call("transpose", args, *(
            [items(n.attr("perm"))] if "perm" in n.attrs else [])),
        "Squeeze": lambda: call("squeeze", [x], *([n.list(1, "axes")] if n.list(1, "axes") != "nil" else [])),
        "Unsqueeze": lambda: f"expand_dims({x}, {n.list(1, 'axes')})",
        "Expand": lambda: f"broadcast_to({x}, {broadcast(n.shapes[0], n.ints(1))})" if n.known(1) and (
            n.shapes[0] is not None) else f"expanded({x}, {n.name(1)})",
        "Tile": lambda: f"tile({x}, {n.list(1)})",
        "Gather": lambda: f"take({x}, {n.name(1)}, {n.attr('axis', 0)})",
        "GatherElements": lambda: call("gather_elements", args, n.attr("axis", 0)),
        "GatherND": lambda: call("gather_nd", args, n.attr("batch_dims", 0)),
        "Scatter": lambda: call("scatter_elements", args, n.attr("axis", 0)),
        "ScatterElements": lambda: call("scatter_elements", args, n.attr("axis", 0), f'"{reduce_name(n)}"'),
        "ScatterND": lambda: call("scatter_nd", args, f'"{reduce_name(n)}"'),
        "TensorScatter": lambda: call("tensor_scatter", args, n.attr("axis", -2), "true" if n.attr(
            "mode") == "circular" else "false"),
        "OneHot": lambda: call("hot_values", [x], int(float(n.scalar(1))), n.name(2), n.attr("axis", -1)),
        "Trilu": lambda: f"{'triu' if n.attr('upper', 1) else 'tril'}({x}, {n.scalar(1, 0)})",
        "Compress": lambda: call("compress", args, axis=n.attr("axis")) if "axis" in n.attrs else
        f"ravel({x})[nonzero({n.name(1)})[0]]",
        "NonZero": lambda: f"stack(nonzero({x}))",
        "CumSum": lambda: cumulative(n), "CumProd": lambda: cumulative(n),
        "Einsum": lambda: f'einsum("{n.attr("equation")}", {", ".join(args)})',
        "Gemm": lambda: call("gemm", [x + (".T" if n.attr("transA") else ""), n.name(1) + (
            ".T" if n.attr("transB") else "")] + args[2:], **given(n, alpha="alpha", beta="beta")),
        "ReverseSequence": lambda: call("reverse_sequence", args, n.attr("time_axis", 0), n.attr("batch_axis", 1)),
        "DepthToSpace": lambda: call("depth_to_space", args, n.attr("blocksize"), "true" if n.attr("mode") == "CRD"
                                     else "false"),
        "SpaceToDepth": lambda: call("space_to_depth", args, n.attr("blocksize"), *(
            ["true"] if n.attr("mode") == "CRD" else [])),
        "CenterCropPad": lambda: call("center_crop_pad", [x], n.list(1), items(
            n.attr("axes", range(len(n.shapes[0]))))),
        "GlobalAveragePool": lambda: f"mean({x}, list(2..{x}.ndim), true)",
        "GlobalMaxPool": lambda: f"max({x}, list(2..{x}.ndim), true)",
        "GlobalLpPool": lambda: f"norm({x}, {n.attr('p', 2)}, list(2..{x}.ndim), true)",
        "LRN": lambda: call("lrn", args, n.attr("size"), **given(n, alpha="alpha", beta="beta", bias="bias")),
        "InstanceNormalization": lambda: call("instance_norm", args, **given(n, eps="epsilon")),
        "GroupNormalization": lambda: call("nn.group_norm", [x], n.attr("num_groups"), *args[1:], **given(
            n, eps="epsilon")),
        "RMSNormalization": lambda: call("rms_norm", args, **given(n, axis="axis", eps="epsilon")),
        "LpNormalization": lambda: call("lp_norm", args, **given(n, axis="axis", p="p")),
        "MeanVarianceNormalization": lambda: call("mean_variance", args, items(n.attr("axes", [0, 2, 3]))),
        "MaxUnpool": lambda: call("max_unpool", args[:2], unpooled(n)),
        "AffineGrid": lambda: call("affine_grid", [x], items(n.ints(1)[2:]), n.flag("align_corners")),
        "RoiAlign": lambda: call(
            "roi_align", args, items([n.attr("output_height", 1), n.attr("output_width", 1)]),
            **given(n, ratio="sampling_ratio", scale="spatial_scale"),
            mode='"max"' if n.attr("mode") == "max" else None,
            half="false" if n.attr("coordinate_transformation_mode") == "output_half_pixel" or n.opset < 16 else None),
        "NonMaxSuppression": lambda: call("non_max_suppression", args[:2], n.scalar(2, 0), n.scalar(3, "0.0"),
                                          n.scalar(4, "nil"), "true" if n.attr("center_point_box") else "false"),
        "Col2Im": lambda: col2im(n), "DeformConv": lambda: deformed(n),
        "STFT": lambda: call("stft", [x], n.scalar(1), window=n.name(2) if n.has(2) else None, length=n.scalar(3),
                             onesided=n.flag("onesided", 1)),
        "MelWeightMatrix": lambda: call("mel_matrix", args),
        "Dropout": lambda: x,
    }
    return [table[op]()] if op in table else None


def constant(n):
    for key, value in n.attrs.items():
        if isinstance(value, dict):
            return tensor(value)
        if key in ("value_int", "value_float"):
            return f"i64({value})" if key == "value_int" else f"f32({decimal(value)})"
        if key in ("value_ints", "value_floats"):
            dtype = "i64" if key == "value_ints" else "f32"
            return tensor({"dtype": dtype, "shape": [len(value)], "data": value})
    raise Skip("a constant of text")


def filled(n):
    value = n.attr("value") or {"dtype": "f32", "data": [0.0]}
    return f"full({n.list(0)}, {number(value['data'][0], value['dtype'])}, dtype={value['dtype']})"


def flatten(n):
    axis = n.attr("axis", 1)
    if n.shapes[0] is None:
        return f"flattened({n.name(0)}, {axis})"
    axis = axis % len(n.shapes[0]) if axis < 0 else axis
    return f"reshape({n.name(0)}, {items([math.prod(n.shapes[0][:axis]), math.prod(n.shapes[0][axis:])])})"


def broadcast(a, b):
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    return items(y if x == 1 else x for x, y in zip(a, b))


def reduce_name(n):
    return {"none": "set"}.get(n.attr("reduction", "none"), n.attr("reduction", "none"))


def cumulative(n):
    f = n.op.lower()
    x, axis = n.name(0), int(n.scalar(1))
    dtype = n.dtype()
    opts = {"reverse": "true" if n.attr("reverse") else None}
    if n.attr("exclusive"):
        opts["include_initial"] = "true"
    text = call(f, [x], axis, **opts)
    if n.attr("exclusive"):
        rank = len(n.shapes[0])
        part = "1:" if n.attr("reverse") else ":-1"
        text += "[" + ", ".join([":"] * (axis % rank) + [part]) + "]"
    return f"{dtype}({text})" if dtype in ("i32", "u8", "u32") else text


def unpooled(n):
    size, shape = n.attr("kernel_shape"), n.shapes[0]
    strides, pads = n.attr("strides", [1] * len(size)), n.attr("pads", [0] * 2 * len(size))
    out = [(shape[2 + k] - 1) * strides[k] - pads[k] - pads[len(size) + k] + size[k] for k in range(len(size))]
    own = items(shape[:2] + out)
    return f"{own}, {n.list(2)}" if n.has(2) else own


def col2im(n):
    count = len(n.ints(1))
    return call("col2im", n.names[:1], n.list(1), n.list(2), items(n.attr("dilations", [1] * count)), items(
        n.attr("pads", [0] * 2 * count)), items(n.attr("strides", [1] * count)))


def deformed(n):
    opts = {"stride": n.attr("strides"), "pads": n.attr("pads"), "dilation": n.attr("dilations")}
    return call("deform_conv", n.names[:3], n.name(3) if n.has(3) else "nil", n.name(4) if n.has(4) else "nil",
                **{k: items(v) for k, v in opts.items() if v}, **given(n, group="group", parts="offset_group"))


SPECIAL = {"ArgMax": arg_reduction, "ArgMin": arg_reduction, "Conv": convolution,
           "ConvTranspose": transposed_convolution,
           "MaxPool": pooling, "AveragePool": pooling, "LpPool": pooling, "Slice": slices, "Split": splitting,
           "Pad": padding, "Unique": unique_elements, "Resize": resizing, "Upsample": resizing, "RNN": recurrent,
           "GRU": recurrent, "LSTM": recurrent, "LayerNormalization": layer_normalisation,
           "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": loss, "Adagrad": training, "Adam": training,
           "Momentum": training, "Attention": attention, "LinearAttention": linear_attention, "RotaryEmbedding": rotary,
           "GridSample": grid, "HannWindow": window, "HammingWindow": window, "BlackmanWindow": window,
           "DFT": transform,
           "TopK": lambda n: (call("topk", n.names[:1], int(n.ints(1)[0]) if n.known(1) else n.name(1) + "[0]",
                                   n.attr("axis", -1), n.flag("largest", 1)),),
           "CausalConvWithState": lambda n: (call("causal_conv", n.names[:2], bias=n.name(2) if n.has(2) else None,
                                                  past=n.name(3) if n.has(3) else None,
                                                  activation=quoted(n.attr("activation"))),),
           "BatchNormalization": lambda n: (call("batch_norm_training", n.names, **given(
               n, eps="epsilon", momentum="momentum")),) if n.attr("training_mode") else [
                   call("nn.batch_norm", n.names, **given(n, eps="epsilon"))]}


def expressions(n, graphs):
    """What the outputs are: a list of one expression for each, or a tuple of one that gives them all as a list."""
    if n.op == "FlexAttention":
        return flex_attention(n, graphs)
    if n.op in SPECIAL:
        return SPECIAL[n.op](n)
    out = simple(n, graphs)
    if out is None:
        raise Skip(f"the operator {n.op} is not translated")
    return out


def variable(name):
    """A name of Weft for a name of the record: what is no letter alone is marked, so that it hides no built-in."""
    short = re.sub(r"\W", "_", name)
    if re.fullmatch(r"[A-Za-z]\d?", short):
        return short
    return ("v" if short[0].isdigit() else "") + short + "_"


class Program:
    """Statements for the nodes of a graph. Names of the record become short ones."""

    def __init__(self, opset, outer=None):
        self.names, self.values = dict(outer.names) if outer else {}, dict(outer.values) if outer else {}
        self.taken = outer.taken if outer else {}
        self.opset, self.lines = opset, []

    def declare(self, name, value=None):
        short = re.sub(r".*_function_", "", name)
        short = variable(short)
        count = self.taken[short] = self.taken.get(short, 0) + 1
        self.names[name] = short if count == 1 else f"{short}{count}"
        self.values[name] = value
        return self.names[name]

    def body(self, graph):
        """A graph as a function: its inputs are parameters."""
        inner = Program(self.opset, self)
        params = [inner.declare(i["name"]) for i in graph["inputs"]]
        for t in graph["initializers"]:
            inner.lines.append(f"let {inner.declare(t['name'], t)} = {tensor(t)}")
        inner.nodes(graph["nodes"])
        outs = [inner.names[o["name"]] for o in graph["outputs"]]
        result = outs[0] if len(outs) == 1 else items(outs)
        return params, inner.lines, outs, f"({', '.join(params)}) => {{ {'; '.join(inner.lines + [result])} }}"

    def nodes(self, nodes):
        for node in nodes:
            self.node(node)

    def node(self, node):
        names = [self.names[i] if i else None for i in node["inputs"]]
        values = [self.values.get(i) if i else None for i in node["inputs"]]
        shapes = [v["shape"] if v else None for v in values]
        n = Node(node["op"], node["attrs"], self.opset, names, values, node["outputs"], shapes)
        if n.op == "Scan":
            return self.scan(node, n)
        if n.op == "Loop":
            return self.loop(node, n)
        if n.op == "If":
            return self.branch(node, n)
        out = expressions(n, lambda g: self.body(g)[3])
        value = n.attr("value") if n.op == "Constant" and isinstance(n.attr("value"), dict) else None
        if n.op == "Identity":
            value = self.values.get(node["inputs"][0])
        if isinstance(out, tuple):
            targets = [self.declare(o) if o else "_" for o in node["outputs"]]
            self.lines.append(f"let ({', '.join(targets)}, ...rest) = {out[0]}")
        else:
            for o, e in zip(node["outputs"], out):
                if o:
                    self.lines.append(f"let {self.declare(o, value)} = {e}")

    def scan(self, node, n):
        count = n.attr("num_scan_inputs")
        states = len(n.names) - count
        params, lines, outs, _ = self.body(n.attr("body")["graph"])
        axes, back = n.attr("scan_input_axes", [0] * count), n.attr("scan_input_directions", [0] * count)
        xs = [f"moveaxis({m}, {a}, 0)" if a else m for m, a in zip(n.names[states:], axes)]
        xs = [f"flip({m}, 0)" if b else m for m, b in zip(xs, back)]
        result = f"({items(outs[:states])}, {items(outs[states:])})"
        f = f"(({', '.join(params[:states])},), ({', '.join(params[states:])},)) => {{ {'; '.join(lines + [result])} }}"
        targets = [self.declare(o) if o else "_" for o in node["outputs"]]
        left, right = targets[:states], targets[states:]
        self.lines.append(f"let (({', '.join(left)},), ({', '.join(right)},)) = scan({f}, {items(n.names[:states])}, "
                          f"{items(xs)})")
        for k, o in enumerate(right):
            if n.attr("scan_output_directions", [0] * len(right))[k]:
                self.lines.append(f"let {o} = flip({o}, 0)")
            if n.attr("scan_output_axes", [0] * len(right))[k]:
                self.lines.append(f"let {o} = moveaxis({o}, 0, {n.attr('scan_output_axes')[k]})")

    def loop(self, node, n):
        params, lines, outs, _ = self.body(n.attr("body")["graph"])
        states = n.names[2:]
        targets = [self.declare(o) if o else self.declare("unused") for o in node["outputs"]]
        limit = n.name(0) if n.has(0) else "9223372036854775807"
        first = n.name(1) if n.has(1) else "true"
        for target, value in zip(targets, states):
            self.lines.append(f"let {target} = {value}")
        rows = targets[len(states):]
        self.lines += [f"let {r} = ()" for r in rows]
        self.lines += [f"let go_ = {first}", "let trip_ = 0"]
        head = [f"let {p} = {v}" for p, v in zip(params, ["trip_", "go_"] + targets[:len(states)])]
        tail = [f"go_ = {outs[0]}"] + [f"{t} = {o}" for t, o in zip(targets, outs[1:1 + len(states)])]
        tail += [f"{r} += ({o},)" for r, o in zip(rows, outs[1 + len(states):])] + ["trip_ += 1"]
        self.lines.append(f"while trip_ < {limit} and go_ {{ {'; '.join(head + lines + tail)} }}")
        self.lines += [f"let {r} = stack({r})" for r in rows]

    def branch(self, node, n):
        arms = []
        for key in ("then_branch", "else_branch"):
            _, lines, outs, _ = self.body(n.attr(key)["graph"])
            arms.append("{ " + "; ".join(lines + [items(outs)]) + " }")
        targets = [self.declare(o) for o in node["outputs"]]
        self.lines.append(f"let ({', '.join(targets)},) = if {n.name(0)} {arms[0]} else {arms[1]}")


def check_outputs(outputs, names):
    """Comparisons of the outputs that the record has."""
    tests = []
    for o, name in zip(outputs, names):
        if o:
            near = re.match("b?f", o["dtype"])
            tests.append(f"{'near' if near else 'same'}({name}, {tensor(o, near)})")
    return " and ".join(tests)


def size_fits(record):
    tensors = [t for t in record["inputs"] + record["outputs"] if t]
    for node in record.get("graph", {}).get("nodes", []):
        tensors += [v for v in node["attrs"].values() if isinstance(v, dict) and "data" in v]
    tensors += record.get("graph", {}).get("initializers", [])
    sizes = [len(t.get("data", ())) for t in tensors]
    if max(sizes + [0]) > LARGEST or sum(sizes) > 2 * LARGEST:
        raise Skip(f"an array of more than {LARGEST} numbers, or {2 * LARGEST} in all")


def onnx_case(r):
    name = r["name"].replace("test_", "", 1).replace("_", " ")
    size_fits(r)
    if r["op"] in ("Scan", "Loop", "If"):
        outs = [f"out{k}" for k in range(len(r["outputs"]))]
        node = {"op": r["op"], "attrs": r["attrs"], "inputs": [i["name"] if i else "" for i in r["inputs"]],
                "outputs": outs}
        graph = {"inputs": [i["name"] for i in r["inputs"]], "outputs": outs, "initializers": [], "nodes": [node]}
        return graph_case(dict(r, graph=graph))
    taken, lets = {}, []
    names = []
    for t in r["inputs"]:
        if t is None:
            names.append(None)
            continue
        short = variable(t["name"])
        if short in taken:
            short += str(len(taken))
        taken[short] = t
        names.append(short)
    n = Node(r["op"], r["attrs"], r["opset"], names, r["inputs"], r["outputs"])
    program = Program(r["opset"])
    out = expressions(n, lambda g: program.body(g)[3])
    text = " ".join(out)
    for short, t in taken.items():
        if re.search(rf"\b{re.escape(short)}\b", text):
            lets.append(f"let {short} = {tensor(t)}")
    if isinstance(out, tuple) and not isinstance(out, list):
        targets = [f"r{k}" if o else "_" for k, o in enumerate(r["outputs"])]
        lets.append(f"let ({', '.join(targets)}, ...rest) = {out[0]}")
        return block(name, lets + [check_outputs(r["outputs"], targets)])
    return block(name, lets + [check_outputs(r["outputs"], out)])


def graph_case(r):
    name = r["name"].replace("test_", "", 1).replace("_", " ")
    size_fits(r)
    p = Program(r["opset"])
    shaped = {t["name"]: t for t in r["inputs"] if t}
    fixed = {"axes", "shape", "k", "pads"}
    for t in r["inputs"]:
        value = t if t["name"] in fixed else {"dtype": t["dtype"], "shape": t["shape"]}
        p.lines.append(f"let {p.declare(t['name'], value)} = {tensor(t)}")
    for t in r["graph"]["initializers"]:
        p.lines.append(f"let {p.declare(t['name'], t)} = {tensor(t)}")
    p.nodes(r["graph"]["nodes"])
    return block(name, p.lines + [check_outputs(r["outputs"], [p.names[o] for o in r["graph"]["outputs"]])])


def translate_all(records, one):
    cases, left = [], {}
    for r in records:
        try:
            cases.append(one(r))
        except Skip as e:
            name = r.get("name", r.get("id", r.get("function", "")))
            left.setdefault(str(e), []).append(name.replace("test_", "", 1))
    return cases, [f"left out, {why}: {', '.join(names)}" for why, names in left.items()]


def onnx_cases(records, folder):
    for stem, kinds in FILES.items():
        own = [r for r in records if MOVED.get(r["op"]) == stem or r["category"] in kinds.split() and
               r["op"] not in MOVED]
        cases, left = translate_all(own, onnx_case)
        write(folder, "onnx_" + stem, cases, ["Source: node tests of ONNX (Apache-2.0), by "
                                              "tests/tools/translate_cases.py; f32 within 1e-3 and 1e-5."] + left)
        print("\n".join(left))


def onnx_graphs(records, folder):
    cases, left = translate_all(records, graph_case)
    write(folder, "onnx_graphs", cases, ["Source: node tests of ONNX (Apache-2.0), by tests/tools/translate_cases.py; "
                                         "f32 within 1e-3 and 1e-5."] + left)
    print("\n".join(left))


# ---- derivatives: records of autograd's suite -------------------------------------------------------------------

def python_value(a):
    """A record's argument that is no array, as a value of Python."""
    if isinstance(a, dict):
        if "seq" in a:
            return [python_value(x) for x in a["seq"]]
        if "data" in a:
            return [int(x) for x in a["data"]] if a["shape"] else int(a["data"][0])
        return next(iter(a.values()))
    return a


def text_of(v):
    """A value of Python as one of Weft."""
    if v is None:
        return "nil"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (list, tuple)):
        return items(text_of(x) for x in v)
    if isinstance(v, str):
        return f'"{v}"'
    return number(v, "f64") if isinstance(v, float) else str(v)


class Call:
    """A call of NumPy or SciPy: its arguments as texts, those that are no arrays as values, and the record."""

    def __init__(self, record, texts):
        self.record, self.texts = record, texts
        self.raw = record["args"]
        self.keys = {k: python_value(v) for k, v in record["kwargs"].items()}

    def value(self, i, key=None, default=None):
        if i < len(self.raw):
            return python_value(self.raw[i])
        return self.keys.get(key, default)

    def shape(self, i):
        return self.raw[i]["shape"] if isinstance(self.raw[i], dict) and "shape" in self.raw[i] else []

    def options(self, **names):
        """Options of Weft from keywords that are there: option=keyword."""
        return {o: text_of(self.keys[k]) for o, k in names.items() if k in self.keys}


ONE_NAME = {"absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
            "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2", "expit": "sigmoid",
            "gammaln": "lgamma", "psi": "digamma", "fmax": "maximum", "fmin": "minimum", "concatenate": "concat",
            "inner": "inner", "power": "power"}
AS_NAMED = ("add subtract multiply divide cos cosh sin sinh tan tanh exp exp2 expm1 log log10 log1p log2 logaddexp "
            "sqrt square reciprocal negative maximum minimum erf erfc erfinv gamma digamma hypot sinc dot outer matmul "
            "remainder mod i0 i1 gammainc gammaincc betainc cross kron ravel sign floor ceil logit erfcinv beta betaln "
            "rgamma deg2rad degrees rad2deg radians logaddexp2 logit j0 j1 y0 y1").split()
LINALG = "det inv pinv slogdet solve cholesky cross kron".split()


def splitted(c, axis=None):
    axis = c.value(2, "axis", 0) if axis is None else axis
    parts, n = c.value(1), c.shape(0)[axis]
    if isinstance(parts, int):
        each, more = divmod(n, parts)
        sizes = [each + 1] * more + [each] * (parts - more)
        parts = [sum(sizes[:k + 1]) for k in range(parts - 1)] if more else parts
    return f"split({c.texts[0]}, {text_of(parts)}, {axis})"


def spread(c):
    f = {"std": "std", "var": "var"}[c.record["fn"]]
    return call(f, c.texts[:1], **c.options(axis="axis", correction="ddof", keepdims="keepdims"))


def reduced(name):
    return lambda c: call(name, c.texts[:1], **c.options(axis="axis", keepdims="keepdims"))


def distribution(c):
    fn, count, shapes = c.record["fn"], len(c.texts), [c.shape(k) for k in range(len(c.texts))]
    x = c.texts[0]
    if fn in ("pmf", "logpmf"):
        return f"stats.poisson({c.texts[1]}).{'pdf' if fn == 'pmf' else 'logpdf'}({x})"
    if fn == "entropy" or count == 3 and len(shapes[2]) == 2 and shapes[2][0] == shapes[2][1] and len(shapes[1]) == 1:
        density = f"log_normal_density({', '.join(c.texts)})"
        return {"entropy": f"0.5 * linalg.slogdet(2 * pi * e_ * {c.texts[1]})[1] + 0 * sum({x})".replace(
            "e_", "exp(1.0)"), "logpdf": density, "pdf": f"exp({density})"}[fn]
    if fn == "logpdf" and count == 2 and [len(s) for s in shapes] == [1, 1] and not c.record["value"]["shape"]:
        return f"log_dirichlet({x}, {c.texts[1]})"
    if count == 2:
        a, v = c.raw[1]["data"][0], c.raw[0]["data"][0]
        same = fn != "cdf" or abs(gamma_part(a, v) - c.record["value"]["data"][0]) > 1e-6
        d = f"stats.gamma({c.texts[1]} / 2, 2.0)" if same else f"stats.gamma({c.texts[1]})"
    elif count == 3:
        norm = c.record["wrt"] != [0]
        d = f"stats.normal({c.texts[1]}, {c.texts[2]})" if norm else f"stats.beta({c.texts[1]}, {c.texts[2]})"
    else:
        d = f"stats.student_t({', '.join(c.texts[1:])})"
    if fn in ("pdf", "logpdf", "cdf"):
        return f"{d}.{fn}({x})"
    if fn == "logcdf":
        return f"log({d}.cdf({x}))"
    if count == 3:
        d, x = "stats.normal()", f"({c.texts[1]} - {x}) / {c.texts[2]}"
        return f"{d}.cdf({x})" if fn == "sf" else f"log({d}.cdf({x}))"
    return f"1 - {d}.cdf({x})" if fn == "sf" else f"log(1 - {d}.cdf({x}))"


def gamma_part(a, x):
    """The regularised incomplete gamma function, by its series: tells gamma's distribution from that of chi2."""
    term = total = 1 / a
    for k in range(1, 500):
        term *= x / (a + k)
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


def at_least(rank):
    def shaped(c):
        shape = c.shape(0)
        if rank == 3 and len(shape) < 3:
            shape = [[1, 1, 1], [1] + shape + [1], shape + [1]][len(shape)]
        return f"reshape({c.texts[0]}, {items([1] * (rank - len(shape)) + shape)})"
    return shaped


def convolved(c):
    if any(len(c.shape(k)) != 1 for k in (0, 1)):
        raise Skip("convolve of several axes")
    return call("convolve", c.texts[:2], mode=text_of(c.keys.get("mode", "full")))


def tensor_product_adjoint(c):
    """The derivative of tensordot by one operand, of another and the cotangent."""
    which, other = int(c.record["fn"][-1]), c.texts[0]
    axes = c.value(2)
    shape = c.record["value"]["shape"]
    pair = "z, other" if which == 0 else "other, z"
    product = f"tensordot({pair.replace('other', other)}, {text_of(axes)})"
    return f"vjp(z => {product}, zeros({items(shape)}))[1]({c.texts[1]})[0]"


def tiled(c):
    return f"tile({c.texts[0]}, {text_of(c.value(1, 'reps'))})"


VJPS = {
    "amax": reduced("max"), "amin": reduced("min"), "max": reduced("max"), "min": reduced("min"), "sum": reduced("sum"),
    "mean": reduced("mean"), "prod": reduced("prod"), "logsumexp": reduced("logsumexp"), "std": spread, "var": spread,
    "array_split": splitted, "split": splitted, "hsplit": lambda c: splitted(c, 1 if len(c.shape(0)) > 1 else 0),
    "vsplit": lambda c: splitted(c, 0), "dsplit": lambda c: splitted(c, 2),
    "atleast_1d": at_least(1), "atleast_2d": at_least(2), "atleast_3d": at_least(3),
    "clip": lambda c: f"clip({c.texts[0]}, {text_of(c.value(1, 'a_min'))}, {text_of(c.value(2, 'a_max'))})",
    "concatenate_args": lambda c: f"concat({items(c.texts[1:])}, {c.value(0)})",
    "convolve": convolved,
    "cumsum": lambda c: f"cumsum({c.texts[0]}, {text_of(c.value(1, 'axis'))})" if c.value(1, "axis") is not None else
    f"cumsum(ravel({c.texts[0]}))",
    "diag": lambda c: f"diag({c.texts[0]}, {c.value(1, 'k', 0)})",
    "diagonal": lambda c: f"linalg.diagonal(moveaxis({c.texts[0]}, ({c.value(2, 'axis1', 0)}, "
    f"{c.value(3, 'axis2', 1)}), (-2, -1)), {c.value(1, 'offset', 0)})",
    "diff": lambda c: call("diff", c.texts[:1], **c.options(n="n", axis="axis")),
    "eigh": lambda c: f"linalg.eigh({mirrored(c)})", "svd": lambda c: f"linalg.svd({c.texts[0]}, "
    f"{text_of(c.keys.get('full_matrices', True))})",
    "einsum": lambda c: f"einsum({', '.join(c.texts)})",
    "expand_dims": lambda c: f"expand_dims({c.texts[0]}, {text_of(c.value(1, 'axis'))})",
    "fftshift": lambda c: shifted(c, 1), "ifftshift": lambda c: shifted(c, -1),
    "fliplr": lambda c: f"flip({c.texts[0]}, 1)", "flipud": lambda c: f"flip({c.texts[0]}, 0)",
    "flip": lambda c: f"flip({c.texts[0]}, {text_of(c.value(1, 'axis'))})",
    "gradient": lambda c: gradients(c),
    "inner": lambda c: f"inner({', '.join(c.texts)})" if c.shape(0) and c.shape(1) else " * ".join(c.texts),
    "linspace": lambda c: f"linspace({', '.join(c.texts)})",
    "make_diagonal": lambda c: f"{c.texts[0]}[..., nil] * eye({c.shape(0)[-1]})",
    "moveaxis": lambda c: call("moveaxis", c.texts[:1], text_of(c.value(1, "source")), text_of(
        c.value(2, "destination"))),
    "msort": lambda c: f"sort({c.texts[0]}, 0)", "sort": lambda c: f"sort({c.texts[0]}, {c.value(1, 'axis', -1)})",
    "partition": lambda c: f"sort({c.texts[0]}, {c.value(2, 'axis', -1)})",
    "multigammaln": lambda c: f"multigammaln({', '.join(c.texts)})",
    "norm": lambda c: normed(c),
    "pad": lambda c: call("pad", c.texts[:1], text_of(c.value(1, "pad_width")), mode=text_of(
        c.value(2, "mode", "constant"))),
    "polygamma": lambda c: f"polygamma({', '.join(c.texts)})",
    "repeat": lambda c: call("repeat", [c.texts[0], text_of(c.value(1, "repeats"))], **c.options(axis="axis")),
    "reshape": lambda c: f"reshape({c.texts[0]}, {text_of(c.value(1, 'shape'))})",
    "roll": lambda c: f"roll({c.texts[0]}, {text_of(c.value(1, 'shift'))}, {text_of(c.value(2, 'axis'))})",
    "rollaxis": lambda c: rolled(c), "rot90": lambda c: f"rot90({c.texts[0]}, {c.value(1, 'k', 1)})",
    "squeeze": lambda c: call("squeeze", c.texts[:1], **c.options(axis="axis")),
    "swapaxes": lambda c: f"swapaxes({c.texts[0]}, {c.value(1)}, {c.value(2)})",
    "tensordot": lambda c: f"tensordot({c.texts[0]}, {c.texts[1]}, {text_of(c.value(2, 'axes', 2))})",
    "tensordot_adjoint_0": tensor_product_adjoint, "tensordot_adjoint_1": tensor_product_adjoint,
    "tile": tiled, "trace": lambda c: f"sum(linalg.diagonal({moved_front(c)}, {c.value(1, 'offset', 0)}), -1)",
    "transpose": lambda c: f"transpose({c.texts[0]}, {text_of(c.value(1, 'axes'))})" if c.value(1, "axes") else
    f"transpose({c.texts[0]})",
    "tril": lambda c: f"tril({c.texts[0]}, {c.value(1, 'k', 0)})",
    "triu": lambda c: f"triu({c.texts[0]}, {c.value(1, 'k', 0)})",
    "where": lambda c: f"where({c.texts[0]} != 0, {c.texts[1]}, {c.texts[2]})",
    "solve_banded": lambda c: f"solve_banded({text_of(c.value(0))}, {c.texts[1]}, {c.texts[2]})",
    "solve_sylvester": lambda c: f"solve_sylvester({', '.join(c.texts)})",
    "gammasgn": lambda c: f"sign(gamma({c.texts[0]}))",
    "truncate_pad": lambda c: truncated(c),
    "iv": lambda c: f"iv({', '.join(c.texts)})", "jv": lambda c: f"jv({', '.join(c.texts)})",
    "jn": lambda c: f"jv({', '.join(c.texts)})", "yn": lambda c: f"yn({', '.join(c.texts)})",
    "ive": lambda c: f"exp(-abs({c.texts[1]})) * iv({', '.join(c.texts)})",
    **{f: distribution for f in "pdf cdf sf logpdf logcdf logsf pmf logpmf entropy".split()},
}


def mirrored(c):
    lower = "U" not in c.raw[1:]
    x = c.texts[0]
    return f"tril({x}) + swapaxes(tril({x}, -1), -1, -2)" if lower else f"triu({x}) + swapaxes(triu({x}, 1), -1, -2)"


def shifted(c, sign):
    axes = c.value(1, "axes")
    axes = list(range(len(c.shape(0)))) if axes is None else [axes] if isinstance(axes, int) else axes
    return f"roll({c.texts[0]}, {items(sign * (c.shape(0)[a] // 2) for a in axes)}, {items(axes)})"


def gradients(c):
    return call("gradient", c.texts[:1], **c.options(axis="axis"))


def normed(c):
    order, axis = c.value(1, "ord"), c.value(2, "axis")
    x = c.texts[0]
    if isinstance(axis, list) or axis is None and order is not None and len(c.shape(0)) == 2:
        where = "(-2, -1)" if axis is None else text_of(axis)
        return f"linalg.matrix_norm(moveaxis({x}, {where}, (-2, -1)), {text_of(order or 'fro')})"
    return f"norm({x}, {text_of(2 if order is None else order)}, {text_of(axis)})"


def rolled(c):
    axis, start, rank = c.value(1, "axis"), c.value(2, "start", 0), len(c.shape(0))
    axis, start = axis % rank, start + rank if start < 0 else start
    return f"moveaxis({c.texts[0]}, {axis}, {start - 1 if axis < start else start})"


def moved_front(c):
    rest = len(c.shape(0)) - 2
    return c.texts[0] if not rest else f"moveaxis({c.texts[0]}, (0, 1), (-2, -1))"


def truncated(c):
    shape, want = c.shape(0), c.value(1)
    cut = ", ".join(f":{min(a, b)}" for a, b in zip(shape, want))
    widths = items(items([0, max(b - a, 0)]) for a, b in zip(shape, want))
    return f"pad({c.texts[0]}[{cut}], {widths})"


VJP_SKIPS = {"svd": "signs of vectors that are free", "partition": "the order within its parts is free",
             **{f: "Weft has no Bessel functions but i0 and i1" for f in "j0 j1 jn jv y0 y1 yn iv ive".split()}}


def close_to(name, t):
    """A comparison with a record's value within 1e-9; twelve digits tell it."""
    if "seq" in t:
        return " and ".join(close_to(f"{name}[{k}]", x) for k, x in enumerate(t["seq"]))
    data = [x if isinstance(x, str) else float(f"{x:.13g}") for x in t["data"]]
    return f"near({name}, {tensor(dict(t, data=data))})"


def cotangent_text(t):
    return items(cotangent_text(x) for x in t["seq"]) if "seq" in t else tensor(t)


def vjp_case(r):
    sizes = [len(t["data"]) for t in r["args"] if isinstance(t, dict) and "data" in t]
    if max(sizes + [0]) > LARGEST // 3:
        raise Skip(f"an array of more than {LARGEST // 3} numbers")
    fn, letters, texts, lets, params = r["fn"], "xyzuvw", [], [], []
    if fn in VJP_SKIPS:
        raise Skip(VJP_SKIPS[fn])
    if "allow_singular" in r["kwargs"]:
        raise Skip("a normal distribution of fewer dimensions than its vectors")
    for k, a in enumerate(r["args"]):
        if isinstance(a, dict) and ("data" in a or k in r["wrt"]):
            name = letters[k]
            t = a if "data" in a else {"dtype": "f64", "shape": [], "data": [next(iter(a.values()))]}
            texts.append(name)
            if fn == "reshape" and k == 1:
                continue
            lets.append(f"let {name} = {tensor(t)}")
            if k in r["wrt"]:
                params.append(name)
        else:
            texts.append(text_of(python_value(a)))
    c = Call(r, texts)
    if fn in VJPS:
        text = VJPS[fn](c)
    elif fn in LINALG:
        text = f"linalg.{fn}({', '.join(texts[:2] if fn in ('cross', 'kron') else texts)})"
    elif fn in ONE_NAME or fn in AS_NAMED:
        text = f"{ONE_NAME.get(fn, fn)}({', '.join(texts)})"
    else:
        raise Skip("no such function")
    head = f"({', '.join(params)})" if len(params) > 1 else params[0]
    value = r["value"]
    lets += [f"let (r, pull) = vjp({head} => {text}, {', '.join(params)})",
             f"let g = pull({cotangent_text(r['cotangent'])})"]
    tests = [close_to("r", value)] + [close_to(f"g[{k}]", g) for k, g in enumerate(r["grads"])]
    return block(r["id"].replace("#", " "), lets + [" and ".join(tests)])


def vjp_cases(records, folder):
    cases, left = translate_all(records, vjp_case)
    write(folder, "vjp_autograd", cases, ["Source: recorded from HIPS/autograd's suite (MIT), by "
                                          "tests/tools/translate_cases.py; within 1e-9."] + left)
    print("\n".join(left))

# ---- calls of the array API suite -------------------------------------------------------------------------------

OPERATORS = {"add": "+", "and": "&", "eq": "==", "floordiv": "//", "ge": ">=", "gt": ">", "le": "<=", "lshift": "<<",
             "lt": "<", "mul": "*", "ne": "!=", "or": "|", "pow": "**", "rshift": ">>", "sub": "-", "truediv": "/",
             "xor": "^", "mod": "%", "matmul": "@"}
UNARY = {"__abs__": "abs({})", "__invert__": "~{}", "__neg__": "-{}", "__pos__": "+{}"}
API_NAMES = {"bitwise_invert": "bitwise_not", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
             "cumulative_sum": "cumsum", "cumulative_prod": "cumprod", "unique_values": "unique",
             "linalg.outer": "outer", "linalg.matmul": "matmul", "linalg.tensordot": "tensordot",
             "linalg.vecdot": "vecdot"}
POSITIONS = {"astype": ["dtype"], "broadcast_to": ["shape"], "expand_dims": ["axis"], "permute_dims": ["axes"],
             "reshape": ["shape"], "squeeze": ["axis"], "tile": ["repetitions"], "full": ["shape", "fill_value"],
             "take": ["indices"], "moveaxis": ["source", "destination"], "roll": ["shift"], "repeat": ["repeats"]}


def api_text(a):
    if isinstance(a, dict):
        if "seq" in a:
            return items(api_text(x) for x in a["seq"])
        if "data" in a:
            return tensor(a)
        if "dt" in a:
            return a["dt"]
        if "slice" in a:
            start, stop, step = ("" if x is None else str(x) for x in a["slice"])
            return f"{start}:{stop}" + (f":{step}" if step else "")
        if "ellipsis" in a:
            return "..."
        if "pyf" in a:
            return number(a["pyf"], "f64")
        value = a["py"]
        return "true" if value is True else "false" if value is False else str(value)
    return "nil" if a is None else f'"{a}"'


def api_index(a):
    if isinstance(a, dict) and "seq" in a:
        return ", ".join(api_text(x) for x in a["seq"]) or "..."
    return api_text(a)


def api_call(r):
    """Statements before, and the expression of the call."""
    fn, args, keys = r["fn"], r["args"], {k: v for k, v in r["kwargs"].items() if k != "copy"}
    texts = [api_text(a) for a in args]
    op = fn.strip("_")
    if fn in UNARY:
        return [], UNARY[fn].format(texts[0])
    if fn == "__getitem__":
        return [f"let x = {texts[0]}"], f"x[{api_index(args[1])}]"
    if fn == "__setitem__":
        return [f"let x = {texts[0]}", f"x[{api_index(args[1])}] = {texts[2]}"], "x"
    if fn.startswith("__"):
        inplace = op[0] == "i" and op[1:] in OPERATORS
        reverse = op[0] == "r" and op[1:] in OPERATORS
        sign = OPERATORS[op[1:] if inplace or reverse else op]
        if inplace:
            return [f"let x = {texts[0]}", f"x {sign}= {texts[1]}"], "x"
        if reverse:
            texts = texts[::-1]
        return [], f"({texts[0]}) {sign} ({texts[1]})"
    name = API_NAMES.get(fn, fn)
    rest = list(keys)
    for key in POSITIONS.get(fn, []):
        if key in keys:
            texts.append(api_text(keys[key]))
            rest.remove(key)
    opts = {k: api_text(keys[k]) for k in rest}
    if fn in ("matrix_transpose", "linalg.matrix_transpose"):
        return [], f"swapaxes({texts[0]}, -1, -2)"
    if fn == "linalg.vector_norm":
        return [], call("norm", texts, **opts)
    if fn.startswith("unique_") and fn != "unique_values":
        flags = {"all": ("index", "inverse", "counts"), "counts": ("counts",), "inverse": ("inverse",)}[fn[7:]]
        return [], call("unique", texts, **{f"return_{f}": "true" for f in flags})
    if fn == "sort" or fn == "argsort":
        opts.pop("stable", None)
    if fn in ("meshgrid", "broadcast_arrays") and len(args) == 1 and "seq" in args[0]:
        texts = [api_text(x) for x in args[0]["seq"]]
    if fn == "where":
        texts[0] = texts[0] if texts[0] not in ("true", "false") else f"bool({texts[0]})"
    return [], call(name, texts, **opts)


def api_near(name, t, exact, dtype, near="near"):
    tests = [f"{name}.dtype == {dtype}", f"{name}.shape == {items(t['shape'])}"]
    if 0 not in t["shape"]:
        if exact or not dtype.startswith("f"):
            tests.append(f"same({name}, {tensor(t)})")
        else:
            tests.append(f"{near}({name}, {tensor(t)}, {'2e-5' if dtype == 'f32' else '1e-9'})")
    return " and ".join(tests)


def rebuilt(r):
    """Factors that are not unique: what they multiply to."""
    t = r["args"][0]
    shapes = " and ".join(f"r[{k}].shape == {items(x['shape'])} and r[{k}].dtype == {x['dtype']}"
                          for k, x in enumerate(r["result"]["items"]))
    if 0 in t["shape"]:
        return shapes
    product = {"linalg.qr": "r[0] @ r[1]", "linalg.eigh": "(r[1] * r[0][..., nil, :]) @ swapaxes(r[1], -1, -2)",
               "linalg.svd": "(r[0][..., :r[1].shape[-1]] * r[1][..., nil, :]) @ r[2][..., :r[1].shape[-1], :]"}
    return f"{shapes} and alike({product[r['fn']]}, {tensor(t)}, {'2e-4' if t['dtype'] == 'f32' else '1e-9'})"


def api_case(r):
    fn, result = r["fn"], r["result"]
    if fn == "__setitem__" and r["args"][1].get("dtype") == "bool" and not r["args"][1]["shape"]:
        raise Skip("an index that is a bool of rank 0")
    sizes = [len(a["data"]) for a in r["args"] if isinstance(a, dict) and "data" in a]
    if max(sizes + [0]) > LARGEST // 3:
        raise Skip(f"an array of more than {LARGEST // 3} numbers")
    if fn == "linalg.pinv" and r["args"][0]["data"]:
        most = [max(abs(x) for x in t["data"]) for t in (r["args"][0], result)]
        if most[0] * most[1] > 1e6:
            raise Skip("a pseudo-inverse that rounding decides")
    name = r["id"].replace("#", " ").replace("__", "")
    before, text = api_call(r)
    lines = before + [f"let r = {text}"]
    if not r["unique"]:
        return block(name, lines + [rebuilt(r)])
    parts = result.get("items", result.get("seq")) if isinstance(result, dict) else None
    exact = r["cmp"] == "exact"
    if parts is not None:
        tests = [f"len(r) == {len(parts)}"] + [api_near(f"r[{k}]", t, exact, t["dtype"]) for k, t in enumerate(parts)]
        return block(name, lines + [" and ".join(tests)])
    if "py" in result:
        return block(name, lines + [f"r == {api_text(result)}"])
    near = "alike" if fn in ("linalg.eigvalsh", "linalg.svdvals", "linalg.pinv") else "near"
    return block(name, lines + [api_near("r", result, exact, result["dtype"], near)])


def api_calls(records, folder):
    for stem, own in (("array_api", lambda f: not f.startswith("linalg.")), ("array_api_linalg", lambda f: f.startswith(
            "linalg."))):
        cases, left = translate_all([r for r in records if own(r["fn"])], api_case)
        write(folder, stem, cases, ["Source: data-apis/array-api-tests (MIT), recorded calls, by "
                                    "tests/tools/translate_cases.py; the numbers are as NumPy gave them."] + left)
        print("\n".join(left))


# ---- control flow: programs in words, as functions of the file's head -------------------------------------------

def literal_of(v):
    """A value of JSON: numbers are strong where they are floats."""
    if isinstance(v, list):
        return "[" + ", ".join(literal_of(x) for x in v) + "]"
    return text_of(v)


def nested(v):
    """An array of JSON; of rank 3 and up a reshape keeps lines short."""
    shape, x = [], v
    while isinstance(x, list):
        shape.append(len(x))
        x = x[0]
    if len(shape) < 3:
        return literal_of(v)
    flat = lambda y: [z for x in y for z in flat(x)] if isinstance(y, list) else [y]
    return f"reshape([{', '.join(literal_of(x) for x in flat(v))}], {items(shape)})"


# What a check compares: (expression, field of the record) pairs; A stands for the arguments.
CHECKS = {
    "cond-nested": [("cond_nested(A)", "result")], "cond-const-branch": [("cond_const_branch(A)", "result")],
    "cond-grad": [("grad(cond_grad)(A)", "grad"), ("grad(grad(cond_grad))(A)", "grad2")],
    "switch-grad": [("grad(switch_grad)(A)", "grad")], "while-tuple": [("while_tuple(A)", "result")],
    "while-256-carries": [("while_256()", "result")], "while-conjunction": [("while_conjunction(A)", "result")],
    "while-issue649": [("while_loop(((a, b),) => b < 10, ((a, b),) => (7, b + 1), (A))", "result")],
    "while-forwarding": [("while_loop(((a, b, c),) => b == 0, ((a, b, c),) => (0.0, 1.0, a), (A))", "result")],
    "while-no-mutation": [("while_no_mutation()", "result")],
    "while-nested-torch": [("while_nested(A)", "result")], "while-nested2-torch": [("while_nested2(A)", "result")],
    "fori-empty": [("fori_loop(0, A, (i, c) => c + 1, 10.0)", "result")],
    "scan-impl": [("scan_impl(D, A)[0]", "carry"), ("scan_impl(D, A)[1]", "ys"),
                  ("scan_impl(D, A, true)[0]", "carry_reverse"), ("scan_impl(D, A, true)[1]", "ys_reverse"),
                  ("jvp((c, a) => scan_impl(D, c, a), (A), (A))[1][0]", "jvp_carry"),
                  ("jvp((c, a) => scan_impl(D, c, a), (A), (A))[1][1]", "jvp_ys"),
                  ("grad((c, a) => sum(scan_impl(D, c, a)[0]) + sum(scan_impl(D, c, a)[1]))(A)", "grad_c0"),
                  ("grad((c, a) => sum(scan_impl(D, c, a)[0]) + sum(scan_impl(D, c, a)[1]), 1)(A)", "grad_as")],
    "scan-vmap": [("vmap((c, a) => scan_impl(D, c, a), X)(A)[0]", "carry"),
                  ("vmap((c, a) => scan_impl(D, c, a), X)(A)[1]", "ys")],
    "scan-length": [("scan((c, x) => (c + 1, c), A, length=L)[0]", "carry"),
                    ("scan((c, x) => (c + 1, c), A, length=L)[1]", "ys")],
    "scan-rnn": [("scan_rnn(A)", "loss"), ("grad(scan_rnn, 0)(A)", "grad_Wt"), ("grad(scan_rnn, 1)(A)", "grad_Wo"),
                 ("grad(scan_rnn, 2)(A)", "grad_inputs")],
    "scan-grad-inside": [("scan_grad_inside(A)", "result"), ("grad(scan_grad_inside)(A)", "grad")],
    "scan-cond-pow": [("scan_cond_pow(A)", "result"), ("grad(scan_cond_pow)(A)", "grad")],
    "ascan-xor": [("associative_scan(bitwise_xor, A)", "result")],
    "ascan-torch": [("associative_scan(add, A, reverse=R)", "result")],
    "ascan-linear-recurrence": [("recurrence(A)[0]", "result0"), ("recurrence(A)[1]", "result1"),
                                ("grad((a, b) => sum(recurrence(a, b)[1]))(A)", "grad_a"),
                                ("grad((a, b) => sum(recurrence(a, b)[1]), 1)(A)", "grad_b")],
    "ascan-matmul": [("associative_scan(matmul, A)", "result")],
    "ascan-reverse": [("associative_scan(add, arange(1000) + 32, reverse=true)[0]", "first"),
                      ("associative_scan(add, arange(1000) + 32, reverse=true)[-1]", "last"),
                      ("sum(associative_scan(add, arange(1000) + 32, reverse=true))", "sum")],
    "while-errors": None, "trace-caching": None, "while-reverse-grad": None,
}
VMAPPED = {"cond-vmap": "cond_vmap", "while-vmap": "while_vmap", "while-vmap-cond-const": "while_to",
           "while-vmap-tuple": "while_sum", "while-vmap-never": "while_never"}


def control_flow_case(r):
    which = r["id"]
    if which.startswith("ascan-add"):
        checks = [("associative_scan(add, A, axis=I)", "result")]
    elif which in VMAPPED:
        checks = [(f"vmap({VMAPPED[which]}, X)(A)", "result")]
    else:
        checks = CHECKS.get(which)
    if checks is None:
        raise Skip("a behaviour or an error: written by hand in the cases of constructs")
    lets, tests = [], []
    for k, c in enumerate(r["cases"]):
        names = [f"a{k}_{i}" for i in range(len(c["args"]))]
        lets += [f"let {name} = {nested(a)}" for name, a in zip(names, c["args"])]
        if "d" in c:
            lets.append(f"let d{k} = {literal_of(c['d'])}")
        for text, field in checks:
            want = c.get(field, c["result"][int(field[-1])] if field in ("result0", "result1") else None)
            if want is None:
                continue
            axes = items("nil" if a is None else a for a in c.get("in_axes", []))
            swaps = {"A": ", ".join(names), "D": f"d{k}", "X": axes, "L": c.get("length"),
                     "R": text_of(bool(c.get("reverse"))), "I": c.get("axis", 0)}
            text = re.sub(r"\b([ADXLRI])\b", lambda m: str(swaps[m.group(1)]), text)
            state = which.startswith("while") and which not in VMAPPED or which == "while-vmap-tuple"
            if isinstance(want, list) and state:
                want = items(nested(x) for x in want)
            else:
                want = nested(want)
            tests.append(f"near({text}, {want})")
    return block(which.replace("-", " "), lets + [" and ".join(tests)])


def control_flow(records, folder):
    cases, left = translate_all(records, control_flow_case)
    write(folder, "control_flow_public", cases, ["Source: restated from tests of JAX (Apache-2.0) and PyTorch (BSD-3), "
                                                 "by tests/tools/translate_cases.py; within 1e-9."] + left)
    print("\n".join(left))


# ---- GradBench ----------------------------------------------------------------------------------------------------

def gradbench_case(number):
    def case(r):
        what, function, given_, want = r["eval"], r["function"], r["input"], r["output"]
        if what == "hello":
            text = f"square({text_of(given_)})" if function == "square" else f"grad(square)({text_of(given_)})"
            return block(f"hello {function} of {text_of(given_)}", [f"near({text}, {text_of(want)})"])
        if len(given_["x"]) > LARGEST // 3:
            raise Skip(f"an array of more than {LARGEST // 3} numbers")
        if what == "ode" and function == "gradient" and len(given_["x"]) > 4:
            raise Skip("a gradient of the exact solution, of which four steps of the method give no more than x[3]")
        rest = "".join(f", {given_[k]}" for k in ("n", "s") if k in given_)
        text = f"{what}(x{rest})"
        if function == "gradient":
            last = "[-1]" if what == "ode" else ""
            text = f"grad(v => {what}(v{rest}){last})(x)"
        number[0] += 1
        close = "near_small" if what == "ode" else "near"
        return block(f"{what} {function} {number[0]}", [f"let x = {literal_of(given_['x'])}",
                                                        f"{close}({text}, {nested(want)})"])
    return case


def gradbench(records, folder):
    cases, left = translate_all(records, gradbench_case([0]))
    write(folder, "gradbench", cases, ["Source: GradBench (MIT), by tests/tools/translate_cases.py."] + left)
    print("\n".join(left))


KINDS = {"onnx_cases": onnx_cases, "onnx_graphs": onnx_graphs, "vjp_cases": vjp_cases, "array_api_calls": api_calls,
         "control_flow_checks": control_flow, "gradbench": gradbench}



def main():
    path = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else "tests/cases"
    if len(sys.argv) > 3:
        global LARGEST
        LARGEST = int(sys.argv[3])
    kind = os.path.basename(path).split(".")[0]
    if kind not in KINDS:
        sys.exit(f"{path}: none of {', '.join(KINDS)}")
    KINDS[kind](json.load(open(path)), folder)


if __name__ == "__main__":
    main()
