"""The words of the page of waits for the tracker."""

HEAD = """\
# Waits for the tracker

Tracking must not slow down what it tracks: a store is in memory when memory takes it, and its token is counted beside
that. An access waits for the tracker only if the token queue of its slice is full. `t3 validate tracker` counts the
cycles in which that, and nothing else, holds an access back, of all channels together; this page is written by
`python -m docs.pages tracker_waits` from `docs/results/tracker/tracker.json`, which

    t3 validate tracker --out docs/results/tracker

made. What each part does in which cycle is in its contract: [slice](../hardware/slice.md), [token
network](../hardware/token_network.md), [tracker](../hardware/tracker.md).
"""

AIM = """\
The aim was that no access waits in any regime. {free} of {regimes} regimes on the presets as they are have no cycle in
which one did, among them {simulated_free} of {simulated} co-simulated GEMMs.
"""
OTHERS = """\
The others have such cycles, here of all channels together:
"""

STREAMS = """\
Slices, token network and tracker alone, with nothing in front or behind. Both contexts store at the same time, one as
a stage of workgroups does, a row of each in turn, the other as a DMA engine sends, tile by tile; each channel takes a
line in two cycles. *As made*: no faster than the sources of the paper's machine, four bursts of stores per cycle and a
link of 150 GB/s (of smaller hardware its share); else all bursts are there from the beginning, and memory alone
decides.
"""

SIMULATED = """\
One GPU, its traffic mirrored, under t3-mca, on the golden model. *Stages held*: workgroups start and store stage by
stage, and keep their places until their stores are in memory. The command repeats one; its record has the cycles as
`contention.*.blocked_by_tracker_cycles`.
"""

BEFORE = """\
The same commands in the last commit before bursts ({commit}, program {version}), in which every line was an access with
a token of its own, and the tracker of `paper` had 4 banks. The record is `docs/results/tracker/before.json`. There the
keys are `hardware.overrides.tracker_sets` and `hardware.overrides.tracker_ways`; for both rows of *overflowed chunks*
the preset was changed to the same values instead. Two contexts have no row, because `t3 validate tracker` is younger,
and makes them of bursts, which the slices of that commit do not take.
"""

WHY = """\
By rates, averaged over all bursts; *as made* by those of the sources, and of memory while it takes what has gathered in
its queues. Where less comes on average than is counted at most, it is what comes at once that waits: on `paper` deeper
queues show it ([below](#deeper-token-queues)); on `fpga` that was not measured.
"""

DEEPER = """\
With more room in each slice's token queue (`hardware.token_queue`) on `paper`, which has 8 entries: where fewer tokens
come than the banks count on average, a queue that is deep enough takes in what comes at once. That is one of 9 entries
at the sources' rate (*as made*), of 16 for *unaligned* and of 32 for *short rows* at the memory's rate. At *64
columns*, at the memory's rate, more tokens come than 8 banks count, so that a queue of any depth fills; why one entry
more makes 1,299 cycles more wait there was not looked into. [What a slice costs with
them](../reference/area.md#deeper-token-queues) is measured. The presets stay as they are: no co-simulated GEMM waits.
"""
