"""Random inputs for a RangeMatcher."""

from stimulus import Stimulus, pack
from t3hdl.control import register_map as regs


class Matcher(Stimulus):
    """Store rows against ranges and chunks."""

    def plan_job(self, context: int, first: int, end: int) -> None:
        self.range_writes(context)
        rng = self.rng
        for i in range(first, end):
            row0, row1, col0, col1 = self.rectangle()
            self.descriptor_writes(i, (
                pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row0, row1=row1, col0=col0, col1=col1, kind=rng.randrange(4),
                     op=rng.randrange(6), peer=rng.getrandbits(8)),
                pack(regs.DESCRIPTOR_LAYOUTS[1], context=context if self.chance(0.9) else self.context(),
                      expected=rng.getrandbits(32)),
                pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39)),
                pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39)),
            ))  # fmt: skip

    def drive_part(self) -> None:
        self.offer("store", self.request)
        self.accept("route")
