"""What must hold for every configuration; each proof says which of these it is a part of."""

INVARIANTS: dict[int, str] = {
    1: "No command before every tile of its block has its threshold counted, or its whole chunk is counted.",
    2: "With DMA and credit ready, it is then issued within the latency and one grant per older block.",
    3: "At most one command per block and epoch; no count is lost or doubled under any back-pressure.",
    4: "An address outside every live range, or of another context, changes no range, tracker, chunk or trigger state.",
    5: "A part that says idle, with no input active and now < wake_at, changes no state and no output.",
    6: "Communication passes above the threshold only by the starvation limit, or while compute is absent, and by at "
    "most 7 lines of the burst that is granted below it; it waits no longer than the starvation limit says.",
    7: "Memory after an update equals op(old, new), whatever the spacing of updates.",
    8: "AXI4-Lite and stream protocols are kept; a locked configuration changes only by reset or abort.",
    9: "A DMA read of a fired block returns all its counted updates.",
    10: "No ready path leads from outputs to the acceptance of updates: incoming updates always sink.",
}
"""By number."""

GAPS: dict[int, str] = {
    9: "Gap: shown for one slice and one bank, and one output of two tiles, in the first cycles of a run alone. For "
    "every run it follows from invariants 1 and 3 by an argument that no tool checks.",
}
"""What the proofs of an invariant together leave open, by number."""
