"""The validation page: ``python -m docs.pages validation`` measures again and writes ``docs/results/validation.md``.

The published results beside ours come from the folder of a finished ``t3 reproduce -o docs/results/reproduction``.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from t3sim.inputs.machine.files import load_machine
from t3sim.validation import hbm
from t3sim.validation.hbm import validate

from docs.pages import RESULTS
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.ring_model import ASTRA_REGRESSION, ASTRA_REGRESSION_NS, pass_ns
from docs.pages.texts.validation import DIFFERENCES, HEAD, NOT_VALIDATED
from docs.pages.validated.checks import (
    LINK_SETTINGS,
    SHAPES,
    SIMULATED,
    TOY,
    TOY_GPUS,
    closed_form_rows,
    path_ns,
    ring_pass,
    saving,
    toy_run,
)
from docs.pages.validated.reproduced import published_section

PAGE = RESULTS / "validation.md"
KEPT = {"paper": PAGE.parent / "reproduction", "paper-accelsim": PAGE.parent / "reproduction-accelsim"}
"""Machine -> its folder of ``t3 reproduce`` that is kept beside the page."""
KEPT_SENSITIVITY = PAGE.parent / "sensitivity" / "sensitivity.json"
"""The file of ``t3 sweep --assumptions`` that is kept beside the page."""
REFERENCE = Path(hbm.__file__).with_name("reference")
TOLERANCE = 0.03
"""Largest relative error of the HBM model against a reference trace."""
MIB = 1 << 20
PAPER_DEGREES = (8, 16, 32, 64)


def closed_forms_section() -> str:
    """Bytes by cause, all policies."""
    rows = [
        (row.policy, f"`{row.cause}`", f"{row.expected:,}", f"{row.measured:,}", row.measured - row.expected)
        for row in closed_form_rows()
    ]
    return paragraph(
        f"Bytes by cause, summed over a ring of {TOY_GPUS} GPUs of the `toy` machine that reduces an output of "
        f"{TOY[0]} x {TOY[1]} FP16 elements, all GPUs simulated. The closed forms are in "
        "`sim/t3sim/collective/ring.py`; every run checks them, of any size, and fails if one does not hold."
    ) + table(("policy", "cause", "closed form:", "measured:", "difference:"), rows)


def hbm_section() -> str:
    """Every reference trace, with and without refresh."""
    files = REFERENCE / "hbm2_traces.npz", REFERENCE / "hbm2_reference.json"
    still, refreshed = (validate(*files, TOLERANCE, refresh) for refresh in (False, True))
    rows = [
        (
            f"`{a.name}`", f"{a.requests:,}", f"{a.reference_cycles:,}", f"{a.cycles:,}", f"{a.error:+.2%}",
            f"{b.reference_cycles:,}", f"{b.cycles:,}", f"{b.error:+.2%}",
        )
        for a, b in zip(still, refreshed, strict=True)
    ]  # fmt: skip
    worst = max(abs(row.error) for row in (*still, *refreshed))
    heads = (
        "trace", "requests:", "reference:", "model:", "error:", "reference, refresh:", "model, refresh:", "error:",
    )  # fmt: skip
    text = paragraph(
        "Cycles in which one pseudo-channel accepts a trace: Ramulator 2.1 (CMU-SAFARI/ramulator2, commit c5b1c3a; "
        "HBM2_2Gb, HBM2_2000Mbps, FR-FCFS, open rows, 32 + 32 entries) against the model, replayed with the same "
        f"queues. Bound: {TOLERANCE:.0%}. Largest error: {worst:.2%}. `t3 validate hbm` repeats this, also with "
        "other traces. The `aligned` traces are eight streams one above the other, and what `hbm.bank_hash = row-xor` "
        "makes of the same lines."
    )
    off = "; ".join(
        f"{row.error:+.2%}{kind}"
        for rows_of, kind in ((still, ""), (refreshed, " with refresh"))
        for row in rows_of
        if row.name == "rw_random_75"
    )
    why = paragraph(
        f"Why `rw_random_75` is off ({off}): the reference answers a read of a line that waits to be written from its "
        "write buffer; in the model it waits for the write, and then reads the memory."
    )
    others = paragraph(
        "Other timing sets than Ramulator's have no such reference. The commands of `paper-accelsim` are checked "
        "against the rules of GPGPU-Sim, worked out by hand (`tests/sim/dram/test_public_timing.py`)."
    )
    return f"{text}{table(heads, rows)}\n{why}{others.rstrip()}\n"


def link_section() -> str:
    """One packet, a stream of packets, and rings, against latency and rate."""
    machine = load_machine("paper", LINK_SETTINGS)
    one, many = ring_pass(2, 1), ring_pass(2, 1024)
    far, slow = ring_pass(2, 1, latency_ns=1000), ring_pass(2, 1024, gb_s=25.0)
    bare = ring_pass(2, 1024, header_bytes=0)
    packet = (many.link_ns - one.link_ns) / 1023
    changes = [
        ("one packet, latency 1000 instead of 500 ns", far, one),
        ("1024 packets instead of one", many, one),
        ("1024 packets at 25 instead of 50 GB/s", slow, many),
        ("1024 packets with headers of 16 instead of 0 bytes", many, bare),
    ]
    differences = [
        (name, f"{a.link_ns - b.link_ns:,.0f}", f"{a.all_gather_ns - b.all_gather_ns:,.0f}") for name, a, b in changes
    ]
    rings = [ring_pass(gpus, rows) for gpus in (2, 4, 8) for rows in (16, 256, 1024)]
    rows = [
        (
            item.gpus, item.chunk_bytes // 1024, f"{item.link_ns:,.0f}", f"{item.all_gather_ns:,.0f}",
            f"{item.rest_per_step_ns:,.0f}", f"{item.all_gather_ns / item.link_ns - 1:.1%}",
            f"{item.reduce_scatter_ns:,.0f}", f"{item.reduce_scatter_ns / item.link_ns - 1:.1%}",
        )
        for item in rings
    ]  # fmt: skip
    heads = (
        "GPUs:", "chunk, KiB:", "links alone:", "all-gather:", "rest per step:", "over links:", "reduce-scatter:",
        "over links:",
    )  # fmt: skip
    parts = [
        paragraph(
            f"The link of the engine in runs of the `paper` machine with {_settings(LINK_SETTINGS)}, so that memory "
            "is 20 times as fast as the link and every row of a chunk is one packet. All times are in ns."
        ),
        paragraph(
            "*Packets.* An all-gather of two GPUs sends one chunk each way. A packet of 256 bytes takes "
            f"{packet:.2f} ns, with its header. What a change must add by the formula, latency + packets x (bytes + "
            "header) / rate, and what it adds (a single packet finds its row closed, the last of many an open one, "
            "hence a few ns less):"
        ),
        table(("change", "formula:", "measured:"), differences) + "\n",
        paragraph(
            "*Rings.* All N - 1 steps on links alone take (N - 1) (latency + chunk with headers / rate). The rest "
            "of a step is the way from memory to the link and back: the kernel learns of what has arrived, the "
            "crossbar, a read and a write that each close and open a row. In an idle system that is "
            f"{path_ns(machine):,.0f} ns; the first step of a ring need not wait for an arrival, so two GPUs take "
            "less, and reads that meet writes in their bank take more. It is paid once per step, whatever the size "
            "of the chunk. The reduce-scatter of `sequential` ends with the reduction of the owned chunk, which no "
            "link hides."
        ),
        table(heads, rows),
    ]
    return "".join(parts)


def ring_model_section() -> str:
    """ASTRA-sim's published regression."""
    model = ASTRA_REGRESSION
    rows = [
        (f"messages: {model.splits} splits x 14 x (500 ns + 32 KiB / rate)", model.network_ns),
        (f"local memory at {model.local_memory_gb_s:g} GB/s: {model.splits} x 7 x 3 x 32 KiB", model.memory_ns),
        (f"endpoint delay: {model.splits} x 15 x {model.endpoint_delay_ns} ns", model.endpoint_ns),
        ("all-reduce", model.all_reduce_ns),
    ]
    return paragraph(
        "ASTRA-sim's regression test all-reduces 1 MiB on a ring of 8 NPUs with 50 GB/s and 500 ns. Its cost model, "
        f"written down in `docs/pages/texts/ring_model.py`, gives {model.all_reduce_ns:,} ns; the test expects "
        f"{ASTRA_REGRESSION_NS:,} ns."
    ) + table(("part of the model", "ns:"), ((name, f"{value:,}") for name, value in rows))


