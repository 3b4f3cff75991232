"""The words of the page of the simulation's speed."""

HEAD = """\
# Speed of the simulation

What a run costs, and where the time goes. Seconds belong to a computer and its load: these are of
{computer}, a virtual machine, and little beside the run. Ratios carry over better.
The page is written by `python -m docs.pages speed` from `docs/results/speed`, which

    t3 bench --ring --out docs/results/speed/ring
    t3 bench --scaling{settings} --out docs/results/speed/scaling

made. The workload is FC-2 of T-NLG on 8 GPUs under t3-mca, on compiled RTL and one thread, one GPU mirrored; *the ring*
is all eight GPUs.
"""

CONTENTION = """\
The wall time with contention observed over that without is {of}. A ratio within a few percent of 1, above or below it,
is noise: another pair of runs gives another one.
"""

BEFORE = """\
The last commit before bursts (c3d0ee9, program 0.1.0, hardware 2.0.0: a request is one line) beside today's (9ac9881,
hardware 4.2.4), the whole command in turns on the same idle machine, all parts built and kernels compiled before:

| `t3 run --model t-nlg --sublayer fc2 --tp 8 --policy t3-mca` and | c3d0ee9, s | today, s | ratio |
|---|---:|---:|---:|
| `--mirror --threads 1` | 28.7, 35.9, 29.5, 33.7 | 22.4, 24.5, 22.4, 24.7 | 1.34 |
| `--threads 2` | 133.0 | 89.1, 100.3 | 1.40 |

The virtual machine's own speed changes from minute to minute: half an hour later the ring took 74.0 and 75.3 s on two
threads and 135.3 s on one, a ratio of 1.81. On two cores of an AMD EPYC, with hardware 4.2.0, the ratios were 1.43
and 1.56: 14.2 of 20.3 s, and 57.7 and 56.8 of 89.3 s.
"""

START = """\
`make run` on a clone, with nothing in any cache, on the same machine, by hand. It makes the environment, compiles
simulator and hardware, simulates three policies in RTL, on one mirrored GPU for the first picture and then on all
eight, and writes a report.

| what | measured | target |  |
|---|---:|---:|---|
| first picture of `make run` on a fresh clone, s | 182 | at most 120 | **missed** |
| `make run` on a fresh clone, s | 379 | at most 240 | **missed** |
| `make run` again, s | 239 | at most 100 | **missed** |

Nearly all of the second run is simulation.
"""

WHY = """\
What keeps one mirrored GPU, {all:.1f} s, from its target of {limit:.0f} s: the RTL's evaluations alone, in a loop of
their own, take {rtl:.1f} s. The DRAM model handles {lines:.1f} million lines of 32 bytes, at {slow:.1f} to {fast:.1f}
million a second in the rows of the table: {least:.1f} to {most:.1f} s. With the golden model instead of the RTL the run
takes {golden:.1f} s.
"""

EVENTS = """\
A part is evaluated in cycles in which it has something to do ([architecture](../architecture.md)). What an event costs,
by counts of the mirrored run:
"""

PARTS = """\
By part, with the time that so many evaluations take in a loop of their own:
"""

CHARTED = """\
One mirrored GPU, on one thread: real time, and bytes that the state of a GPU takes in memory. A burst is up to eight
lines of 32 bytes. With more GPUs the GEMM of each is smaller, and the ring exchanges more, smaller chunks. 64 K tokens
need a mark for each of more tiles than the hardware has as it is; so here it has 262,144 marks, not 16,384.

![Real time and state of one simulated GPU, over GPUs of the ring and over tokens](speed/scaling/scaling.png)
"""

LEFT_OUT = """\
The hardware of this machine refuses the sizes below. With room for them (`--set hardware.tile_marks=262144`) the
command measures them, too.
"""
