"""The rules: each makes one finding of a case, or None where it has nothing to say."""

from collections.abc import Callable

from t3sim.run.ideal import COMPUTED, overlapped_ns
from t3sim.run.request import CAUSE_TITLES

from .case import LINK_BOUND, REASONS, Case, Finding, ns, part, waits

Rule = Callable[[Case], Finding | None]
SMALL = 0.01
"""Part of the whole below which nothing is said of a loss."""
MEMORY_BOUND = 0.5
"""Part of the GEMM that CUs wait for memory from which on memory is its bound."""
NOTABLE = 0.1
"""The same, from which on it is said that they do."""
BUS_BUSY = 0.7
"""Use of DRAM's data bus from which on its bandwidth is what lines wait for."""


def wrong_result(case: Case) -> Finding | None:
    """Elements of the output differ, or an accounting identity does not hold: then the times mean nothing."""
    check, record = case.record.data_check, case.record
    broken = [name for name, holds in record.identities.items() if holds is False]
    wrong = []
    if check is not None and check.mismatches:
        wrong.append(f"{check.mismatches} of {check.elements} output elements differ from the reference")
    if broken:
        wrong.append(f"identities that do not hold: {', '.join(broken)}")
    if not wrong:
        return None
    figures = {"mismatches": float(check.mismatches if check else 0), "identities": float(len(broken))}
    return Finding(
        rule="wrong_result",
        text=f"This result is wrong, and its times mean nothing: {'; '.join(wrong)}.",
        figures=figures,
    )


def computed(case: Case) -> Finding | None:
    """An ideal policy: what it is computed from, and which part decides."""
    if case.record.policy not in COMPUTED:
        return None
    time = case.record.time_ns
    longer, shorter = ("GEMM", "reduce-scatter") if time.gemm >= time.reduce_scatter else ("reduce-scatter", "GEMM")
    ahead = abs(time.gemm - time.reduce_scatter)
    return Finding(
        rule="computed",
        text=f"{case.record.policy} is computed, not simulated: max(GEMM, reduce-scatter) + all-gather = "
        f"{ns(time.total)}. The {longer} decides, as it is {ns(ahead)} longer than the {shorter}.",
        figures={"total_ns": time.total, "difference_ns": ahead},
    )


def parts_of_the_time(case: Case) -> Finding | None:
    """GEMM, communication that nothing hides, and the rest, as parts of the whole time."""
    time = case.record.time_ns
    rest = max(0.0, case.total - time.gemm - time.exposed_communication)
    text = (
        f"Of {ns(case.total)} the GEMM takes {ns(time.gemm)} ({part(time.gemm / case.total)}), and for "
        f"{ns(time.exposed_communication)} ({part(time.exposed_communication / case.total)}) data move while nothing "
        "computes"
    )
    rest_text = f"; launch and waiting are {part(rest / case.total)}." if rest >= SMALL * case.total else "."
    figures = {
        "total_ns": case.total, "gemm_ns": time.gemm, "exposed_ns": time.exposed_communication, "rest_ns": rest,
    }  # fmt: skip
    return Finding(rule="parts_of_the_time", text=text + rest_text, figures=figures)


def gemm_bound(case: Case) -> Finding | None:
    """Whether CUs compute or wait for memory during the GEMM: the mean CU's stalls as parts of its time. Waiting is for
    bandwidth if DRAM's data bus is busy over the run, else for latency, of caches and fabric, too."""
    gemm, stalls = case.record.time_ns.gemm, case.contention.cu_stall_ns
    if not gemm:
        return None
    loads, stores, bus = stalls["loads"] / gemm, stalls["stores"] / gemm, case.contention.dram.bus_use
    share = case.stall / gemm
    if share >= MEMORY_BOUND:
        verdict = "memory is the GEMM's bound"
    elif share >= NOTABLE:
        verdict = "compute is the GEMM's bound, and memory slows it down"
    else:
        verdict = "compute is the GEMM's bound"
    if share >= NOTABLE:
        verdict += ", by its bandwidth" if bus >= BUS_BUSY else ", by its latency more than its bandwidth"
    text = (
        f"In the GEMM the mean CU waits {part(loads)} of the time for inputs and {part(stores)} for its stores, and "
        f"DRAM's data bus is busy {part(bus)} of the run: {verdict}."
    )
    return Finding(rule="gemm_bound", text=text, figures={"loads": loads, "stores": stores, "bus_use": bus})


