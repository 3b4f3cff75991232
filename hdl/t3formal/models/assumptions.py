"""What proofs assume of a part's surroundings, and who owes it.

Every name that a harness passes to ``assume`` is here. A neighbour owes it by claims that are proven; the integrator
owes what is outside the hardware (docs/guides/integration.md).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Obligation:
    """An assumption: ``says`` what, and by whom it is owed.

    ``claims`` : (proof, claim) pairs that together show it; the claim of a proof, by their names.
    ``integrator`` : why it holds where no proof of ours reaches, empty otherwise.
    """

    says: str
    claims: tuple[tuple[str, str], ...] = ()
    integrator: str = ""


ASSUMPTIONS: dict[str, Obligation] = {
    "now does not run back": Obligation(
        says="now is at least what it was in the cycle before",
        integrator="it counts cycles, 48 bits of them, and neither stops nor jumps while the unit is in use",
    ),
    "now counts every cycle": Obligation(
        says="now is one more than in the cycle before",
        integrator="it counts cycles, 48 bits of them, and neither stops nor jumps while the unit is in use",
    ),
    "the memory accepts within R cycles": Obligation(
        says="dram is not stalled for R cycles in a row; R is any number",
        integrator="the channel's DRAM scheduler: it has taken an access R cycles after it was offered",
    ),
    "the memory reports each tracked update once": Obligation(
        says="with count_on = performed: update_done once with or after the transfer of each dram word with tagged = 1",
        integrator="the channel's DRAM scheduler: it gives each such word back, as it was, when it has performed it",
    ),
    "a token queue is pushed only with room": Obligation(
        says="push is 0 while level is the depth",
        claims=(("slice.reserves-tokens", "the token queue is pushed only with room"),),
    ),
    "an AXI manager keeps its items": Obligation(
        says="AWVALID, WVALID and ARVALID, and what goes with them, stay until the transfer",
        integrator="a rule of AXI4-Lite for every manager (AMBA AXI specification, A3.2.1)",
    ),
    "the bus answers every request in the next cycle": Obligation(
        says="response_valid is 1 exactly in the cycle after a request was taken",
        claims=(("registers.answers", "one answer in the cycle after a request, none else"),),
    ),
    "the bus is ready unless it answers": Obligation(
        says="bus_ready is 0 exactly while response_valid is 1",
        claims=(("registers.answers", "ready unless it answers"),),
    ),
    "a bank gives its word in the next cycle, with every write up to the read's cycle": Obligation(
        says="the byte that is looked at is, in read_data in the cycle after read_valid, what writes up to then left",
        integrator="the memory port of NmcUnit: a synchronous memory, written through, at each bank group",
    ),
    "a line comes when the ALU takes one again": Obligation(
        says="valid is 0 in the beats - 1 cycles after it was 1",
        claims=(("nmc.answers", "a line comes when the ALU takes one again"),),
    ),
    "a bank takes a token in every frame, or there is none": Obligation(
        says="frames of tracker_banks + 1 cycles, one after the other from when no sweep holds the banks; a token that "
        "a root offers for all of one is taken in it",
        claims=(
            ("tracker-bank.keeps-moving", "in every frame an event leaves, unless there is none"),
            ("tracker-bank.keeps-moving", "in the cycle after that the pipeline moves"),
            ("tracker-bank.keeps-moving", "and in the next one a token may come"),
        ),
    ),
    "a root takes a token in every frame, or there is none": Obligation(
        says="likewise of a leaf; a frame is one of a root's rounds",
        claims=(
            ("token-network.root-keeps-moving", "an input's head leaves in every round, unless there is none"),
            ("token-network.root-keeps-moving", "in the cycle after that the input is ready"),
        ),
    ),
    "a sweep ends within its limit": Obligation(
        says="maintenance is 1 for sets_per_bank + 2 x (tracker_banks + 1) + 3 cycles at most",
        claims=(("tracker.sweeps-end", "a sweep ends within 11 cycles"),),
    ),
    "a bank's head leaves in every frame, or there is none": Obligation(
        says="in every tracker_banks + 1 cycles, from the third after a sweep on, M takes a token, or none waits",
        claims=(
            ("tracker-bank.keeps-moving", "in every frame an event leaves, unless there is none"),
            ("tracker-bank.keeps-moving", "in the cycle after that the pipeline moves"),
        ),
    ),
    "a root's head leaves in every frame, or there is none": Obligation(
        says="in every `nodes` frames of the banks each input of a root gives a token, or has none",
        claims=(("token-network.root-keeps-moving", "an input's head leaves in every round, unless there is none"),),
    ),
    "a leaf's head leaves in every frame, or there is none": Obligation(
        says="in every `node_inputs` frames of the roots each input of a leaf gives a token, or has none",
        claims=(("token-network.leaf-keeps-moving", "an input's head leaves in every round, unless there is none"),),
    ),
    "now is far from its end": Obligation(
        says="now and the time that an abort, or a wait of communication, takes are below 2**48",
        integrator="48 bits are 78 hours at 1 GHz: reset the unit and its time before, or count in a slower unit",
    ),
    "one action per CONTROL write": Obligation(
        says="a CONTROL write has at most one of arm, disarm, abort, quiesce, resume",
        claims=(
            ("registers.rules", "an error: two actions in one write"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "the tracker's requests come one at a time": Obligation(
        says="no arm, abort or debug read before init_done, while maintenance or while abort_busy",
        claims=(
            ("registers.rules", "an error: arm or abort when the tracker is busy"),
            ("registers.rules", "an error: DEBUG_SELECT when the tracker is busy"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "only registers that exist are written": Obligation(
        says="no PROFILE register of a wavefront that does not exist, no address between registers",
        claims=(
            ("registers.rules", "an error: an address that takes no writes"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "a chunk has a descriptor that exists": Obligation(
        says="a load names a descriptor below `descriptors`",
        claims=(("trigger.loads", "a chunk has a descriptor that exists"),),
    ),
    "tokens go to their bank": Obligation(
        says="bank (row XOR column XOR wavefront) modulo banks takes a token",
        claims=(("token-network.conserves", "tokens go to their bank"),),
    ),
    "an arm names descriptors that there are": Obligation(
        says="CONTROL.arm comes with descriptors >= 1 and first + descriptors at most those of the configuration",
        claims=(
            ("registers.rules", "an error: arm of no descriptors"),
            ("registers.rules", "an error: arm of descriptors that do not exist"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "an arm or abort names a context that there is": Obligation(
        says="CONTROL.arm and CONTROL.abort come with a context below contexts",
        claims=(
            ("registers.rules", "an error: arm or abort of a context that does not exist"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "a context that is active is not armed": Obligation(
        says="no CONTROL.arm of a context that is armed and not complete",
        claims=(
            ("registers.rules", "an error: arm of an active context"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "no two active contexts share a descriptor": Obligation(
        says="no CONTROL.arm with a window that overlaps that of another active context",
        claims=(
            ("registers.rules", "an error: arm of descriptors of another active context"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "a ready list is popped with a block in it alone": Obligation(
        says="pop of a context comes with a block in its list",
        claims=(("command-issuer.once", "only of contexts that may have one"),),
    ),
    "a ready list is not popped twice within three cycles": Obligation(
        says="unless it is cleared with the first pop, or in the cycle after it",
        claims=(("command-issuer.once", "not of one context twice within three cycles"),),
    ),
    "one ready list is popped at a time": Obligation(
        says="pop has one bit at most",
        claims=(("command-issuer.once", "of one context at a time"),),
    ),
    "a ready block is of a context that there is": Obligation(
        says="push comes with a context below contexts",
        claims=(("trigger.blocks", "a ready block is of a context that there is"),),
    ),
    "a block that is in a ready list is not pushed": Obligation(
        says="push comes with a block that has left its list, or whose list was cleared",
        claims=(
            ("block-table.fires-once", "not twice between two clears"),
            ("trigger.blocks", "a slot is not cleared while its blocks wait"),
        ),
    ),
    "a block that is pushed is offered": Obligation(
        says="offered is 1 whenever push is",
        claims=(("block-table.fires-once", "what is ready was offered"),),
    ),
    "a block is cleared before its slot is loaded": Obligation(
        says="the walker has cleared every block of a slot when it is loaded",
        claims=(("trigger.blocks", "a block is cleared before its slot is loaded"),),
    ),
    "marks are cleared before their slot is loaded": Obligation(
        says="the walker has cleared the marks of every tile of the chunk when its slot is loaded",
        claims=(("trigger.blocks", "marks are cleared before their slot is loaded"),),
    ),
    "a tile or a clear is of a slot with a share of the marks": Obligation(
        says="TILE_MARKS leaves the slot a share; one operation enters at a time",
        claims=(("trigger.loads", "into a slot that has a share of the marks"),),
    ),
    "shares of the marks stay while a context is active": Obligation(
        says="no write of TILE_MARKS while a context is armed and not complete",
        claims=(
            ("registers.rules", "an error: a locked register"),
            ("registers.rules", "every good configuration write goes out, and no other"),
        ),
    ),
    "the memory of tile marks gives what was written last": Obligation(
        says="a read gives the word that its row was given last",
        claims=(("blocks.memory-sync", "a read gives what was written last"),),
    ),
    "a slot is loaded before its blocks are looked at": Obligation(
        says="tiles, flushes and scans are of slots that were loaded",
        claims=(("trigger.blocks", "a slot is loaded before its blocks are looked at"),),
    ),
    "a slot is not looked at while it is loaded": Obligation(
        says="no tile, flush or scan of the slot enters in the cycle of its load",
        claims=(("trigger.blocks", "a slot is not looked at while it is loaded"),),
    ),
    "the memory of block entries gives what was written last": Obligation(
        says="a read gives the word that its row was given last",
        claims=(("blocks.memory-through", "a read gives what was written last"),),
    ),
    "the memory of block places gives what was written last": Obligation(
        says="a read gives the word that its row was given last",
        claims=(("blocks.memory-sync", "a read gives what was written last"),),
    ),
    "a token counts something": Obligation(
        says="n of a token is not 0",
        claims=(
            ("token-queue.conserves", "entry 1 counts something"),
            ("token-network.conserves", "root_0.queue_0 holds what was moved there and not moved on"),
        ),
    ),
    "nothing is damaged": Obligation(
        says="without `protect` no table reports an error to the bank or of lines that were collected",
        claims=(("tracker.as-naive", "bank 0: nothing is damaged"), ("tracker.as-naive", "drained events alike")),
    ),
    "every row is cleared before the first token": Obligation(
        says="clear is 1 until every row was cleared",
        claims=(("maintenance.walks", "every row is cleared before the first token"),),
    ),
    "rows are cleared only after reset": Obligation(
        says="clear does not come back, and is 0 while rows are read or swept",
        claims=(
            ("maintenance.walks", "rows are cleared only after reset"),
            ("maintenance.walks", "reset is over once"),
        ),
    ),
    "sweeps go through empty banks that are halted": Obligation(
        says="a row is read or swept only while no token is in M or R, and none may enter",
        claims=(("maintenance.walks", "sweeps go through empty banks that are halted"),),
    ),
    "a sweep writes the row that it has read": Obligation(
        says="a row is swept in the cycle after it was read",
        claims=(("maintenance.walks", "a sweep writes the row that it has read"),),
    ),
    "an empty bank that is halted stays empty": Obligation(
        says="drained stays 1 while maintenance is",
        claims=(("tracker-bank.stays-empty", "an empty bank that is halted stays empty"),),
    ),
    "tiles are pushed only with room": Obligation(
        says="push is 0 while level is the depth",
        claims=(("tracker-bank.conserves", "no more events than there is room for"),),
    ),
    "only events that are there are taken": Obligation(
        says="an event is taken only from a bank that has one",
        claims=(("event-turns.in-time", "what is taken is there"),),
    ),
    "lines are of a slot that exists": Obligation(
        says="the slot of an event is below `chunk_window`",
        claims=(("tracker.as-naive", "bank 0: E alike"),),
    ),
    "a slot is pending until it is collected or ends": Obligation(
        says="a bit of `pending` that is 1 stays until collect with its slot, or until its slot ends",
        claims=(("pending-lines.conserve", "a slot is pending until it is collected or ends"),),
    ),
    "events are of slots that were loaded": Obligation(
        says="the slot of an event was loaded since reset",
        claims=(("tracker.as-naive", "drained events alike"),),
    ),
    "a bank has its turn after the others": Obligation(
        says="a tile that waits is taken in one of as many cycles as there are turns: of the banks, and of collection",
        claims=(
            ("blocks.turns", "one of the requests is granted, if there is one"),
            ("blocks.turns", "no request waits for more grants than there are other requesters"),
        ),
    ),
}
"""By name. Free choices of a harness (``chosen``) are no assumptions: they only name what is looked at."""
