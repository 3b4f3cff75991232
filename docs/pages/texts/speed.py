"""The words of the page of the simulation's speed."""

HEAD = """\
# Speed of the simulation

What a run costs, and where the time goes. Seconds belong to a computer and its load: these are of {computer}, a virtual
machine, and little beside the run. Ratios carry over better. The page is written by
`python -m docs.pages speed` from `docs/results/speed`, which

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
The last commit before bursts (c3d0ee9, program 0.1.0, hardware 2.0.0: a request is one line) beside one of program
1.0.0rc1 and hardware 4.2.0 (1ef4bf0), the whole command in turns on the same idle machine, all parts built and kernels
compiled before:

| command | c3d0ee9, s | 1ef4bf0, s | ratio |
|---|---:|---:|---:|
| `t3 run --model t-nlg --sublayer fc2 --tp 8 --policy t3-mca --mirror --threads 1` | 20.3 | 14.2, 14.2 | 1.43 |
| `t3 run --model t-nlg --sublayer fc2 --tp 8 --policy t3-mca --threads 2` | 89.3 | 57.7, 56.8 | 1.56 |
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
lines of 32 bytes. With more GPUs the GEMM of each is smaller, and the ring exchanges more, smaller chunks.

![Real time and state of one simulated GPU, over GPUs of the ring and over tokens](speed/scaling/scaling.png)
"""

LEFT_OUT = """\
The hardware of this machine refuses the sizes below. With room for them (`--set hardware.chunk_window=8 --set
hardware.tile_marks=32768`) the command measures them, too.
"""