def gemm_stretch(case: Case) -> Finding | None:
    """How much longer the GEMM is than alone, and what its CUs waited more or less for.

    What its lines wait is not compared: alone they include write-backs of the LLC, for which nobody waits.
    """
    if case.alone is None or case.alone.contention is None or not case.overlapped:
        return None
    gemm, alone = case.record.time_ns.gemm, case.alone.time_ns.gemm
    here, before = case.contention, case.alone.contention
    waited = {name: here.cu_stall_ns[name] - before.cu_stall_ns[name] for name in ("loads", "stores")}
    longer = _more(gemm - alone, "longer", "shorter")
    text = (
        f"The GEMM is {ns(abs(gemm - alone))} ({part(abs(gemm / alone - 1))}) {longer} than alone ({ns(alone)}): the "
        f"mean CU waited {ns(abs(waited['loads']))} {_more(waited['loads'])} for inputs and "
        f"{ns(abs(waited['stores']))} {_more(waited['stores'])} for its stores."
    )
    more = {f"{name}_more_ns": value for name, value in waited.items()}
    return Finding(rule="gemm_stretch", text=text, figures={"longer": gemm / alone - 1, "alone_ns": alone, **more})


def _more(difference: float, more: str = "longer", less: str = "less") -> str:
    return more if difference >= 0 else less


def memory_waits(case: Case) -> Finding | None:
    """Why the GEMM's lines wait at the memory slices, where communication moves beside it."""
    clocks = waits(case.contention.compute)
    whole = sum(clocks.values())
    if not case.overlapped or not whole:
        return None
    most = max(clocks, key=lambda name: clocks[name])
    text = (
        f"Where lines of the GEMM waited at a memory slice, {part(clocks[most] / whole)} of the {whole} memory clocks "
        f"(summed over channels) were for {REASONS[most]}."
    )
    return Finding(rule="memory_waits", text=text, figures={name: float(value) for name, value in clocks.items()})


def row_conflicts(case: Case) -> Finding | None:
    """How many lines found another DRAM row open, and which traffic closed whose rows most often."""
    dram = case.contention.dram
    lines = dram.row_hits + dram.row_misses + dram.row_conflicts
    counts = dram.conflicts or {}
    pairs = {(by, of): counts.get(by, {}).get(of, 0) for by in CAUSE_TITLES for of in CAUSE_TITLES}
    if not counts or dram.row_conflicts < NOTABLE * lines:
        return None
    (by, of), most = max(pairs.items(), key=lambda item: item[1])
    whose = "rows of their own" if by == of else f"rows of {CAUSE_TITLES[of]}"
    return Finding(
        rule="row_conflicts",
        text=f"In DRAM {part(dram.row_conflicts / lines)} of the lines found another row open in their bank. Most "
        f"often ({part(most / dram.row_conflicts)} of these) {CAUSE_TITLES[by]} closed {whose}; hbm.bank_hash and "
        "hbm.service_order change where rows meet, and who waits.",
        figures={"conflicts": dram.row_conflicts / lines, "most": most / dram.row_conflicts},
    )


def link(case: Case) -> Finding | None:
    """How busy the link is in reduce-scatter and all-gather, and whether it is the bound of either."""
    shares = case.link_shares()
    names = ("reduce-scatter", "all-gather")
    bound = [name for name, share in zip(names, shares, strict=True) if share >= LINK_BOUND]
    text = f"The link is busy {part(shares[0])} of the reduce-scatter and {part(shares[1])} of the all-gather: "
    text += f"it is the bound of the {' and of the '.join(bound)}." if bound else "it is not the bound of either."
    return Finding(rule="link", text=text, figures={"reduce_scatter": shares[0], "all_gather": shares[1]})


