"""What the validation page says that no measurement can say."""

HEAD = """\
# Validation

What was held against what, and how far apart they are. `python -m docs.pages validation` measures this page again
and writes it, but for the published results, which are from a kept run of `t3 reproduce`. Besides, the tests hold
every part of the T3 hardware against its golden model cycle by cycle, its arithmetic against NumPy, ml_dtypes and
[every pair of FP16 numbers](../guides/validate-alu.md), its Verilog in two simulators
([testbenches](../guides/testbenches.md)), and every run of a whole ring that reduces near the memory compares the
reduced output, in the lines that carry data, with NumPy bit by bit. Mirrored runs carry no data.
"""

DIFFERENCES = """\
The paper's simulator and hardware are not published. Where its text leaves a choice, this is ours, and why:

- **Workgroups** start when a compute unit is free (`gpu.dispatch = free`), and end when the memory system has taken
  their stores (`gpu.store_release = accepted`), because GPUs do so. Both are settings. In lockstep (`lockstep` of
  [the map](map-results.md)) stages end in larger bursts: the speedup of T-NLG FC-2 at TP 8 under t3 falls from 1.24 to
  1.16, as low as is published, but t3-mca is 0.7 % faster than t3 there, not the published 8.
- **The GEMM's kernel** has a tile and an order of tiles by a rule of shape and machine, not the paper's (unnamed)
  library kernels.
- **The baseline** is a ring in bulk steps, which gives the published 7 % and 3 % of near-memory reduction. A ring
  that forwards slices, as today's libraries do, is `sequential-pipelined`, and is faster.
- **DRAM** interleaves consecutive lines over bank groups, so that near-memory updates of twice tCCD_L run at full
  rate; in one bank group they would take twice as long. The timings are Ramulator's, since the paper gives none.
- **The queue** of a memory controller is shared by both streams (64 lines), and a threshold of 5, 10, 30 or none
  applies by the first stage's use of the data bus. The paper names the set of thresholds, not the rule, the depth or
  the starvation limit.
- **The tracker** never loses an update. What the paper leaves open (a full set, two uses of one buffer, edges of an
  output, other jobs) is decided in [the contract](../hardware/rules.md). A chunk that does not fit fires as a whole,
  later.
- **Clearing** the output before the launch, which updates need, is reported beside the time, not in it.
- **More than 8 GPUs** are simulated as one that is its own neighbour, as the paper did; 8 and fewer as a whole ring.
- **Tokens per batch**, and hidden size and layers of the two future models, are assumed: the paper gives neither.
- **Whole models** take their other operators from a [roofline](../guides/end-to-end.md), because no measured ones are
  published.

The paper does not fit together in one place, which is therefore reported and not counted: its gain of `t3-mca` over
`t3` (1.13) is not the quotient of its own gains (1.30 / 1.20 = 1.08). A second place is one only with this project's
matrix rate: an ideal overlap of `op` at TP 32 then gains 1.39 (palm) and 1.43 (mt-nlg), more than the largest published
speedup there (1.35).
"""

NOT_VALIDATED = """\
- **No GPU of the paper's.** The tile that the GEMM uses, its time, the cache's hit rate, the latencies of cache and
  crossbar, and the time of a launch are assumptions with reasons ([constants](../reference/constants.md)). The machine
  of the paper is no product. The GEMMs of an H100 and of an H200 were measured, and are beside those of the same
  models with their public figures: [the model beside GPUs](gpu.md).
- **No T3.** Neither simulator nor hardware of the paper is published, so there is no reference for tracker, trigger
  and arbitration but the paper's text and its figures.
- **Memory.** One pseudo-channel, 18 traces, one simulator, and that with split queues. Two traces have the bank hash
  in their addresses. There is no reference for: the shared queue that the presets use, near-memory updates and other
  substrates among other accesses, the address map over 64 channels, timing sets other than Ramulator's, and silicon.
  Of `paper-accelsim` a dozen short sequences of commands were worked out by hand from the public simulator's rules; it
  was not run beside. No HBM on sale updates concurrently with accesses as T3 assumes.
- **Links.** The model meets its own formula. Switches and other traffic are not modelled, errors are only those that
  `t3 faults` makes, and no link was measured.
- **Collective kernels.** Near the link's rate for large chunks, as real ones are, but not compared with measured
  times of RCCL or NCCL; small sizes, where protocols differ most, are the least certain.
- **Arbitration.** The rule from first-stage use to threshold, the starvation limit and its burst are assumed; only
  their effect is measured.
- **Mirror mode** at TP 16 and more is held against the whole ring on small cases and at TP 8 only.
- **Compiled hardware.** The whole unit is simulated in its small configuration; the paper's configuration part by part,
  which the tests show to be the same machine. Gates are counted ([area](../reference/area.md)); timing closure, power
  and energy are not known.
- **Whole models.** Rooflines are not measurements; the optimizer, embedding and loss are the simplest that is
  defensible.
- **Outside this project's claims:** the generation phase, other types than FP16 in the co-simulation, direct
  reduce-scatter and all-to-all, several nodes, GPUs that differ (they can be simulated; there is nothing to compare
  with).
"""
