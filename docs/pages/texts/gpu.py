"""The words of the page of the model beside GPUs."""

HEAD = """\
# The model beside GPUs

`t3 validate gpu` timed the GEMMs of the paper's sublayers on two products, alone and beside copies to and from the
host, and computed the same GEMMs with the machine files of these products, as they were before the measurement. Nothing
was fitted. How it measures, and what stands for the copies in the model, is in [the guide](../guides/validate-gpu.md).
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
Beside copies: the rate that they had, by how much they lengthened the GEMM, and by how much they do in the model.
"""