def overlap(case: Case) -> Finding | None:
    """How much of the reduce-scatter is hidden under the GEMM; without overlap, how much could be."""
    time = case.record.time_ns
    if not case.overlapped:
        most = min(time.gemm, time.reduce_scatter)
        return Finding(
            rule="overlap",
            text=f"Nothing overlaps: GEMM, reduce-scatter ({ns(time.reduce_scatter)}) and all-gather "
            f"({ns(time.all_gather)}) follow one another. Overlap could hide at most {ns(most)} "
            f"({part(most / case.total)}).",
            figures={"hidden_ns": 0.0, "most_ns": most},
        )
    tail = case.exposed_reduce_scatter
    hidden = time.reduce_scatter - tail
    share = hidden / time.reduce_scatter if time.reduce_scatter else 0.0
    if tail < SMALL * case.total:
        text = f"The reduce-scatter is hidden under the GEMM, all but {ns(tail)} of {ns(time.reduce_scatter)}."
    elif share == 0:
        text = f"None of the reduce-scatter ({ns(time.reduce_scatter)}) is hidden under the GEMM."
    else:
        text = (
            f"Of the reduce-scatter {part(share)} is hidden under the GEMM; {ns(tail)} ({part(tail / case.total)} of "
            "the run) come behind it."
        )
    return Finding(rule="overlap", text=text, figures={"hidden_ns": hidden, "behind_ns": tail, "hidden": share})


def bound(case: Case) -> Finding | None:
    """The time against max(GEMM, reduce-scatter) + all-gather of the parts alone, with kernels that reduce."""
    if case.alone is None or not case.overlapped:
        return None
    time = case.alone.time_ns
    least = overlapped_ns(time, time)
    ratio = case.total / least - 1
    where = "above" if ratio >= 0 else "below (a reduction near memory is not in it)"
    return Finding(
        rule="bound",
        text=f"Perfect overlap of the sequential parts, max(GEMM, reduce-scatter) + all-gather, takes {ns(least)}; "
        f"this run is {part(abs(ratio))} {where}.",
        figures={"bound_ns": least, "above": ratio},
    )


def tracker(case: Case) -> Finding | None:
    """What the T3 hardware itself held up: overflowed chunks, lines that waited for the tracker, stores held back."""
    found, figures = [], dict[str, float]()
    record = case.record
    if record.tracker is not None and record.blocks is not None and record.blocks.by_chunk:
        chunks, late = record.tracker.overflowed_chunks, record.blocks.by_chunk
        found.append(
            f"{chunks} chunks overflowed the tracker, so that {late} of {record.tracker.triggers} blocks waited for "
            "their whole chunk (hardware.tracker_sets, tracker_ways)"
        )
        figures |= {"overflowed_chunks": chunks, "blocks_by_chunk": late}
    streams = [waits(stream) for stream in (case.contention.compute, case.contention.communication)]
    whole = sum(sum(clocks.values()) for clocks in streams)
    blocked = sum(clocks["blocked_by_tracker_cycles"] for clocks in streams)
    if blocked >= NOTABLE * whole and blocked:
        found.append(f"{part(blocked / whole)} of what lines waited at memory slices was for the tracker")
        figures["blocked_by_tracker"] = blocked / whole
    held = case.contention.window_stall_ns
    if held >= SMALL * case.total and held:
        found.append(f"stores were held for {ns(held)} because their chunk was not live yet (chunk_window)")
        figures["held_ns"] = held
    if not found:
        return None
    text = "; ".join(found)
    return Finding(rule="tracker", text=f"In the T3 hardware {text}.", figures=figures)


