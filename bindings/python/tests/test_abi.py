# SPDX-License-Identifier: Apache-2.0
#
# The declarations of rooftile/_abi.py against include/rooftile.h: names by the header's text, values and offsets by a C compiler.
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from rooftile import _abi

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "include")
ENUMS = {"rft_status": (_abi.Status, ""), "rft_type": (_abi.Type, ""), "rft_compute": (_abi.Compute, "COMPUTE_"),
         "rft_order": (_abi.Order, ""), "rft_epi_kind": (_abi.Epi, "EPI_")}


def header():
    with open(os.path.join(INCLUDE, "rooftile.h"), encoding="utf-8") as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


def body(kind, name):
    return re.search(rf"typedef {kind} {name} \{{(.*?)\}} {name};", header(), re.S).group(1)


def field_names(name):
    names = []
    for declaration in body("struct", name).split(";"):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        parts = [pointer.group(1)] if pointer else [re.sub(r"\[.*?\]", "", p) for p in declaration.split(",")]
        names += [re.search(r"(\w+)\s*$", p).group(1) for p in parts if p.strip()]
    return names


def expectations():
    """C expression and the value that _abi.py gives it."""
    for enum, prefix in ENUMS.values():
        for e in enum:
            yield f"RFT_{prefix}{e.name.lstrip('_')}", int(e)
    for name, value in _abi.FLAGS.items():
        yield f"RFT_{name}", value
    for s in _abi.STRUCTS:
        yield f"sizeof({s.c_name})", ctypes.sizeof(s)
        for field, *_ in s._fields_:
            theirs = field.rstrip("_")  # behind what is a word of Python
            yield f"offsetof({s.c_name}, {theirs})", getattr(s, field).offset
            yield f"sizeof((({s.c_name} *)0)->{theirs})", getattr(s, field).size


class Abi(unittest.TestCase):
    def test_enumerators_are_all_there(self):
        for name, (enum, prefix) in ENUMS.items():
            theirs = re.findall(rf"RFT_{prefix}(\w+)", body("enum", name))
            self.assertEqual(theirs, [e.name.lstrip("_") for e in enum], name)

    def test_fields_are_all_there(self):
        for s in _abi.STRUCTS:
            self.assertEqual(field_names(s.c_name), [f[0].rstrip("_") for f in s._fields_], s.c_name)

    def test_flags_are_all_there(self):
        pattern = r"#define RFT_((?:CTX_|WEIGHT_|W_D|BATCH_|X_|ALPHA)\w*) \d+u"
        self.assertEqual(sorted(re.findall(pattern, header())), sorted(_abi.FLAGS))

    def test_values_and_offsets(self):
        compiler = os.environ.get("CC") or shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        lines = [f'_Static_assert({what} == {value}, "{what} is not {value}");' for what, value in expectations()]
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "abi.c")
            with open(source, "w", encoding="utf-8") as f:
                f.write("\n".join(['#include "rooftile.h"', *lines, ""]))
            made = subprocess.run([compiler, "-std=c11", "-fsyntax-only", "-I", INCLUDE, source], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)


if __name__ == "__main__":
    unittest.main()
