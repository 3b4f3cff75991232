"""The proofs find seeded mistakes in how bursts are counted, arbitrated and refused."""

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task

from tests.formal.seeded_bugs import expect_failure, in_module, substituted

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves

_REFUSED = (
    "what is refused comes back in the next cycle, and nothing else",
    "what is stale comes back in the next cycle, and nothing else",
    "as many are there as entered and did not leave",
)
_LINES_OF_A_TILE = "lines of a tile are in the queue or have left it"


def change(module, pattern, replacement, *, number=1):
    """Every match of the pattern in a module, of which there are so many, becomes something else."""

    def patch(text):
        return in_module(text, module, lambda body: substituted(pattern, replacement, body, number=number))

    return patch


def test_a_block_end_that_nobody_looks_at_is_found():
    """Seeded: a burst may leave its aligned block."""
    expect_failure(
        "slice.passes-compute-write",
        change("top.dut", r"(connect \\A) \\last\S* \[3\]", r"\1 1'0", number=2),
        *_REFUSED,
    )


def test_a_limit_that_nobody_looks_at_is_found():
    """Seeded: only the base of a range is looked for in a burst, so that one may go on behind the limit."""
    expect_failure(
        "slice.passes-compute-write",
        change(
            "top.dut", r"(connect \\A \\ranges__0 \[41:39\]\n    connect \\B) \\last\S* \[3:0\]", r"\1 4'0000", number=2
        ),
        *_REFUSED,
    )


@pytest.mark.parametrize("proof", ["slice.passes-compute-write", "matcher.routes"])
def test_a_last_line_that_is_left_out_is_found(proof):
    """Seeded: the last line of a burst may be the first one of another range."""
    places = 2 if proof.startswith("matcher") else 4
    expect_failure(
        proof,
        change(
            "top.dut",
            r"cell \$le (\S+\n(?:    .*\n)*?    connect \\B \\last\S* \[3:0\]\n)",
            r"cell $lt \1",
            number=places,
        ),
        *_REFUSED,
        "the chosen item is matched",
    )


def test_a_route_for_a_burst_that_leaves_its_block_is_found():
    """Seeded: the egress does not look at the end of the block."""
    expect_failure(
        "matcher.routes",
        change("top.dut", r"(connect \\A) \\last \[3\]", r"\1 1'0"),
        "the chosen item is matched",
        "what is of no live range is not matched",
    )


def test_a_count_that_ignores_the_length_is_found():
    """Seeded: every burst counts one line."""
    expect_failure(
        "slice.counts-updates",
        change("top.dut.tokens", r"connect \\([AB]) \\length \[2:0\]", r"connect \\\1 3'000", number=5),
        _LINES_OF_A_TILE,
    )


def test_a_token_that_overflows_is_not_proven_away():
    """Seeded: an entry takes lines however many it has. From reset it takes too many bursts to be seen; it is no longer
    proven, and the step that fails is an overflow."""
    full = r"(cell \$reduce_and \S+\n(?:    .*\n)*?    connect \\A) \\entry_[12] \[51:45\]"
    (proof,) = chosen_proofs(("token-queue.conserves",))
    patch = change("top.dut", full, r"\1 7'0000000", number=2)
    verdict = check(Task(proof=proof, size="3 entries"), patch=patch, covers=False)
    assert verdict.outcome == "not inductive"
    overflow = {_LINES_OF_A_TILE, *(f"entry {i} counts something" for i in range(3))}
    assert overflow & set(verdict.counterexample.claims)


def test_a_threshold_without_the_lines_of_the_output_register_is_found():
    """Seeded: the burst that waits for the memory counts as one line."""
    expect_failure(
        "slice.keeps-to-limit",
        change("top.dut", r"(connect \\out_lines) \\out_lines \[3:0\]", r"\1 { 3'000 \\dram__valid [0] }"),
        "communication passes compute or its limit only after the starvation limit, and by the quantum that follows, "
        "and its limit also while compute is absent",
    )


def test_a_quantum_in_bursts_is_found():
    """Seeded: each burst takes one line from the quantum, however long it is."""
    expect_failure(
        "slice.keeps-to-limit",
        change(
            "top.dut.arbiter",
            r"connect \\A \S+ \[2:0\](\n    connect \\B 1'1\n    connect \\Y \\comm_lines)",
            r"connect \\A 3'000\1",
        ),
        "the allowance is the slice's",
    )


def test_a_quantum_that_begins_anew_when_a_burst_passes_its_end_is_found():
    """Seeded: what is left wraps around below 0, so that communication goes on."""
    expect_failure(
        "slice.serves-compute",
        change(
            "top.dut.arbiter", r"cell \$gt (\S+\n(?:    .*\n)*?    connect \\B \\comm_lines \[3:0\]\n)", r"cell $ne \1"
        ),
        "a quantum is no longer than it was set",
        "what has passed and what may pass are one quantum",
        "compute lets the lines of one quantum pass at most, rounded up to whole bursts",
    )


def test_a_measurement_in_bursts_is_found():
    """Seeded: a grant counts one line."""
    expect_failure(
        "slice.measures",
        change("top.dut", r"(served \[3:0\]\n    connect \\B) \S+ \[127:125\]", r"\1 3'000", number=2),
        "the lines that went while it measured, as many as it can say",
    )


def test_a_refused_burst_that_is_pending_is_found():
    """Seeded: a burst over the end of its block enters and waits for its count."""
    expect_failure(
        "slice.pending",
        change("top.dut", r"(connect \\A) \\last\S* \[3\]", r"\1 1'0", number=2),
        "of context 0 as many entered and were not counted as are there",
        "of context 1 as many entered and were not counted as are there",
        "the slice counts those of context 0",
        "the slice counts those of context 1",
    )
