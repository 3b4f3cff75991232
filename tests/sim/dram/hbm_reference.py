"""Watches the command buses of the HBM model and checks them against JEDEC-style rules, apart from the scheduler.

The rules are written from the standard names (nRCDRD, nFAW, ...) and the physical meaning of each: what the data bus
carries in which clock, when a bank may be opened again. They share no table with the model.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numba import njit
from t3sim.dram.hbm import FOREVER, READ, UPDATE, WRITE, HbmState, accepts, enqueue_address, tick
from t3sim.dram.state import ACT, COLUMN, PRE, PRE_ALL, REFRESH, SWITCH
from t3sim.inputs.machine.hbm import HbmSection

FIELDS = ("cycle", "command", "bank", "row", "column", "kind", "tag", "done")
MODEST = 20  # cycles a refresh may take to find its commands beyond what timing forces


@njit(cache=True)
def simulate(hbm, c, traffic, every_cycle, until, log):
    """Offers ``traffic`` in order and runs to cycle ``until``: (commands logged, wait of each access, wake errors).

    ``traffic`` rows: earliest cycle, kind, bank group, bank, row, column; the tag is the row number. As many as the
    queue takes enter in one cycle. With ``every_cycle`` the model is made to look at every bank in every cycle; a
    command before the cycle at which it asked to be woken, without an enqueue, is a wake error.
    """
    channel = hbm.channel[c]
    entered = np.full(len(traffic), -1)
    waits = np.full(len(traffic), -1)
    logged, wrong, head, now, wake = 0, 0, 0, 0, 0
    while now < until:
        offered = False
        while head < len(traffic) and traffic[head, 0] <= now and accepts(hbm, c, traffic[head, 1] != READ):
            _, kind, group, bank, row, column = traffic[head]
            enqueue_address(hbm, c, now, group, bank, row, column, kind, head)
            entered[head] = now
            head += 1
            offered = True
        promised = wake
        if every_cycle:
            channel.wake = now
            channel.column_plan.known = channel.row_plan.known = 0
        wake, tag, done = tick(hbm, c, now)
        active = False
        for bus in (channel.column_command, channel.row_command):
            if bus.cycle == now:
                active = True
                log[logged, 0], log[logged, 1], log[logged, 2] = now, bus.command, bus.bank
                log[logged, 3:] = -1
                if bus.slot >= 0:
                    line = channel.line[bus.slot]
                    log[logged, 3], log[logged, 4] = line.row, line.column
                    log[logged, 5], log[logged, 6] = line.kind, line.tag
                if bus.command == COLUMN:
                    log[logged, 7] = done
                    if tag >= 0:
                        waits[tag] = now - entered[tag]
                logged += 1
        wrong += active and not offered and now < promised
        room = head < len(traffic) and accepts(hbm, c, traffic[head, 1] != READ)
        following = max(now + 1, traffic[head, 0]) if room else FOREVER
        now = now + 1 if every_cycle else max(now + 1, min(wake, following))
    return logged, waits, wrong


@dataclass
class Run:
    """What one simulation did: commands as rows of FIELDS, the wait of each access (-1: never issued), wake errors."""

    commands: np.ndarray
    waits: np.ndarray
    wake_errors: int


def run(hbm: HbmState, traffic: np.ndarray, *, until: int, every_cycle: bool = False, c: int = 0) -> Run:
    """Simulates ``traffic`` on channel ``c``."""
    log = np.empty((2 * until, len(FIELDS)), np.int64)
    logged, waits, wrong = simulate(hbm, c, traffic, every_cycle, until, log)
    return Run(log[:logged], waits, wrong)


class Checker:
    """Finds violations of timing and of bank state in a list of commands.

    If ACT takes two clocks of the row bus, the memory acts on the second, from and to which its timings count.
    """

    def __init__(self, parameters: HbmSection) -> None:
        self.p = parameters
        self.open_row: dict[int, int] = {}
        self.last: dict[tuple, int] = defaultdict(lambda: -(10**9))
        self.acts: list[int] = []
        self.refreshes = 0
        self.bus_free = {"row": 0, "column": 0}
        self.data: tuple[int, int] | None = None  # kind, end of the last burst
        self.found: list[str] = []
        self.computing = False  # mode-switched PIM is in compute mode
        self.computed: dict[int, int] = {}  # atomics: tag of an update whose line was read -> when it may write

    def check(self, commands: np.ndarray) -> list[str]:
        """The violations, as 'rule at cycle' strings."""
        for cycle, command, bank, row, _column, kind, tag, done in commands.tolist():
            self._bus("column" if command == COLUMN else "row", cycle, self.p.act_clocks if command == ACT else 1)
            if command == ACT:
                self._act(cycle + self.p.act_clocks - 1, bank, row)
            elif command == PRE:
                self._expect(bank in self.open_row, "PRE of a closed bank", cycle)
                self._precharge(cycle, bank)
            elif command == COLUMN:
                self._mode(cycle, kind)
                self._column(cycle, bank, row, self._phase(cycle, kind, tag), done)
            elif command == PRE_ALL:
                for each in list(self.open_row):
                    self._precharge(cycle, each)
            elif command == REFRESH:
                self._refresh(cycle)
            elif command == SWITCH:
                self._switch(cycle)
        return self.found

    def _expect(self, holds: bool, rule: str, cycle: int) -> None:
        if not holds:
            self.found.append(f"{rule} at {cycle}")

    def _since(self, event: tuple, clocks: int, rule: str, cycle: int) -> None:
        self._expect(cycle - self.last[event] >= clocks, rule, cycle)

    def _bus(self, bus: str, cycle: int, clocks: int) -> None:
        self._expect(cycle >= self.bus_free[bus], f"{bus} bus busy", cycle)
        self.bus_free[bus] = cycle + clocks

    def _act(self, cycle: int, bank: int, row: int) -> None:
        p = self.p
        self._expect(bank not in self.open_row, "ACT of an open bank", cycle)
        self._since(("act", bank), p.nRC, "nRC", cycle)
        self._since(("pre", bank), p.nRP, "nRP", cycle)
        self._since(("act group", bank // 4), p.nRRDL, "nRRDL", cycle)
        self._since(("act any",), p.nRRDS, "nRRDS", cycle)
        self._since(("refresh",), p.nRFC, "nRFC", cycle)
        self._since(("switch",), p.pim_switch_cycles, "pim_switch_cycles", cycle)
        if len(self.acts) >= 4:
            self._expect(cycle - self.acts[-4] >= p.nFAW, "nFAW", cycle)
        self.acts.append(cycle)
        self.last["act", bank] = self.last["act group", bank // 4] = self.last["act any",] = cycle
        self.open_row[bank] = row

    def _precharge(self, cycle: int, bank: int) -> None:
        p = self.p
        self._since(("act", bank), p.nRAS, "nRAS", cycle)
        self._since(("read", bank), p.nRTPL, "nRTPL", cycle)
        self._since(("written", bank), p.nWR, "nWR", cycle)
        self.last["pre", bank] = self.last["pre any",] = cycle
        self.open_row.pop(bank, None)

    def _mode(self, cycle: int, kind: int) -> None:
        if self.p.substrate == "pim":
            self._expect(self.computing == (kind == UPDATE), "access in the other PIM mode", cycle)

    def _phase(self, cycle: int, kind: int, tag: int) -> int:
        """What the column command of an access is: with atomics an update is first a read, then a write."""
        if self.p.substrate != "atomics" or kind != UPDATE:
            return kind
        if tag not in self.computed:
            self.computed[tag] = cycle + self.p.nCL + self.p.nBL + self.p.atomic_cycles
            return READ
        self._expect(cycle >= self.computed[tag], "atomic_cycles", cycle)
        self.computed[tag] = FOREVER
        return WRITE

    def _column(self, cycle: int, bank: int, row: int, kind: int, done: int) -> None:
        """``kind`` READ or WRITE, or UPDATE for one that the memory does itself; no ``done``: more is to come."""
        p, group = self.p, bank // 4
        self._expect(self.open_row.get(bank) == row, "column command without its row", cycle)
        self._since(("column any",), p.nCCDS, "nCCDS", cycle)
        self._since(("update", group), p.nmc_update_cycles, "nmc_update_cycles", cycle)
        if kind == READ:
            start = cycle + p.nCL
            self._since(("act", bank), p.nRCDRD, "nRCDRD", cycle)
            self._since(("read group", group), p.nCCDL, "nCCDL of reads", cycle)
            self._since(("written any",), p.nWTRS, "nWTRS", cycle)
            self._since(("written group", group), p.nWTRL, "nWTRL", cycle)
            self.last["read", bank] = self.last["read group", group] = cycle
        else:
            start = cycle + p.nCWL
            self._since(("act", bank), p.nRCDWR, "nRCDWR", cycle)
            self._since(("write group", group), p.nCCDL, "nCCDL of writes", cycle)
            end = start + p.nBL
            self.last["written", bank] = self.last["written group", group] = self.last["written any",] = end
            self.last["write group", group] = cycle
            if kind == UPDATE:
                self.last["update", group] = cycle
        if self.data is not None:
            gap = 2 if self.data[0] == READ and kind != READ else 0
            self._expect(start >= self.data[1] + gap, "data bus", cycle)
        self.data = (kind, start + p.nBL)
        self._expect(done in (start + p.nBL, 0) if p.substrate == "atomics" else done == start + p.nBL, "done", cycle)
        self.last["column any",] = cycle

    def _quiet(self, cycle: int, what: str) -> None:
        p = self.p
        self._expect(not self.open_row, f"{what} with an open bank", cycle)
        self._since(("pre any",), p.nRP, f"nRP before {what}", cycle)
        self._since(("act any",), p.nRC, f"nRC before {what}", cycle)
        self._since(("refresh",), p.nRFC, f"nRFC before {what}", cycle)
        self._since(("switch",), p.pim_switch_cycles, f"pim_switch_cycles before {what}", cycle)

    def _switch(self, cycle: int) -> None:
        self._expect(self.p.substrate == "pim", "mode switch", cycle)
        self._quiet(cycle, "SWITCH")
        self.computing = not self.computing
        self.last["switch",] = cycle

    def _refresh(self, cycle: int) -> None:
        p = self.p
        self._quiet(cycle, "REF")
        self.refreshes += 1
        self.last["refresh",] = cycle
        due = self.refreshes * p.nREFI
        # An active line is opened, waits for a turnaround and writes; its bank is closed; then the refresh.
        most = p.nRCDRD + p.nCL + 2 * p.nBL + p.nWTRL + p.nCWL + p.nWR + max(p.nRAS, p.nRP) + p.nRP + MODEST
        most += p.pim_switch_cycles * (p.substrate == "pim")
        self._expect(due <= cycle <= due + most, "nREFI", cycle)


def violations(commands: np.ndarray, parameters: HbmSection) -> list[str]:
    """The violations of ``parameters``' timing in ``commands``."""
    return Checker(parameters).check(commands)


def reorderings(commands: np.ndarray, traffic: np.ndarray) -> list[str]:
    """Accesses to one line that overtook an older one, when either writes (tags are numbers of ``traffic`` rows)."""
    found = []
    newest: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [-1, -1])  # youngest issued: any, that writes
    for _, command, bank, row, column, kind, tag, _ in commands.tolist():
        if command != COLUMN:
            continue
        assert (kind, bank // 4, bank % 4, row, column) == tuple(traffic[tag, 1:]), "issued as enqueued"
        issued = newest[bank, row, column]
        if tag < (issued[1] if kind == READ else issued[0]):
            found.append(f"access {tag} to bank {bank} row {row} column {column} was overtaken by {issued}")
        issued[0] = max(issued[0], tag)
        issued[1] = max(issued[1], tag) if kind != READ else issued[1]
    return found
