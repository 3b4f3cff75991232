"""A memory slice, and the words, registers and moves that its scenarios share.

Its job is context 1 of the preset "small"; context 0 is another one's.
"""

from typing import Any

from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Dtype, MemoryRequest, Op

from tests.contract.backends import open_part
from tests.contract.bench import Bench

PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
WRITE_PORTS = ("compute_write", "comm_write")
UPDATES = (Op.STORE, Op.ADD, Op.MIN, Op.MAX)
TILE = {"context": 1, "row": 5, "col": 9, "wf": 1, "right": 1, "bottom": 0}
STORE = dict.fromkeys(MemoryRequest.members, 0) | {
    "line": 1005, "op": Op.STORE, "dtype": Dtype.FP16, "source": 2, "tagged": 1, "tag": 77, "epoch": 2, **TILE,
}  # fmt: skip
READ = dict.fromkeys(MemoryRequest.members, 0) | {"line": 10, "op": Op.READ, "tag": 5}
TOKEN = TILE | {"epoch": 2, "n": 1}
RANGE = {"valid": 1, "context": 1, "epoch": 2, "op": Op.ADD, "dtype": Dtype.BF16}
MCA = {"mca": 1, "fixed": 0, "threshold": 0, "starvation": 20, "quantum": 2}
PERFORMED = {"count_on": "performed", "contexts": 4, "token_queue": 3}
"""The configuration of all scenarios that count an update when the memory reports it."""


class Scene(Bench):
    """A slice of the preset "small" with ``overrides``; ``places`` for tokens."""

    def __init__(self, backend: str, *, seed: int = 1, **overrides: Any) -> None:
        self.config: T3Config = preset("small", **overrides)
        super().__init__(open_part(backend, "slice", self.config), seed=seed)

    def set_range(self, index: int = 0, base: int = 1000, limit: int = 2000, **attributes: int) -> None:
        """Range ``index``: by default lines 1000 to 1999 of context 1, epoch 2, ADD on BF16."""
        address = regs.RANGE + index * regs.RANGE_STRIDE
        self.write(address, base)
        self.write(address + 8, limit)
        self.set_attributes(index, **attributes)

    def set_attributes(self, index: int = 0, **attributes: int) -> None:
        """One write, which acts from the next cycle on."""
        self.write(regs.RANGE + index * regs.RANGE_STRIDE + 16, RANGE | attributes, regs.RangeAttributes)

    def set_arbiter(self, **fields: int) -> None:
        """ARBITER: by default T3-MCA with the threshold of the input, 20 cycles of patience, a quantum of 2 lines."""
        self.write(regs.ARBITER, MCA | fields, regs.Arbiter)

    def offer(self, port: str, *items: dict) -> None:
        self.send[port].extend(items)

    def through(self, port: str, item: dict) -> dict:
        """What ``item`` looks like on ``dram``, which must be free."""
        passed = len(self.got["dram"])
        self.offer(port, item)
        self.step(4)
        (_, request), *_ = self.got["dram"][passed:]
        return request

    def tracks(self, port: str, item: dict) -> int:
        """Whether ``item`` is tracked on its way from ``port``."""
        return self.through(port, item)["tagged"]

    def passed(self, field: str = "tag") -> list[int]:
        """This field of every request that left."""
        return [request[field] for _, request in self.got["dram"]]

    def tokens(self, *names: str) -> list[tuple]:
        """These fields of every token that was taken."""
        return [tuple(token[name] for name in names) for _, token in self.got["token"]]

    def report(self, request: dict, times: int = 1) -> None:
        """The memory reports ``request`` performed, in each of ``times`` cycles."""
        for _ in range(times):
            self.step(update_done=request)

    def refused(self) -> dict[str, dict]:
        """The violations that are given back in this cycle, by stream."""
        return self._given_back("refused")

    def stale(self) -> dict[str, dict]:
        """The stale updates that are given back in this cycle, by stream."""
        return self._given_back("stale")

    def is_stale(self, port: str, item: dict) -> bool:
        """Whether ``item`` is given back at ``port``, which must be free, as it is and once; nothing else may be."""
        stream = port.removesuffix("_write")
        self.offer(port, item)
        self.step()
        back = self.stale()
        assert set(back) <= {stream} and not self.refused()
        assert not back or back[stream] == item | {"stream": int(stream == "comm")}
        self.step()
        assert not self.stale()
        return bool(back)

    def _given_back(self, port: str) -> dict[str, dict]:
        found = {stream: self.item(f"{stream}_{port}") for stream in ("compute", "comm")}
        return {stream: item for stream, item in found.items() if item}
