# Writes Weft programs that format random values by random specs, and what CPython makes of them (see format.sh).
#   python3 tests/tools/format.py cases >tests/cases/format_specs.weft    writes the fixed cases anew
import random
import struct
import sys

cases = sys.argv[1] == "cases"
seed, count = (1, 0) if cases else (int(sys.argv[1]), int(sys.argv[2]))
rng = random.Random(seed)


def literal(text):
    """A text as a literal of Weft."""
    out = ""
    for c in text:
        if c in '"\\':
            out += "\\" + c
        elif ord(c) < 32 or ord(c) == 127:
            out += "\\x%02x" % ord(c)
        else:
            out += c
    return '"' + out + '"'


def number(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, int):
        return "(-9223372036854775807 - 1)" if x == -(2**63) else f"({x})"
    if x != x:
        return "nan"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "(-inf)"
    return f"({x!r})"


def an_int():
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice([0, 1, -1, 9, 10, 99, 100, 999, 1000, -999, -1000, 2**63 - 1, -(2**63), 65, 0x20AC, 0x1F600,
                           0xD800, 0x110000])
    if kind == 1:
        return rng.randrange(-10, 10)
    return rng.choice([1, -1]) * rng.getrandbits(rng.randrange(1, 63))


def a_float():
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 1e22, 1e23, 1e16, 1e15,
                           9999999999999998.0, 1e-4, 1e-5, 9.9999e-5, 0.00012345, 123456.0, 999999.5, 99999.95, 0.1,
                           float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308,
                           2.2250738585072014e-308])
    if kind == 1:
        return rng.uniform(-10, 10)
    if kind == 2:
        return rng.uniform(-1, 1) * 10.0 ** rng.randrange(-25, 25)
    if kind == 3:
        return float(rng.randrange(-(10**9), 10**9)) / rng.choice([1, 2, 4, 8, 10, 100, 1000])
    if kind == 4:
        return rng.randrange(-99999, 99999) / 10 ** rng.randrange(0, 8)
    if kind == 5:
        return -rng.uniform(0, 1) * 10.0 ** -rng.randrange(1, 9)
    while True:
        x = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
        if x == x:
            return x


def a_text():
    return "".join(rng.choice("abcXYZ 019é€😀\"\\{}") for _ in range(rng.randrange(0, 8)))


def a_value():
    """The value for Python and for Weft, and whether its shortest digits are Python's."""
    kind = rng.randrange(12)
    if kind < 4:
        x = an_int()
        return x, number(x), True
    if kind < 8:
        x = a_float()
        return x, number(x), True
    if kind == 8:
        x = rng.random() < 0.5
        return x, number(x), True
    if kind == 9:
        x = a_text()
        return x, literal(x), True
    if kind == 10:
        x = rng.randrange(0, 256)
        return x, f"u8({x})", True
    x = struct.unpack("f", struct.pack("f", rng.uniform(-1, 1) * 10.0 ** rng.randrange(-20, 20)))[0]
    return x, f"f32({number(x)})", False


def a_spec(plain):
    out = ""
    if rng.random() < 0.4:
        if rng.random() < 0.6:
            out += rng.choice("*0x_ -<=>^é€😀" if plain else "*0x_ -<=>^é€😀\"\\{}")
        out += rng.choice("<>^=")
    if rng.random() < 0.3:
        out += rng.choice("+- ")
    if rng.random() < 0.15:
        out += "z"
    if rng.random() < 0.25:
        out += "#"
    if rng.random() < 0.3:
        out += "0"
    if rng.random() < 0.6:
        out += str(rng.randrange(0, 30))
    if rng.random() < 0.3:
        out += rng.choice(",_")
    if rng.random() < 0.45:
        out += "." + str(rng.choice([0, 1, 2, 3, 4, 6, 10, 15, 16, 17, 20, 30]))
    if rng.random() < 0.75:
        out += rng.choice("bcdeEfFgGosxX%")
    if rng.random() < 0.05:
        at = rng.randrange(len(out) + 1)
        out = out[:at] + rng.choice("0,_.#+-z<>^qQ9é") + out[at:]
    return out


def wanted(x, spec):
    try:
        text = format(x, spec)
        text.encode()
        return text
    except (ValueError, OverflowError):
        return "!value"


