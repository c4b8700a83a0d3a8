# _signature.py — the signature of a function of Python as the language writes it, where it can.
import inspect
import json
import math


def _literal(value):
    """A default as a literal of the language, or None: then it cannot be written."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if type(value) is int and -2**63 < value < 2**63:
        return str(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    if type(value) is str and value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return None


def _ordered(f, rest, named):
    """f, called with all arguments in the order of the signature: number `rest` is a list, those in `named` go by
    name."""
    def call(*values):
        first = len(values) - len(named)
        plain = values[:first] if rest is None else (*values[:rest], *values[rest])
        return f(*plain, **dict(zip(named, values[first:])))
    return call


def of(f):
    """(signature, documentation, what is called), or None where the function has arguments that have no like."""
    name = getattr(f, "__name__", "")
    if not name.isidentifier() or not name.isascii():
        return None
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError):
        return None
    parts, named, rest = [], [], None
    for i, p in enumerate(found.parameters.values()):
        if p.kind is p.VAR_KEYWORD:
            return None
        if p.kind is p.VAR_POSITIONAL:
            rest = i
            parts.append("..." + p.name)
            continue
        if p.kind is p.KEYWORD_ONLY:
            named.append(p.name)
        if p.default is p.empty:
            parts.append(p.name)
            continue
        literal = _literal(p.default)
        if literal is None:
            return None
        parts.append(f"{p.name}={literal}")
    doc = inspect.getdoc(f) or ""
    call = f if rest is None and not named else _ordered(f, rest, named)
    return f"{name}({', '.join(parts)})", doc.replace("\0", ""), call
