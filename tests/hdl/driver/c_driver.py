"""The C driver as Python sees it: its structures, and the library compiled as a product must compile."""

import ctypes
import subprocess
from pathlib import Path

DRIVER = Path(__file__).parents[3] / "hdl" / "driver"
OK, EBUS, ENODEV, EINVAL, ERANGE, ETIMEDOUT, EFAULT, EWINDOW, EEPOCH = 0, -1, -2, -3, -4, -5, -6, -7, -8

READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64))
WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64)


def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


Bus = structure("Bus", ("read", READ), ("write", WRITE), ("user", ctypes.c_void_p))
Device = structure(
    "Device",
    ("bus", Bus),
    ("capability", ctypes.c_uint64),
    ("tracker", ctypes.c_uint64),
    ("profile", ctypes.c_uint16 * 64),
    ("profile_known", ctypes.c_int),
    ("early_room", ctypes.c_uint64),
    ("pending_epoch", ctypes.c_uint16 * 16),
)
_SIZES = ("rows", "columns_bytes", "pitch_bytes", "tile_rows", "tile_bytes", "wavefront_rows")
_NAMES = ("range", "context", "epoch", "op", "dtype")
COutput = structure(
    "COutput",
    ("base", ctypes.c_uint64),
    *((name, ctypes.c_uint32) for name in _SIZES),
    *((name, ctypes.c_uint) for name in _NAMES),
)
Chunk = structure("Chunk", *((name, ctypes.c_uint32) for name in ("row0", "row1", "col0", "col1")))
Job = structure(
    "Job",
    ("device", ctypes.POINTER(Device)),
    ("output", COutput),
    ("first", ctypes.c_uint),
    ("count", ctypes.c_uint),
    ("marks_log", ctypes.c_uint),
    ("tracked", ctypes.c_uint),
    ("updates", ctypes.c_uint64 * 64),
)
Arbiter = structure(
    "Arbiter",
    ("compute_first", ctypes.c_int),
    ("fixed", ctypes.c_uint),
    ("thresholds", ctypes.c_uint * 4),
    ("backlog", ctypes.c_uint),
    ("patience", ctypes.c_uint),
    ("starvation", ctypes.c_uint),
    ("quantum", ctypes.c_uint),
    ("quiet", ctypes.c_uint),
)
Tile = structure("Tile", *((name, ctypes.c_uint) for name in ("row", "col", "wf", "updates")))
Stuck = structure("Stuck", *((name, ctypes.c_uint) for name in ("descriptor", "block", "context", "expected", "seen")))


def compiled(folder):
    """The driver as a library in ``folder``."""
    target = folder / "t3.so"
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-O2", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "t3.c", "-o", target], cwd=DRIVER, check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.t3_strerror.restype = ctypes.c_char_p
    for name, wide in (("t3_remote_map", 3), ("t3_dma_map", 3)):
        getattr(loaded, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64,
                                          *[ctypes.c_uint] * (wide if name == "t3_dma_map" else 0)]  # fmt: skip
    return loaded