def comparable(x, spec, same):
    """Lines are compared; types that depend on a locale are refused; f32 has shortest digits of its own."""
    return spec and "n" not in spec and not set(wanted(x, spec)) & set("\0\n\1") and (same or spec[-1] in "eEfFgG%")


def fixed_cases():
    """Each value by each spec that tells something of its kind; errors only where Python has one."""
    whole = ("5 <5 >5 ^5 =5 05 <05 ^05 =05 *^9 é>6 + - +5 -5 +05 #x #X #o #b #010x x X o b d 08b _b _x #_b 016_b "
             ", _ ,d _d 012, 012_ 015_ 3, c .1 z s q ,x ,b __ ,_ _, 5. .f .2f ,.1f +.1e % .0% g E 20g #.0f 010.2f "
             "<08 >08d *<08 08.3").split() + [" ", " 5", " >5", " x", "+ ", "5 "]
    real = ("9 <9 >9 ^9 =9 09 <09 + - .0 .1 .3 .5 .10 #.3 f .0f #.0f .2f ,.2f _.2f e .0e #.0e .3e ,.0E _.2e g .0g "
            ".3g #g #.3g ,g .17g .20f E G F % .0% .1% #.0% z z.0f z.1f +z.1f z.3e 012 012.2f 012, +015,.1f *>+15.2e "
            ", _ x d c s n .400f 100001").split() + [" ", " 9", " .2f", " 09"]
    texts = ("5 <5 >5 ^5 =5 05 >05 *^9 é^7 .0 .2 6.2 >6.2 s 8s .1s + z # , _ d f .f").split() + [" ", " 5", " >5"]
    table = [(v, whole) for v in (0, -255, 1234567)] + [(v, real) for v in (-0.04, 1.0, 1234567.891, 1e22)]
    table += [(v, "9 09 +9 ^9 ,.1f % .0% F G z 010, x".split()) for v in (float("inf"), float("-inf"), float("nan"))]
    table += [(v, "5 <5 05 + d x #x .1f , c s e".split()) for v in (True, False)]
    table += [(v, texts) for v in ("abc", "né€😀")]
    for x, specs in table:
        print(f"# {x!r}")
        for spec in specs:
            text = wanted(x, spec) if spec not in ("n", "100001") else "!value"
            if set(text) & set("\0\n\1"):
                continue
            inner = literal(x) if isinstance(x, str) else number(x)
            program = f'let x = {inner}; f"{{x:{spec}}}"'
            if len(text) > 100:     # of a line's width: what stands for ten zeros is in no number
                program, text = program + '.replace("0000000000", "z")', text.replace("0000000000", "z")
            mark = "#! value: format: bad spec" if text == "!value" else f"#= {literal(text)}"
            line = f"{program:<50} {mark}"
            print(line if len(line) <= 120 else f"#{{ {spec} of {x!r}\n{program}\n{mark}\n#}}")


if cases:
    print("# Specs of f-strings, as CPython formats by them; written by tests/tools/format.py. "
          "Bools are 0 and 1, as there.")
    fixed_cases()
    sys.exit()

asked, answers, lines = [], [], []
while len(answers) < count:
    x, text, same = a_value()
    spec = a_spec(False)
    if not comparable(x, spec, same):
        continue
    asked.append(f"{text} by {literal(spec)}")
    answers.append(wanted(x, spec))
    lines.append(f"t({text}, {literal(spec)})")
with open("computed.weft", "w") as f:
    f.write('fn t(x, s) = print(try { f"{x:{s}}" } catch e { "!" + e.kind })\n' + "\n".join(lines) + "\n")
open("computed.wanted", "w").write("\n".join(answers) + "\n")
open("computed.asked", "w").write("\n".join(asked) + "\n")

asked, answers, lines = [], [], []
while len(answers) < count // 10:
    x, text, same = a_value()
    spec = a_spec(True)
    if isinstance(x, str) or not comparable(x, spec, same):
        continue
    asked.append(f"{text} by {literal(spec)}")
    answers.append(wanted(x, spec))
    k = len(lines)
    lines.append(f'fn case{k}(x) {{ let y = x; try {{ f"{{y:{spec}}}" }} catch e {{ "!" + e.kind }} }}')
    lines.append(f"print(case{k}({text}))")
with open("written.weft", "w") as f:
    f.write("\n".join(lines) + "\n")
open("written.wanted", "w").write("\n".join(answers) + "\n")
open("written.asked", "w").write("\n".join(asked) + "\n")
