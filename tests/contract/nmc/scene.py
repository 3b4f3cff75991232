"""An NmcUnit beside a memory, and the same requests one after the other."""

from collections.abc import Iterable

from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import Op

from tb.alu.line_reference import Request, after, byte_mask, combine, updates
from tests.contract.bench import bench_of

SMALL = preset("small")
NOTHING = 0xDEAD << 200
"""What the memory shows in cycles without a read."""


class Memory:
    """``reads``, ``writes`` and ``done`` list what the unit gave, each beginning with its cycle."""

    def __init__(self, backend: str, config: T3Config = SMALL, *, seed: int = 1) -> None:
        self.bench, self.config = bench_of(backend, "nmc", config, seed=seed), config
        self.lines: dict[int, int] = {}
        self.clear()

    def clear(self) -> None:
        """Forget what was seen."""
        self.requests: list[Request] = []
        self.reads: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int, int, int]] = []
        self.done: list[tuple[int, int, int, int]] = []
        self._before = dict(self.lines)

    @property
    def beats(self) -> int:
        """Cycles that the ALU takes for a line."""
        return 16 // self.config.nmc_lanes

    @property
    def latency(self) -> int:
        """Cycles from the issue of a request to its write."""
        return 2 + self.config.nmc_latency + self.beats - 1

    def send(self, *requests: Request) -> None:
        """Offer these requests from this cycle on."""
        self.requests += requests
        for each in requests:
            self.bench.send["request"].append({
                "line": each.line, "op": each.op, "dtype": each.dtype, "mask": each.mask, "tag": each.tag,
                "data": each.new,
            })  # fmt: skip

    def taken(self) -> list[int]:
        """The cycles in which requests were transferred."""
        return [cycle for cycle, _ in self.bench.sent["request"][-len(self.requests) :]]

    def cycle(self, count: int = 1) -> None:
        """Cycles of the unit and its memory, in which a word is there one cycle after ``read_valid``."""
        for _ in range(count):
            self._cycle()

    def _cycle(self) -> None:
        bench, word = self.bench, NOTHING
        assert bench["write_valid"] == bench["done_valid"]
        if bench["write_valid"]:
            line, data, mask = (bench[f"write_{name}"] for name in ("line", "data", "mask"))
            self.writes.append((bench.now, line, data, mask))
            self.done.append((bench.now, *(bench[f"done_{name}"] for name in ("tag", "data", "flags"))))
            keep = ~byte_mask(mask)
            self.lines[line] = self.lines.get(line, 0) & keep | data & ~keep
        if bench["read_valid"]:
            self.reads.append((bench.now, bench["read_line"]))
            word = self.lines.get(bench["read_line"], 0)
        bench.step()
        bench.set("read_data", word)

    def finish(self) -> None:
        """Until every request is done, a cycle after which the unit is idle; checks them all."""
        limit = self.bench.now + len(self.requests) * (self.latency + 12) + 20
        while len(self.done) < len(self.requests):
            assert not self.bench["idle"] or not self.busy(), "a request waits"
            assert self.bench.now < limit, "a request is lost"
            self.cycle()
        self.cycle()
        assert self.bench["idle"] and len(self.done) == len(self.requests)
        self.check()

    def busy(self) -> bool:
        """Whether the unit holds a request."""
        return len(self.requests) - len(self.bench.send["request"]) > len(self.done)

    def check(self) -> None:
        """The requests act as if each were performed at once, in their order, on lines of 0 at first."""
        dtypes, expected = self.config.dtypes, self._before
        for request, (_, line, written, mask), (_, tag, word, flags) in zip(
            self.requests, self.writes, self.done, strict=True
        ):
            old = expected.get(request.line, 0)
            writes = updates(request, dtypes) or request.op == Op.READ_CLEAR
            assert (line, tag) == (request.line, request.tag)
            assert (word, flags) == combine(request, old, dtypes), (request, f"{old:#x}")
            assert mask == (request.mask if writes else 0), request
            assert written == after(request, old, dtypes), (request, f"{old:#x}")
            expected[request.line] = written
        assert [line for _, line in self.reads] == [request.line for request in self.requests]
        assert {line: word for line, word in self.lines.items() if word} == {
            line: word for line, word in expected.items() if word
        }


def perform(memory: Memory, request: Request, old: int) -> tuple[int, int]:
    """One request alone, on a line with these bytes: done data and flags."""
    memory.lines[request.line] = old
    memory.clear()
    memory.send(request)
    memory.finish()
    return memory.done[0][2:]


def tagged(requests: Iterable[Request]) -> list[Request]:
    """The requests with their numbers as tags, of which both halves are used."""
    return [Request(**vars(each) | {"tag": number << 16 | number}) for number, each in enumerate(requests, 1)]
