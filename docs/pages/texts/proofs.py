"""The words of the page on proofs."""

from docs.pages.shared.markdown import paragraph

_COMMANDS = """\
```
t3 prove --list                # what is proven
t3 prove --quick               # the proofs that take seconds, each at one size; part of make test
t3 prove                       # all, at all sizes: half an hour on two cores
t3 prove tracker-bank          # those of one component, or one by its name
t3 prove -o docs/results/proofs        # and keep the results from which this page is made
```

"""

HEAD = (
    "# Proofs\n\n"
    + paragraph(
        "What must hold for every configuration is not only tested but proven, on small configurations of the "
        "generators that make the full hardware. `t3 prove` does it again; `python -m docs.pages proofs` "
        "writes this page."
    )
    + _COMMANDS
    + paragraph(
        "Properties are written in Amaranth (`hdl/t3formal/properties`), beside an abstract model of the "
        "component: a sum of counts, a queue, a byte of memory. Yosys makes the netlist, ABC proves; both are in the "
        "Python package `pyosys`. Of the methods, property-directed reachability (*unbounded*) and *induction* hold in "
        "every cycle of every run, as far as what they assume does; a *bounded* search holds in the first cycles after "
        "reset only. A proof of *structure* "
        "follows the wires from outputs back to inputs: what is not connected cannot depend, whatever the values. With "
        "the reset at 1 it works out what every register takes, whatever else is there."
    )
    + paragraph(
        "A claim that holds because nothing happens proves nothing. So every proof has covers, runs in which what "
        "it speaks of does happen; a proof whose cover is not reached is *vacuous* and fails. For each component a "
        "mistake made on purpose must be found by the proof that the test names (`tests/formal/test_prove*.py`)."
    )
).rstrip() + "\n"

LEVELS = (
    (
        "unit tests", "`tests`", "chosen cases and corners of each part, cycle by cycle, in Amaranth's simulator",
        "cases nobody thought of",
    ),
    (
        "RTL = golden model", "`tests/contract/test_parts_agree.py`",
        "the compiled RTL and a model written apart from it agree in every cycle of random runs, of full sizes too",
        "mistakes of the contract that both follow; runs that chance does not find",
    ),
    (
        "testbenches", "[testbenches](../guides/testbenches.md)",
        "the generated Verilog does what the Amaranth code says, in two simulators, without unknown values",
        "as above",
    ),
    (
        "assertions", "`t3_assertions.sv`", "the contract at the ports holds where an integrator simulates",
        "what is not simulated",
    ),
    (
        "proofs", "this page", "the invariants in every run of small configurations, with every input",
        "large configurations (the same generator makes them); arithmetic of the ALU; what assumptions exclude",
    ),
    (
        "arithmetic", "[ALU](../guides/validate-alu.md)",
        "every pair of FP16 numbers, against an independent implementation", "all pairs of 32-bit numbers",
    ),
    (
        "mutation", "[mutation](mutation.md)", "proofs and benches notice small mistakes in the netlist",
        "mistakes that no small change makes",
    ),
    (
        "faults", "[faults](faults.md)",
        "what becomes of flipped bits, link errors and wrong programs in a running system",
        "several faults at a time",
    ),
    (
        "co-simulation", "[validation](validation.md)",
        "a whole sublayer on a ring of GPUs comes out bit by bit, and its accounting adds up",
        "runs that no workload makes",
    ),
)  # fmt: skip
"""Level, where it is, what it shows, what it does not."""

CHAINS = (
    "Each invariant is shown by the proofs beside it together. *Reach* is how much of a run they cover: a proof that "
    "assumes what another one owes reaches no further than that one, which is named. What only an integrator can give "
    "is in the last column, for the proof and for all that it rests on. `t3formal.prover.reach` works it out from "
    "what the proofs assumed and from the list of who owes what."
)

UNBOUNDED = ", {tasks} of them for every cycle of every run together with all that they assume"
"""Of the sentence that counts the tasks: how many are not bounded, and rest on nothing that is."""

READING = """\
A claim that does not hold gives the shortest run to it, as what goes through the part's ports:

```
token-queue.conserves (3 entries): violated in cycle 3
  does not hold: updates of a tile are in the queue or have left it
  cycle  port                     what goes through it
      0  push                     1
      0  tile                     epoch=3
      ...
  waveforms: gtkwave .../token-queue.conserves-3-entries.vcd
```

Cycle 0 is the first after reset; ports that are 0, and fields that are 0, are left out. The waveforms have the part
under `dut` with its own names, the model and the claims beside it. *Not inductive* means that the run begins in some
state, perhaps one that is never reached: a claim that excludes that state, if it holds, completes the proof.
"""
