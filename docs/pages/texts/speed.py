"""The words of the page of the simulation's speed."""

HEAD = """\
# Speed of the simulation

What a run costs, and where the time goes. Seconds belong to a computer and its load: these are of
{computer}, a virtual machine, on which little else ran. Ratios carry over better.
The page is written by `python -m docs.pages speed` from `docs/results/speed`, which

    t3 bench --ring --out docs/results/speed/ring
    t3 bench --scaling{settings} --out docs/results/speed/scaling

made. The workload is FC-2 of T-NLG on 8 GPUs under t3-mca, on compiled RTL and one thread, one GPU mirrored; *the ring*
is all eight GPUs.
"""

VERDICT = """\
{missed} of {count} figures of `t3 bench` miss their target, and {late} of {start} of `make run`.
"""

CONTENTION = """\
The ratio of wall times with contention observed and without is {of}. {spread}
"""
ONE_PAIR = "Another pair of runs gives another one."
PAIRS = "The pairs differ by {spread:.2f}: a difference from 1 of that size says nothing."

BEFORE = """\
The last commit before bursts (c3d0ee9, program 0.1.0, hardware 2.0.0: a request is one line) beside one of hardware
4.2.4 (9ac9881), the whole command in turns on the same machine, with all parts built and kernels compiled before. The
ratio is that of the means.

| options of `t3 run --model t-nlg --sublayer fc2 --tp 8 --policy t3-mca` | c3d0ee9, s | 9ac9881, s | ratio |
|---|---:|---:|---:|
| `--mirror --threads 1` | 28.7, 35.9, 29.5, 33.7 | 22.4, 24.5, 22.4, 24.7 | 1.4 |
| `--threads 2` | 133.0 | 89.1, 100.3 | 1.4 |

The virtual machine's own speed changes within minutes: half an hour later the ring took 74.0 and 75.3 s on two threads,
and 135.3 s on one, which is 1.81 times as much and would meet that target. On two cores of an AMD EPYC, with hardware
4.2.0, the ratios of c3d0ee9 to that program were 1.43 and 1.56: 20.3 to 14.2 s, and 89.3 to 57.7 and 56.8 s.
"""

START = """\
`make run` on a clone of {commit}, with nothing in any cache, on {computer}, timed by hand
(`docs/results/speed/make-run.json`). It makes the environment, compiles simulator and hardware, simulates three
policies in RTL, on one mirrored GPU for the first picture and then on all eight, and writes a report.
"""

WHY = """\
Where the {all:.1f} s of one mirrored GPU go, beside the target of {limit:.0f} s: the RTL's evaluations take {rtl:.1f}
s in loops with random inputs. With the golden model instead of the RTL the run takes {golden:.1f} s. The run's
{lines:.1f} million lines would take the DRAM model {least:.1f} to {most:.1f} s at its rates on validation traces,
{slow:.1f} to {fast:.1f} million a second.
"""

EVENTS = """\
A part is evaluated in cycles in which it has something to do ([architecture](../architecture.md)). What an event costs,
by counts of the mirrored run:
"""

PARTS = """\
By part, with the time that so many evaluations take in a loop of their own:
"""

CHARTED = """\
One mirrored GPU, on one thread: real time, and bytes that the state of a GPU takes in memory, without that of compiled
parts. A burst is up to eight lines of 32 bytes. With more GPUs the GEMM of each is smaller, and the ring exchanges
more, smaller chunks.

![Real time and state of one simulated GPU, over GPUs of the ring and over tokens](speed/scaling/scaling.png)
"""

MARKS = """\
65,536 tokens need more tile marks than the {preset:,} of the preset; these runs had {marks:,}.
"""

LEFT_OUT = """\
The hardware of this machine refuses the sizes below, each with what it would need.
"""