def threshold(case: Case) -> Finding | None:
    """MCA held communication back, and some of it came after the GEMM for that or another reason."""
    clocks = waits(case.contention.communication)
    whole, held = sum(clocks.values()), clocks["blocked_by_threshold_cycles"]
    tail = case.exposed_reduce_scatter
    if not case.overlapped or not held or held < NOTABLE * whole or tail < SMALL * case.total:
        return None
    return Finding(
        rule="threshold",
        text=f"MCA's threshold made up {part(held / whole)} of what communication waited at memory slices, and "
        f"{ns(tail)} of the reduce-scatter came after the GEMM: other thresholds ([arbiter]) may be better here.",
        figures={"held": held / whole, "behind_ns": tail},
    )


def arbitration(case: Case) -> Finding | None:
    """Under t3-mca the streams took turns, as under t3."""
    if case.record.policy != "t3-mca" or case.contention.compute_first is not False:
        return None
    if case.record.workload.tp == 2:
        why = "with two GPUs all communication is stores of the neighbour's GEMM, whose CUs would wait"
    else:
        why = "the link is not predicted to be done with the reduce-scatter so early that communication can wait"
    return Finding(
        rule="arbitration",
        text=f'The arbiter let compute and communication take turns, as under t3: {why} (arbiter.mca = "backlog").',
        figures={},
    )


def limit(case: Case) -> Finding | None:
    """The largest of compute, waiting for memory, the link where nothing hides it, and the rest; what twice the rate
    of each could save, as if nothing else took its place.

    A reduce-scatter that comes behind the GEMM counts as the link's if the link is its bound.
    """
    scatter, gather = case.link_time()
    time = case.record.time_ns
    exposed = case.exposed_reduce_scatter
    on_link = min(gather, time.all_gather)
    if not case.overlapped:
        on_link += min(scatter, exposed)
    elif case.link_shares()[0] >= LINK_BOUND:
        on_link += exposed
    amounts = {"compute": time.gemm - case.stall, "memory": case.stall, "link": on_link}
    amounts["rest"] = max(0.0, case.total - sum(amounts.values()))
    gains = {name: amounts[name] / 2 for name in ("compute", "memory", "link")}
    if case.overlapped:
        # All of the reduce-scatter is sooner over with a faster link, as far as it is exposed; and whatever the GEMM
        # takes, both collectives remain.
        gains["link"] = min(exposed, scatter / 2) + min(gather, time.all_gather) / 2
        room = max(0.0, case.total - scatter - time.all_gather)
        gains |= {name: min(gains[name], room) for name in ("compute", "memory")}
    most = max(amounts, key=lambda name: amounts[name])
    titles = {"compute": "compute", "memory": "memory", "link": "the link", "rest": "none of the three alone"}
    shares = {name: amount / case.total for name, amount in amounts.items()}
    text = (
        f"In sum compute takes {part(shares['compute'])}, waiting for memory {part(shares['memory'])}, the link "
        f"{part(shares['link'])}, all else (launches, latencies) {part(shares['rest'])}: the limit is {titles[most]}. "
        f"Twice as fast, compute would save at most about {_saved(case, gains['compute'])}, memory "
        f"{_saved(case, gains['memory'])}, the link {_saved(case, gains['link'])}."
    )
    figures = {f"{name}_ns": amount for name, amount in amounts.items()}
    figures |= {f"{name}_gain_ns": gain for name, gain in gains.items()}
    return Finding(
        rule="limit", text=text, figures=figures | {f"{name}_share": share for name, share in shares.items()}
    )


def _saved(case: Case, time: float) -> str:
    return f"{ns(time)} ({part(time / case.total)})"


ANY: tuple[Rule, ...] = (computed, parts_of_the_time)
"""Rules for every record that is right."""
SIMULATED: tuple[Rule, ...] = (
    gemm_bound, gemm_stretch, memory_waits, row_conflicts, link, overlap, bound, arbitration, threshold, tracker, limit,
)  # fmt: skip
"""Rules for records of simulated policies."""


def findings(case: Case) -> list[Finding]:
    """What the rules find, in their order; of a wrong result only that it is."""
    if wrong := wrong_result(case):
        return [wrong]
    rules = ANY if case.record.contention is None else (*ANY, *SIMULATED)
    return [found for rule in rules if (found := rule(case)) is not None]
