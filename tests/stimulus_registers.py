"""Random inputs for ControlRegisters."""

from stimulus import Stimulus, pack
from t3hdl import register_map as regs


class Registers(Stimulus):
    """Bus requests to every kind of address, while the status changes."""

    def address(self) -> int:
        rng = self.rng
        named = rng.choice((regs.ID, regs.CONTROL, regs.CONTROL, regs.STATUS, regs.ARBITER, regs.THRESHOLDS,
                            regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD))  # fmt: skip
        table = rng.choice((regs.RANGE + 8 * rng.randrange(20), regs.PROFILE + 8 * rng.randrange(70),
                            regs.DESCRIPTOR + 8 * rng.randrange(8 * 65)))  # fmt: skip
        return rng.choice((named, named, table, table, rng.getrandbits(16), named + rng.randrange(8)))

    def drive_part(self) -> None:
        rng, bench = self.rng, self.bench
        if not bench.driven("bus_valid") or self.answered:
            requests = self.chance(self.rate("bus"))
            bench.set("bus_valid", requests)
            if requests:
                arm, disarm = (pack(regs.Control, arm=1, descriptors=rng.randrange(70)), pack(regs.Control, disarm=1))
                bench.set("bus_write", self.chance(0.6))
                bench.set("bus_address", self.address())
                bench.set("bus_data", rng.choice((rng.getrandbits(64), arm, disarm)))
        self.answered = bool(bench.driven("bus_valid") and bench.get("bus_ready"))
        if self.chance(0.05):
            port = rng.choice([name for name in bench.inputs if not name.startswith("bus_")])
            bench.set(port, rng.getrandbits(bench.inputs[port][1]))

    answered = False
