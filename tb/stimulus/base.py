"""Random inputs that obey the rules of docs/hardware: what a legal neighbour might do.

A stimulus has ``drive()``, which sets the inputs of the next cycle from the outputs of this one. Numbers are small and
collide often, so that the rare branches (merges, ties, overflows, full queues) are common.
"""

import random
from collections import deque
from collections.abc import Callable

from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import TIME_BITS, ConfigWrite
from t3hdl.interface.words import WORD_BYTES, pack, unpack

from tb.lockstep import Lockstep

TILES = 8
"""Rows and columns of tiles in the random outputs."""


def _starts_maintenance(write: tuple[int, int]) -> bool:
    """Whether a configuration write is an arm, an abort or a debug read."""
    fields = pack(regs.Control, arm=1, abort=1)
    return write[0] == regs.DEBUG_SELECT or (write[0] == regs.CONTROL and write[1] & fields != 0)


class Stimulus:
    """What all parts have in common: streams, configuration pulses, a clock, jobs that come and go.

    ``windows`` has the descriptors [first, end) of every active context, ``sent`` the configuration write of this
    cycle. A part without the tracker's ``maintenance`` and ``abort_busy`` gets those of a tracker that is made up here.
    """

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        self.bench, self.config, self.rng = bench, config, rng
        self.now = rng.choice((0, (1 << TIME_BITS - 1) - 500, rng.getrandbits(TIME_BITS - 1)))
        self.writes: deque[tuple[int, int]] = deque()
        self.sent: tuple[int, int] | None = None
        self.windows: dict[int, tuple[int, int]] = {}
        self.range_owners: dict[int, int] = {}  # contexts of the ranges that were last written valid
        self.quiesced = False
        self.busy = self.abort_busy = False
        self.activity = 1.0
        self.hold = 60  # mean cycles between two actions of the driver while a context is active
        self._rates: dict[str, float] = {}
        self._maintenance_left = self._abort_left = 0

    @property
    def armed(self) -> bool:
        """Whether some context is active."""
        return bool(self.windows)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def rate(self, name: str) -> float:
        """A probability that stays for some time: phases of flow, of trickle and of standstill."""
        if name not in self._rates or self.chance(0.015):
            self._rates[name] = self.rng.choice((0.0, 0.05, 0.3, 0.7, 1.0, 1.0))
        return self._rates[name]

    def drive(self) -> None:
        """Set the inputs of the next cycle."""
        if self.chance(0.01):
            self.activity = self.rng.choice((0.0, 0.1, 1.0, 1.0))
        if "now" in self.bench.inputs:
            self.now += 1 if self.chance(0.995) else 1 + self.rng.getrandbits(self.rng.randrange(TIME_BITS - 8))
            self.bench.set("now", self.now)
        if "config_valid" in self.bench.inputs:
            self.configure()
        self.drive_part()

    def drive_part(self) -> None:
        """The inputs of this kind of part."""
        raise NotImplementedError

    def offer(self, stream: str, item: Callable[[], int]) -> None:
        """Offer items at an input stream; an offered item stays until its transfer."""
        valid, payload = f"{stream}.valid", f"{stream}.payload"
        if self.bench.driven(valid) and not self.was_taken(stream):
            return
        offers = self.chance(self.rate(stream) * self.activity)
        self.bench.set(valid, offers)
        if offers:
            self.bench.set(payload, item())

    def was_taken(self, stream: str) -> bool:
        """Whether the input stream transferred in the last cycle."""
        return stream in self.bench.moved

    def accept(self, stream: str) -> None:
        """Be ready at an output stream, or not."""
        self.bench.set(f"{stream}.ready", self.chance(self.rate(stream)))

    def pulse(self, port: str, payload: int | None) -> None:
        """A pulse with this payload, or none."""
        self.bench.set(f"{port}_valid", payload is not None)
        if payload is not None:
            self.bench.set(port, payload)

    def configure(self) -> None:
        """At most one configuration write per cycle, of those that the registers let through."""
        was_busy, self.busy = self.busy, self._is_busy()
        if self.writes and self.busy and self.chance(0.003):
            self.writes = deque()
            self.disarm()
        elif not self.writes and self.chance(1 / self.hold if self.armed else 0.05):
            self.act()
        elif not self.writes and self.chance(0.01):
            self.writes.append(self.free_write())
        waits = self.writes and _starts_maintenance(self.writes[0]) and (self.busy or was_busy)
        self.sent = self.writes.popleft() if self.writes and not waits and self.chance(0.7) else None
        if self.sent and self.sent[0] in (regs.CONTROL, regs.DEBUG_SELECT):
            self._follow(self.sent)
        self.pulse("config", pack(ConfigWrite, address=self.sent[0], data=self.sent[1]) if self.sent else None)

    def _is_busy(self) -> bool:
        """Whether the tracker cannot be asked for maintenance in this cycle; also counts down the made-up one."""
        outputs = self.bench.outputs
        if "maintenance" in outputs:
            status = {name: self.bench.get(name) for name in ("maintenance", "abort_busy", "init_done")}
            self.abort_busy = bool(status["abort_busy"])
            return bool(status["maintenance"] or status["abort_busy"] or not status["init_done"])
        self._maintenance_left = max(0, self._maintenance_left - 1)
        self._abort_left = max(0, self._abort_left - 1)
        self.abort_busy = self._abort_left > 0
        if "abort_busy" in self.bench.inputs:
            self.bench.set("abort_busy", self.abort_busy)
        return self._maintenance_left > 0 or self.abort_busy

    def _follow(self, write: tuple[int, int]) -> None:
        """Keep in mind what a CONTROL or DEBUG_SELECT write does to the contexts and to the tracker."""
        address, value = write
        control = unpack(regs.Control, value)
        if address == regs.DEBUG_SELECT:
            self._maintenance_left = 6
        elif control["disarm"]:
            self.windows.clear()
            self.quiesced = False
            self._maintenance_left = self._abort_left = 0
        elif control["arm"] or control["abort"]:
            self._maintenance_left = self.rng.randint(4, 12)
            if control["arm"]:  # a disarm that was queued before it has cleared the windows
                self.windows[control["context"]] = control["first"], control["first"] + control["descriptors"]
            else:
                context = control["context"]
                self._abort_left = self._maintenance_left + self.rng.randint(1, 40)
                self.windows.pop(context, None)
                self.range_owners = {i: owner for i, owner in self.range_owners.items() if owner != context}

    def act(self) -> None:
        """Queue what a driver does next: a new job, a debug read, an abort, a disarm and so on."""
        for context in [context for context in self.windows if self.completed(context)]:
            del self.windows[context]
        if self.quiesced and self.chance(0.5):
            self.quiesced = False
            self.control(resume=1)
        elif not self.windows and not self.quiesced:
            if self.chance(0.1):
                self.disarm()
            elif self.chance(0.5):
                self.plan()
            self.arm()
        else:
            actions = (self.arm, self.abort, self.quota, self.debug, self.quiesce, self.disarm)
            self.rng.choices(actions, (4, 3, 2, 3, 1, 1))[0]()

    def completed(self, context: int) -> bool:
        """Whether an active context has become complete: here, at any time."""
        return self.chance(0.2)

    def disarm(self) -> None:
        """Queue a disarm, perhaps a forced one."""
        self.control(disarm=1, forced=self.chance(0.5))

    def control(self, **fields: int) -> None:
        """Queue a CONTROL write."""
        self.writes.append((regs.CONTROL, pack(regs.Control, **fields)))

    def arm(self) -> None:
        """Queue the tables of a job and the arm of its context, if a context and descriptors are left; some quota."""
        contexts = [context for context in range(self.config.contexts) if context not in self.windows]
        taken = {i for first, end in self.windows.values() for i in range(first, end)}
        free = [i for i in range(self.config.descriptors) if i not in taken]
        if self.quiesced or not contexts or not free:
            return
        context = contexts[0] if self.chance(0.5) else self.rng.choice(contexts)
        first = free[0] if self.chance(0.5) else self.rng.choice(free)
        limit = next((i for i in range(first, self.config.descriptors) if i in taken), self.config.descriptors)
        end = self.rng.randint(first + 1, limit)
        if self.chance(0.3):
            self.quota()
        self.plan_job(context, first, end)
        self.control(arm=1, context=context, first=first, descriptors=end - first)
        self.windows[context] = first, end

    def abort(self) -> None:
        """Queue an abort, mostly of an active context."""
        any_context = self.rng.randrange(self.config.contexts)
        active = self.windows and self.chance(0.9)
        self.control(abort=1, context=self.rng.choice(list(self.windows)) if active else any_context)

    def quiesce(self) -> None:
        """Queue a quiesce."""
        self.quiesced = True
        self.control(quiesce=1)

    def quota(self) -> None:
        """Queue the quota of a context that is not active."""
        contexts = [context for context in range(self.config.contexts) if context not in self.windows]
        if contexts:
            quota = pack(
                regs.Quota,
                ways=self.rng.choice((0, 1, 1, 2, 3, 16, 16, 31)),
                slots=self.rng.choice((0, 1, 2, 64)),
                credits=self.rng.choice((0, 1, 2, regs.NO_CREDIT_LIMIT)),
            )
            self.writes.append((regs.QUOTA + regs.QUOTA_STRIDE * self.rng.choice(contexts), quota))

    def debug(self) -> None:
        """Queue a debug read of an entry, that exists or not."""
        row = self.rng.randrange(self.config.sets_per_bank) if self.chance(0.9) else self.rng.getrandbits(12)
        way = self.rng.randrange(self.config.tracker_ways) if self.chance(0.9) else self.rng.getrandbits(4)
        self.writes.append((regs.DEBUG_SELECT, pack(regs.DebugSelect, row=row, way=way, bank=self.rng.getrandbits(3))))

    def plan(self) -> None:
        """Queue writes of tables that can change only while no context is active."""

    def plan_job(self, context: int, first: int, end: int) -> None:
        """Queue the tables of a job: ranges, and descriptors [first, end) of ``context``, before its arm."""

    def jittered(self, word: int, bits: range) -> int:
        """Sometimes with one of these bits inverted, so that no bit of a word of small numbers is always 0."""
        return word ^ 1 << self.rng.choice(bits) if self.chance(0.1) else word

    def near(self, place: int, bits: range, *, far: float) -> int:
        """This place; with probability ``far`` one that differs in one of these bits, or in any."""
        if not self.chance(far):
            return place
        return place ^ (1 << self.rng.choice(bits) if self.chance(0.7) else self.rng.getrandbits(len(bits)) << bits[0])

    def context(self) -> int:
        """The context of an item: mostly of a job, sometimes one that belongs to no job."""
        if self.chance(0.05):
            return self.rng.getrandbits(4)
        if self.chance(0.1) or not self.windows:
            return self.rng.randrange(self.config.contexts)
        return self.rng.choice(list(self.windows))

    def free_write(self) -> tuple[int, int]:
        """A write that is legal at any time."""
        if self.chance(0.5):
            limit = self.rng.choice((0, 1, 2, 5, self.rng.getrandbits(16)))
            patience = self.rng.choice((0, 0, 1, 2, self.rng.getrandbits(16)))
            return regs.THRESHOLDS, self.rng.getrandbits(32) | limit << 32 | patience << 48
        values = {
            "mca": self.chance(0.7),
            "fixed": self.chance(0.5),
            "threshold": self.rng.choice((NO_LIMIT, 0, 3, 40)),
            "starvation": self.rng.choice((0, 1, 5, 20, 300)),
            "quantum": self.rng.choice((0, 1, 2, 8, 20)),
            "quiet": self.rng.choice((0, 0, 1, 10, 40)),
        }
        return regs.ARBITER, pack(regs.Arbiter, **values)

    def descriptor_writes(self, number: int, words: tuple[int, ...]) -> None:
        """The first words of one descriptor."""
        for word, value in enumerate(words):
            self.writes.append((regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word, value))

    def rectangle(self) -> tuple[int, int, int, int]:
        """Tiles [row0, row1) x [col0, col1), at least one."""
        (row0, row1), (col0, col1) = (sorted(self.rng.sample(range(TILES + 1), 2)) for _ in range(2))
        return row0, row1, col0, col1
