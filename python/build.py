# build.py — makes the wheel of the package (PEP 517) from the library that `make` built: no compiler, no network.
"""pip calls build_wheel; by hand: python3 build.py [FOLDER].

The library is WEFT_LIBRARY, or ../build/libweft.so.
"""
import base64
import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXTRA = ("py.typed",)


def library():
    given = os.environ.get("WEFT_LIBRARY")
    path = given or os.path.join(HERE, "..", "build", "libweft.so")
    if not os.path.exists(path):
        raise SystemExit(f"weft: no library at {path}: " + ("WEFT_LIBRARY names it" if given else
                         "run `make` in the folder above first, or set WEFT_LIBRARY"))
    return os.path.realpath(path)


def version(path):
    say = ctypes.CDLL(path).weft_version
    say.restype = ctypes.c_char_p
    return say().decode()


def contents(path):
    """(name in the wheel, bytes)"""
    package = os.path.join(HERE, "weft")
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".pyi")) or name in EXTRA:
            with open(os.path.join(package, name), "rb") as file:
                yield "weft/" + name, file.read()
    yield "weft/libweft.so", stripped(path)


def stripped(path):
    """The library without what debuggers read, where binutils are installed: a quarter of the size."""
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "libweft.so")
        shutil.copyfile(path, small)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", small], check=True)
        with open(small, "rb") as file:
            return file.read()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    path = library()
    number = version(path)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    info = f"weft-{number}.dist-info"
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    files = list(contents(path))
    files.append((f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: weft\nVersion: {number}\nSummary: A small array language: interpreted, traced, "
        "compiled\nRequires-Python: >=3.9\nProvides-Extra: kernel\nRequires-Dist: ipykernel; extra == \"kernel\"\n"
        f"Description-Content-Type: text/markdown\n\n{readme}").encode()))
    files.append((f"{info}/WHEEL", (
        f"Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()))
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files) + f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode()))
    name = f"weft-{number}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for inside, data in files:
            entry = zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0))  # the same files give the same wheel
            entry.external_attr = (0o755 if inside.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("weft: a source distribution is not supported: the library is built by make, in the folder above")


if __name__ == "__main__":
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
