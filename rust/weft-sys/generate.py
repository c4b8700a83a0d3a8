#!/usr/bin/env python3
# Writes src/lib.rs from api/weft.h: constants, structs and functions, as C has them.
#   generate.py            writes it
#   generate.py --check    exit status 1 when it is not what weft.h says
#   generate.py --layout   prints a C program that prints the size of each struct, and where its fields lie
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = HERE.parent.parent / "api" / "weft.h"
OUT = HERE / "src" / "lib.rs"

PLAIN = {
    "void": "c_void", "char": "c_char", "unsigned char": "c_uchar", "int": "c_int", "unsigned": "c_uint",
    "bool": "bool", "double": "f64", "size_t": "usize", "ptrdiff_t": "isize", "int64_t": "i64", "uint64_t": "u64",
    "uint32_t": "u32",
}
WORDS = {"abstract", "as", "box", "do", "final", "fn", "impl", "in", "loop", "macro", "match", "mod", "move", "priv",
         "ref", "trait", "try", "type", "use", "virtual", "where", "yield"}
WIDTH = 120


def name_of(word):
    return "r#" + word if word in WORDS else word


class Header:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
        text = text.replace('extern "C" {', "")
        self.text = re.sub(r"\s+", " ", text)
        self.enums, self.structs, self.opaque, self.callbacks, self.functions = [], [], [], [], []
        self.constants = []
        self.read()

    def read(self):
        left = self.text.strip()
        while left and left != "}":
            for pattern, take in (
                (r"typedef enum (\w+) \{(.*?)\} (\w+);", self.take_enum),
                (r"enum \{(.*?)\};", self.take_constants),
                (r"typedef struct (\w+) \{(.*?)\} (\w+);", self.take_struct),
                (r"typedef struct (\w+) (\w+);", self.take_opaque),
                (r"struct (\w+);", self.take_opaque),
                (r"typedef ([^;(]*)\(\*(\w+)\)\((.*?)\);", self.take_callback),
                (r"WEFT_API ([^;(]*?)(\w+)\((.*?)\);", self.take_function),
            ):
                m = re.match(pattern, left)
                if m:
                    take(m)
                    left = left[m.end():].strip()
                    break
            else:
                sys.exit(f"generate.py: not understood: {left[:80]}")

    def values(self, body):
        at, out = -1, []
        for item in filter(None, (i.strip() for i in body.split(","))):
            name, _, given = (p.strip() for p in item.partition("="))
            at = int(given, 0) if given else at + 1
            out.append((name, at))
        return out

    def take_enum(self, m):
        self.enums.append((m[1], self.values(m[2])))

    def take_constants(self, m):
        self.constants += self.values(m[1])

    def take_opaque(self, m):
        self.opaque.append(m[1])

    def take_callback(self, m):
        self.callbacks.append((m[2], self.pointer(m[1], m[3])))

    def take_function(self, m):
        self.functions.append((m[2], self.arguments(m[3]), self.type(m[1])))

    def take_struct(self, m):
        fields = []
        for item in filter(None, (i.strip() for i in m[2].split(";"))):
            hook = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", item)
            if hook:
                fields.append((hook[2], self.pointer(hook[1], hook[3])))
                continue
            first, *more = (p.strip() for p in item.split(","))
            base, name = re.match(r"(.*?)(\w+(?:\[\w+\])?)$", first).groups()
            for one in [name, *more]:
                stars, word, room = re.match(r"(\**)(\w+)(?:\[(\w+)\])?$", one).groups()
                kind = self.type(base + stars)
                fields.append((word, f"[{kind}; {room}]" if room else kind))
        self.structs.append((m[1], fields))

    def type(self, c):
        """A type without a name: `const char *const *` is *const *const c_char."""
        words = c.replace("*", " * ").replace("struct ", " ").split()
        base, rest = [], words
        while rest and rest[0] != "*":
            base.append(rest[0])
            rest = rest[1:]
        const = "const" in base
        plain = " ".join(w for w in base if w != "const")
        out = PLAIN.get(plain, plain)
        while rest:
            out = ("*const " if const else "*mut ") + out
            const = rest[1:2] == ["const"]
            rest = rest[2:] if const else rest[1:]
        return out

    def arguments(self, text):
        out = []
        if text.strip() == "void":
            return out
        depth, item = 0, ""
        for c in text + ",":
            if c == "," and depth == 0:
                out.append(self.argument(item.strip()))
                item = ""
                continue
            depth += (c == "(") - (c == ")")
            item += c
        return out

    def argument(self, item):
        hook = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", item)
        if hook:
            return hook[2], self.pointer(hook[1], hook[3])
        base, name = re.match(r"(.*?)(\w+)$", item).groups()
        return name, self.type(base)

    def pointer(self, result, arguments):
        args = ", ".join(f"{name_of(n)}: {t}" for n, t in self.arguments(arguments))
        kind = self.type(result)
        return f'Option<unsafe extern "C" fn({args}){"" if kind == "c_void" else " -> " + kind}>'


