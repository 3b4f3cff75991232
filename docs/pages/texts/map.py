"""The words of the page of the map."""

HEAD = """\
# Where arbitration pays: what was measured

[`t3 map`](../guides/map.md) on machines whose records are beside this page. *GEMM* is its time over the sequential
GEMM's; *gain* is the time of the sublayer under t3 over that under t3-mca; the other speedups are over `sequential`.
The bound is `ideal-overlap`: the sequential run's max(GEMM, reduce-scatter) + all-gather. Near-memory reduction spares
the reduce-scatter its reads, so a sublayer whose reduce-scatter is the longer part may be below it. Waits of CUs are in
percent of the sequential GEMM's time, under sequential → t3 → t3-mca. Waits of streams are memory clocks at the memory
slices for each line, under t3 → t3-mca.

`make map` measures all of it again and writes this page: hours of one core, in runs of seconds. Finished runs are kept,
so that the same command goes on where it was interrupted; `--jobs` or `--scheduler` of each command shares it among
cores or computers.
"""

TAKE_HOME = """\
When arbitration is needed and when it is not, by this project's rule; how near the map comes to the published
speedups; and, for comparison, what the paper's rule does. A pair is a GEMM on a machine; each sentence names the
machines that its pairs are of. `paper-accelsim` has the paper's rule, so the first two sentences are not about it.
"""

GAINS = """\
The machine as it is, with this project's rule (`arbiter.mca = backlog`), on sublayers of the paper's models and on
random GEMMs: is t3-mca ever slower than t3, and is it within 2 % of the bound?

A GEMM of few stages cannot reach the bound, which lets GEMM and reduce-scatter overlap completely: the reduce-scatter
has nothing to send before the first stage is over, and sends that of the last one after the GEMM. A pipeline of the
GEMM's stages takes max(GEMM, reduce-scatter) + min(GEMM, reduce-scatter) / stages + all-gather; the tables have both.
What is left is a GEMM that takes longer: the last columns say how much longer its CUs wait for loads and stores under
t3-mca than in the sequential run, in percent of the sequential GEMM. On `paper` at TP 32 and 64 that is most of what is
left; at TP 32 by the order in which DRAM serves ([what else costs](#what-else-costs), [published
results](validation.md#published-results)), which no choice between the two streams before it changes; at TP 64 the
cause was not measured. Where the rule lets nobody go first, t3-mca is t3. Worst first; measured by
"""

HOLD_OUT = """\
No rule was chosen by the {count} random GEMMs: they were drawn after the rule was last changed. Of them: {verdict}
"""

NOISE = """\
How much of this means nothing: every run was made {launches} times, the GEMM launched some ns later in each, which is a
ten-thousandth of its time. Half of the {count} GEMMs that arbitration changes then gain by {middle} % (standard
deviation of one launch) more or less, {where} by {most} %: which line a DRAM row closes for is chaotic. A gain or loss
of that size in one run is none.
"""

CANDIDATES = """\
What other rules gain, on the paper's sublayers at TP 8 and 16, from which the rule was chosen. `base` is the rule as it
is. Gain in percent; measured by
"""

PAIRS = """\
Every pair of changes of different axes, on one GEMM: the {count} where the sublayer gains most by arbitration, and
where it gains least. The picture has all, by what the GEMM alone gains. Measured by
"""

COSTS = """\
GEMMs that are more than 2 % above their bound: how far, in percent of it; and by how many points that changes under
t3-mca with one cost taken away, beside the bound of that machine; measured by
"""

MOST = """\
Most of it goes, in the mean of these GEMMs, with {changes}.
"""