def same_collective_section() -> str:
    """Our time for ASTRA-sim's case, and the way from its number to ours."""
    model, ours = ASTRA_REGRESSION, ring_pass(8, 512)
    whole = model.without_splits()
    header = load_machine("paper").link.header_bytes
    chunk = MIB // 8
    plain = 2 * pass_ns(gpus=8, chunk_bytes=chunk, gb_s=model.gb_s, latency_ns=model.latency_ns)
    rows = [
        ("ASTRA-sim's model", model.all_reduce_ns),
        ("all data at once: one split pays the latency a quarter as often", whole.all_reduce_ns),
        ("memory beside the link, not after it, and no endpoint delay", whole.network_ns),
        ("50 x 10^9 bytes per second, not 50 x 2^30", plain),
        (f"a header of {header} bytes for every 256", 2 * ours.link_ns),
        ("all-gather as simulated: memory, crossbar and kernel, 7 times", ours.link_ns + ours.all_gather_ns),
        (
            "reduce-scatter as simulated: the same, with two reads, and the owned chunk reduced at the end",
            ours.reduce_scatter_ns + ours.all_gather_ns,
        ),
    ]
    text = paragraph(
        f"The same collective in the engine (an output of 512 x 1024 FP16 elements, {_settings(LINK_SETTINGS)}): "
        f"reduce-scatter {ours.reduce_scatter_ns:,.0f} ns, all-gather {ours.all_gather_ns:,.0f} ns. From ASTRA-sim's "
        "number to ours, one change after the other:"
    )
    return text + table(("all-reduce of 1 MiB on 8 GPUs", "ns:"), ((name, f"{value:,.0f}") for name, value in rows))


