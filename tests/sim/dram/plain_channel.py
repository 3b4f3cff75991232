"""A pseudo-channel and its scheduler in plain Python: looks at every line in every cycle and remembers nothing else.

Written from the rules in the docstrings of :mod:`t3sim.dram.hbm` and :mod:`t3sim.dram.modes` and from the standard
names of the timings. Slow, and shares no code with the model: what the model's lists, masks and plans must come to.
"""

import math
from dataclasses import dataclass

from t3sim.dram.hbm import READ, UPDATE, WRITE
from t3sim.dram.state import ACT, COLUMN, PRE, PRE_ALL, REFRESH, SWITCH
from t3sim.inputs.machine.hbm import HbmSection

QUEUED, ACTIVE, IN_ALU = range(3)
LONG_AGO = -(1 << 40)
NONE = -1


@dataclass
class Line:
    """An access that is not done."""

    tag: int
    arrived: int
    kind: int
    bank: int
    row: int
    column: int
    served: int
    place: int = QUEUED
    matures: int = 0

    @property
    def command(self) -> int:
        """Its next column command."""
        return READ if self.served == READ else WRITE


class PlainChannel:
    """One channel; call :meth:`cycle` for every cycle in turn."""

    def __init__(self, parameters: HbmSection) -> None:
        self.p = parameters
        self.lines: list[Line] = []  # oldest first
        self.open_row: dict[int, int] = {}
        self.last: dict[tuple, int] = {}
        self.acts = [LONG_AGO] * 4
        self.row_bus = 0
        self.serving = [READ]  # the classes that are served
        self.computing = self.switching = False
        self.mode_since = 0
        self.refreshes_due = 0
        self.commands: list[tuple[int, int, int, int, int]] = []  # cycle, command, bank, tag, done

    # Queue

    def accepts(self, kind: int) -> bool:
        """Whether there is room for an access."""
        p = self.p
        reads = sum(line.kind == READ and line.place == QUEUED for line in self.lines)
        keeps = p.substrate == "atomics"
        writes = sum(
            line.kind != READ and (line.place == QUEUED or (keeps and line.kind == UPDATE)) for line in self.lines
        )
        if p.queue == "shared":
            return reads + writes < p.queue_lines
        return reads < p.read_lines if kind == READ else writes < p.write_lines

    def enqueue(self, now: int, tag: int, kind: int, bank: int, row: int, column: int) -> None:
        """Puts an access into the queue."""
        served = {"nmc": WRITE, "pim": UPDATE, "atomics": READ}[self.p.substrate] if kind == UPDATE else kind
        self.lines.append(Line(tag, now, kind, bank, row, column, served))

    def _waits(self, line: Line) -> bool:
        """Whether an older access to the same line is not done."""
        for other in self.lines:
            if other is line:
                return False
            if (other.bank, other.row, other.column) == (line.bank, line.row, line.column):
                return True
        raise AssertionError("a line that is not in the channel")

    # Choices

    def _of_mode(self, computing: bool) -> list[Line]:
        return [line for line in self.lines if (line.served == UPDATE) == computing]

    def _overdue(self, now: int) -> Line | None:
        lines = self._of_mode(self.computing)
        if lines and now - lines[0].arrived >= self.p.age_limit_cycles and not self._waits(lines[0]):
            return lines[0]
        return None

    def _waiting(self, served: int) -> int:
        return sum(line.served == served and line.place == QUEUED for line in self.lines)

    @property
    def _drain(self) -> tuple[int, int]:
        share = self.p.write_lines if self.p.queue == "split" else self.p.queue_lines // 2
        return math.floor(self.p.drain_high * share), max(1, math.ceil(self.p.drain_low * share))

    def _choose(self, now: int) -> None:
        overdue, (above, below) = self._overdue(now), self._drain
        reads, writes = self._waiting(READ), self._waiting(WRITE)
        if self.computing:
            self.serving = [UPDATE]
        elif overdue:
            self.serving = [overdue.served]
        elif self.p.service_order == "age":
            self.serving = [READ, WRITE]
        elif self.serving == [WRITE]:
            self.serving = [READ] if writes < below and reads else [WRITE]
        else:
            self.serving = [WRITE] if writes > above or not reads else [READ]

    def _wants_switch(self, now: int) -> bool:
        others = self._of_mode(not self.computing)
        if self.p.substrate != "pim" or not others:
            return False
        memory, compute = self._waiting(READ) + self._waiting(WRITE), self._waiting(UPDATE)
        own, other = (compute, memory) if self.computing else (memory, compute)
        above, below = self._drain
        if own < below and other > above and not self._overdue(now):
            return True
        if now >= max(self.mode_since, others[0].arrived) + self.p.age_limit_cycles:
            return True
        idle = not any(line.place == ACTIVE or not self._waits(line) for line in self._of_mode(self.computing))
        idle = idle and not any(line.place == ACTIVE for line in self.lines)
        return idle and now >= max(self.mode_since, self._at("column")) + self.p.pim_switch_cycles

    # Timing

    def _at(self, *event: object) -> int:
        return self.last.get(event, LONG_AGO)

    def _note(self, now: int, name: str, bank: int) -> None:
        self.last[name, bank] = self.last[name, "group", bank // 4] = self.last[name,] = now

    def _column_allowed(self, now: int, line: Line) -> bool:
        p, bank, group = self.p, line.bank, ("group", line.bank // 4)
        written, late = p.nCWL + p.nBL, p.act_clocks - 1
        allowed = [self._at("update", *group) + max(p.nmc_update_cycles, p.nCCDL)]
        if line.command == READ:
            allowed += [self._at("act", bank) + p.nRCDRD + late, self._at("read") + max(p.nCCDS, p.nBL)]
            allowed += [self._at("read", *group) + p.nCCDL, self._at("write") + written + p.nWTRS]
            allowed += [self._at("write", *group) + written + p.nWTRL]
        else:
            allowed += [self._at("act", bank) + p.nRCDWR + late, self._at("write") + max(p.nCCDS, p.nBL)]
            allowed += [self._at("write", *group) + p.nCCDL, self._at("read") + p.nCL + p.nBL + 2 - p.nCWL]
        return now >= max(allowed)

    def _pre_allowed(self, now: int, bank: int) -> bool:
        p = self.p
        written = self._at("write", bank) + p.nCWL + p.nBL + p.nWR
        return now >= max(
            self._at("act", bank) + p.nRAS + p.act_clocks - 1, self._at("read", bank) + p.nRTPL, written, self.row_bus
        )

    def _act_allowed(self, now: int, bank: int) -> bool:
        p, late = self.p, self.p.act_clocks - 1
        allowed = [self._at("act", bank) + p.nRC, self._at("pre", bank) + p.nRP - late, self.row_bus]
        allowed += [self._at("act", "group", bank // 4) + p.nRRDL, self._at("act") + p.nRRDS, self.acts[-4] + p.nFAW]
        allowed += [self._at("refresh") + p.nRFC - late, self._at("switch") + p.pim_switch_cycles - late]
        return now >= max(allowed)

    def _quiet_allowed(self, now: int) -> bool:
        p = self.p
        allowed = [self._at("act") + p.nRC + p.act_clocks - 1, self._at("pre") + p.nRP, self.row_bus]
        return now >= max(*allowed, self._at("refresh") + p.nRFC, self._at("switch") + p.pim_switch_cycles)

    # One cycle

    def cycle(self, now: int) -> None:
        """What issues in cycle ``now``, after what was enqueued in it."""
        for line in self.lines:
            if line.place == IN_ALU and line.matures <= now:
                line.place = QUEUED
        if self.p.refresh and now and now % self.p.nREFI == 0:
            self.refreshes_due += 1
        if not self.refreshes_due and self._wants_switch(now):
            self.switching = True
        paused = self.refreshes_due or self.switching
        if not paused:
            self._choose(now)
        line = self._pick_column(now, bool(paused))
        if line:
            self._issue_column(now, line)
        if paused:
            if not any(line.place == ACTIVE for line in self.lines):
                self._issue_pause(now)
            return
        self._choose(now)
        line = self._pick_row(now)
        if line:
            self._issue_row(now, line)

    def _servable(self, now: int) -> list[Line]:
        """Lines of the queue and of a class that is served whose bank is not kept for another one, oldest first."""
        overdue = self._overdue(now)
        lines = [line for line in self.lines if line.place == QUEUED and line.served in self.serving]
        return [line for line in lines if overdue in (None, line) or overdue.bank != line.bank]

    def _pick_column(self, now: int, paused: bool) -> Line | None:
        for line in self.lines:
            if line.place == ACTIVE and self._column_allowed(now, line):
                return line
        held = {line.bank for line in self.lines if line.place == ACTIVE} if self.p.hit_order == "oldest" else set()
        if not paused:
            for line in self._servable(now):
                is_hit = self.open_row.get(line.bank) == line.row
                if not is_hit or line.bank in held or self._waits(line):
                    continue
                if self._column_allowed(now, line):
                    return line
                if self.p.hit_order == "oldest":
                    held.add(line.bank)
        return None

    def _pick_row(self, now: int) -> Line | None:
        overdue, servable = self._overdue(now), self._servable(now)
        taken = {line.bank for line in self.lines if line.place == ACTIVE}
        if self.p.row_policy == "hits-first":
            hits = {li.bank for li in servable if self.open_row.get(li.bank) == li.row and not self._waits(li)}
            taken |= hits - ({overdue.bank} if overdue else set())
        for line in servable:
            row = self.open_row.get(line.bank)
            if line.bank in taken or row == line.row or self._waits(line):
                continue
            if self._act_allowed(now, line.bank) if row is None else self._pre_allowed(now, line.bank):
                return line
        return None

    def _issue_column(self, now: int, line: Line) -> None:
        p = self.p
        done = now + (p.nCL if line.command == READ else p.nCWL) + p.nBL
        self._note(now, "read" if line.command == READ else "write", line.bank)
        self.last["column",] = now
        if line.kind == UPDATE and p.substrate != "atomics":
            self._note(now, "update", line.bank)
        if line.kind == UPDATE and line.command == READ:
            line.place, line.served, line.matures = IN_ALU, WRITE, done + p.atomic_cycles
            done = 0
        else:
            self.lines.remove(line)
        self.commands.append((now, COLUMN, line.bank, line.tag, done))

    def _issue_row(self, now: int, line: Line) -> None:
        if line.bank in self.open_row:
            self._precharge(now, line.bank)
            self.commands.append((now, PRE, line.bank, line.tag, NONE))
            return
        self.open_row[line.bank] = line.row
        self._note(now, "act", line.bank)
        self.acts.append(now)
        self.row_bus = now + self.p.act_clocks
        line.place = ACTIVE
        self.commands.append((now, ACT, line.bank, line.tag, NONE))

    def _precharge(self, now: int, bank: int) -> None:
        del self.open_row[bank]
        self._note(now, "pre", bank)
        self.row_bus = now + 1

    def _issue_pause(self, now: int) -> None:
        if self.open_row:
            if all(self._pre_allowed(now, bank) for bank in self.open_row):
                for bank in list(self.open_row):
                    self._precharge(now, bank)
                self.commands.append((now, PRE_ALL, NONE, NONE, NONE))
        elif self._quiet_allowed(now):
            self.row_bus = now + 1
            refresh = self.refreshes_due > 0
            self.last["refresh" if refresh else "switch",] = now
            self.commands.append((now, REFRESH if refresh else SWITCH, NONE, NONE, NONE))
            if refresh:
                self.refreshes_due -= 1
            else:
                self.computing, self.switching, self.mode_since = not self.computing, False, now
