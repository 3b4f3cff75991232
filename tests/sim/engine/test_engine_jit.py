"""Kernels: of several processes that need one, only one compiles it."""

import os
import subprocess
import sys

KERNEL = """
import sys
import numpy as np
from numba import typeof
from t3sim.common.compiled import compile_types, compiled

@compiled
def total(values):
    return sum([value * value for value in np.sort(values)])

compile_types(total, (typeof(np.arange(3)),))
print(sum(total.stats.cache_misses.values()), total(np.arange(4)))
"""


def test_two_processes_at_once_compile_once(tmp_path):
    (tmp_path / "script.py").write_text(KERNEL)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "new" / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    children = [
        subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = sorted(child.communicate(timeout=300)[0].split() for child in children)
    assert outputs == [["0", "14"], ["1", "14"]]
