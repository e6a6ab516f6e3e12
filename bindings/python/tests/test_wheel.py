# SPDX-License-Identifier: Apache-2.0
#
# pip builds a wheel of the package, of Python alone, and what is unpacked from it multiplies.
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = """
import numpy as np, rooftile as rt
with rt.Context("cpu", threads=1) as ctx:
    y = rt.Linear(ctx, np.eye(4, dtype=np.float32), m_max=1)(np.ones((1, 4), np.float32), np.empty((1, 4), np.float32))
assert (y == 1).all() and %r in rt.__file__
"""


class Wheel(unittest.TestCase):
    def test_wheel(self):
        for needed in ("pip", "setuptools", "wheel", "numpy"):
            if not importlib.util.find_spec(needed):
                self.skipTest(f"no {needed}")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "source")  # since a build leaves files beside what it reads
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__"))
            made = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w",
                                   folder, source], capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            wheel, = glob.glob(os.path.join(folder, "rooftile-*-py3-none-any.whl"))
            site = os.path.join(folder, "site")
            zipfile.ZipFile(wheel).extractall(site)
            path = os.pathsep.join([site, os.environ.get("PYTHONPATH", "")])
            used = subprocess.run([sys.executable, "-c", PROGRAM % site], capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": path})
            self.assertEqual(used.returncode, 0, used.stderr)


if __name__ == "__main__":
    unittest.main()