def mirror_section() -> str:
    """One mirrored GPU against the whole ring, on a small case."""
    rows = []
    for policy in SIMULATED:
        ring, mirror = (toy_run(policy, mirror).time_ns for mirror in (False, True))
        rows.append((policy, *(_pair(getattr(ring, name), getattr(mirror, name)) for name in ("gemm", "total"))))
    return paragraph(
        f"The GEMM of the closed forms above, with equal chunks: the whole ring of {TOY_GPUS} GPUs, one GPU that is "
        "its own neighbour, and the difference. Times are in ns, of the slowest GPU. In a ring the GPUs differ, "
        "because each makes its chunks in another order and meets other rows of memory; a mirrored GPU sees its own "
        "traffic."
    ) + table(("policy", "GEMM: ring, mirror:", "total: ring, mirror:"), rows)


def savings_section() -> str:
    """DRAM traffic of shapes around the one that saves most: what hangs on the shape, and what does not."""
    found = {shape: saving(*shape) for shape in SHAPES}
    rows = [
        (
            f"{m} x {n} x {k}" + (f": {SHAPES[m, n, k, tp]}" if SHAPES[m, n, k, tp] else ""), tp,
            f"{each.without_gemm_reads - 1:+.1%}", f"{each.gemm_reads:.2f}x", f"{each.all_bytes - 1:+.1%}",
        )
        for (m, n, k, tp), each in found.items()
    ]  # fmt: skip
    texts = (
        f"{min(each.all_bytes for (*_, its), each in found.items() if its == tp) - 1:.1%} at TP {tp}"
        + ("" if tp in PAPER_DEGREES else ", which is no degree of the paper")
        for tp in sorted({tp for *_, tp in found}, reverse=True)
    )
    text = paragraph(
        "The paper's largest saving of DRAM traffic, -36 %, is reached by no sublayer of the paper here. The closed "
        "forms of the "
        "ring save the same for every shape, by the degree of tensor parallelism. The GEMM's reads save the rest, if "
        "the inputs fit the cache beside an output that passes it by, and not beside one that does not. Measured, "
        f"with one GPU mirrored: at most {', and '.join(texts)}."
    )
    heads = (
        "GEMM: M x N x K of a GPU",
        "TP:",
        "bytes without the GEMM's reads:",
        "GEMM reads, fewer by:",
        "all bytes:",
    )
    return text + table(heads, rows)


def _pair(ring: float, mirror: float) -> str:
    return f"{ring:,.0f}, {mirror:,.0f} ({mirror / ring - 1:+.2%})"


def _settings(settings: Mapping[str, object]) -> str:
    texts = ((key, json.dumps(value, separators=(",", ":"))) for key, value in settings.items())
    return ", ".join(f"`{key}={text}`" for key, text in texts)


SECTIONS: dict[str, Callable[[], str]] = {
    "Closed forms of the traffic": closed_forms_section,
    "Memory against a cycle-level simulator": hbm_section,
    "The link against its formula": link_section,
    "ASTRA-sim's ring": ring_model_section,
    "The same collective here": same_collective_section,
    "One mirrored GPU against the whole ring": mirror_section,
    "The largest saving of traffic": savings_section,
    "What differs from the paper, and why": lambda: DIFFERENCES,
    "What was not validated": lambda: NOT_VALIDATED,
}
"""Title of a section -> its text."""
CHEAP = tuple(title for title in SECTIONS if title.startswith(("Memory", "ASTRA", "What")))
"""Sections that need no co-simulation; a test holds the page against them."""
PUBLISHED = "Published results"


def page() -> str:
    """The text of :data:`PAGE`; takes minutes. Raises ValueError for files that are not what they should be."""
    results = published_section(KEPT, KEPT_SENSITIVITY, PAGE.parent)
    texts = {title: section() for title, section in SECTIONS.items()}
    order = [title for title in texts if not title.startswith("What")]
    parts = {title: texts[title] for title in order} | {PUBLISHED: results} | texts
    return HEAD + "".join(f"\n## {title}\n\n{text}" for title, text in parts.items())
