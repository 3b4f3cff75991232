"""The words of the page of the model beside GPUs."""

HEAD = """\
# The model beside GPUs

`t3 validate gpu` timed the GEMMs of the paper's sublayers on two products, alone and beside copies to and from the
host, and computed the same GEMMs with the product's machine file, as it was before the measurement. Nothing was
fitted. How it measures, and what stands for the copies in the model, is in
[the guide](../guides/validate-gpu.md).
Written by `python -m docs.pages gpu` from `docs/results/gpu`, for each GPU by

    t3 validate gpu --samples 15 -o docs/results/gpu/h100
    t3 validate gpu --from docs/results/gpu/h100/gpu.json --machine h100-like -o docs/results/gpu/h100

of which the second needs no GPU.
"""

ALONE = """\
*Clock* is that of the CUs while they multiply. *Of the peak* is the rate over that of all matrix units at that clock.
The model's time is given at the clock of the machine file, and at that of the GPU.
"""

BESIDE = """\
Beside copies: the rate that they had, by how much they lengthened the GEMM, and by how much they would in the model.
"""

FINDINGS = """\
## What it means

- *The GEMM.* At the clock that the GPU had, the model's GEMM is 2 to 12 % short of the H100's and 13 to 20 % of the
  H200's where K / TP is a multiple of 8, with no constant chosen for it. At the clock of the data sheet's rate it is 26
  and 31 % short in the median: these GEMMs ran at 1.3 to 1.6 GHz instead of 1.83, as the driver lowers the clock at the
  limit of power. The presets keep the public clock; `--set gpu.clock_mhz=1400` is nearer to a sustained GEMM.
- *The two cards.* They have the same CUs, and take the same time for a GEMM (the H200 3 % less to 4 % more), although
  the driver said that the H200's clock was 5 to 12 % higher. So for each clock the H200 multiplied less, which the
  model, with the same CUs and a faster memory, does not: there it is further off. Why is not known. If the mean clock
  of a sample is not that in which a GEMM runs, this comparison is worth no more than that difference.
- *Shapes.* T-NLG's OP and IP have K / TP of 266, 532, 798 and 1596. Rows of that many FP16 numbers do not begin at
  multiples of 16 bytes, and the library's kernels for such operands reach 14 to 20 % of the peak, at 1.98 GHz. The
  model has no such kernels.
- *Contention.* A host's bus brings a hundredth of the memory's rate each way. Where K / TP is a multiple of 8, the
  slowdown by it, up to 4 % on the H100 and 3 % on the H200, and that of the model in proportion to the rate have the
  same size, and OP, with the least work for each byte, is among those that lose most in both. T3's own traffic is ten
  times as much and comes from other GPUs; this measurement does not reach it. Where T3's reduce-scatter is longer than
  the GEMM, stores wait for the link, and the model's proportion has that in it.
- *Small sample.* One card of each, one library, one hour. In both records short GEMMs were more than 512 in a sample;
  the driver queued about so many, and the copies beside them began late. Their slowdown is diluted, as the rate is.
  (`t3 validate gpu` takes 500 at most now.) The driver names a cache of 60 MiB for the H200; its preset has the H100's.
"""