def wrapped(line):
    """Arguments of a line that is too long stand each on a line of their own."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[:len(line) - len(line.lstrip())]
    open_at, close_at, depth = line.index("(", line.index("fn")) - 2, len(line), 0
    if "<unsafe" in line[:open_at]:
        open_at = line.index("fn(")
    for at in range(open_at + 2, len(line)):
        depth += (line[at] == "(") - (line[at] == ")")
        if depth == 0:
            close_at = at
            break
    out, depth, item = [line[:open_at + 3]], 0, ""
    for c in line[open_at + 3:close_at] + ",":
        item += c
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            out.append(f"{indent}    {item.strip()}")
            item = ""
    return [*out, indent + line[close_at:]]


def rust(h):
    out = ["//! lib.rs: weft.h as Rust declares it; written by generate.py. The header says what each of these does."]
    out += ["#![allow(non_camel_case_types)]", "#![no_std]", ""]
    out += ["use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};", ""]
    for name, value in h.constants:
        out += [f"pub const {name}: {'c_int' if value < 0 else 'usize'} = {value};"]
    for enum, values in h.enums:
        out += ["", f"pub type {enum} = c_uint;"]
        out += [f"pub const {name}: {enum} = {value};" for name, value in values]
    known = {name for name, _ in h.structs}
    for name in sorted(set(h.opaque) - known):
        out += ["", "#[repr(C)]", f"pub struct {name} {{", "    _private: [u8; 0],", "}"]
    for name, kind in h.callbacks:
        out += ["", f"pub type {name} = {kind};"]
    for name, fields in h.structs:
        out += ["", "#[repr(C)]", "#[derive(Clone, Copy)]", f"pub struct {name} {{"]
        out += [f"    pub {name_of(field)}: {kind}," for field, kind in fields]
        out += ["}"]
    out += ["", 'extern "C" {']
    for name, args, result in h.functions:
        head = f"    pub fn {name}({', '.join(f'{name_of(n)}: {t}' for n, t in args)})"
        out += [head + ("" if result == "c_void" else f" -> {result}") + ";"]
    out += ["}", "", "/// The size of each struct, and where its fields lie, as Rust sees them: for a test.",
            "#[doc(hidden)]", "pub const LAYOUT: &[(&str, usize)] = &["]
    for name, fields in h.structs:
        out += [f'    ("{name}", core::mem::size_of::<{name}>()),']
        out += [f'    ("{name}.{field}", core::mem::offset_of!({name}, {name_of(field)})),' for field, _ in fields]
    return "\n".join([*sum(map(wrapped, out), []), "];", ""])


def layout(h):
    out = ["#include <stdio.h>", "#include <weft.h>", "int main(void) {"]
    for name, fields in h.structs:
        out += [f'  printf("{name} %zu\\n", sizeof({name}));']
        out += [f'  printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, _ in fields]
    return "\n".join([*out, "  return 0;", "}"])


def main(arguments):
    header = Header(HEADER.read_text(encoding="utf-8"))
    if arguments == ["--layout"]:
        print(layout(header))
    elif arguments == ["--check"]:
        if OUT.read_text(encoding="utf-8") != rust(header):
            sys.exit("generate.py: src/lib.rs is not what weft.h says: run generate.py")
    elif not arguments:
        OUT.write_text(rust(header), encoding="utf-8")
    else:
        sys.exit("usage: generate.py [--check | --layout]")


main(sys.argv[1:])
