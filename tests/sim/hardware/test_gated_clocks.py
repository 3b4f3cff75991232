"""Gated clocks change nothing: a part with them does in every cycle what the same Verilog does without."""

from dataclasses import replace

import pytest
from t3hdl.config import preset
from t3sim.hardware.rtl.backend import part_source
from t3sim.hardware.rtl.build import NOT_GATED
from t3sim.hardware.rtl.gated_clocks import Gate, gating, with_gated_clocks

from tb.compare import SEED, compare

GATED = ("slice", "tracker")
NARROW = preset(
    "small", slices=2, node_inputs=1, contexts=1, tracker_sets=1, tracker_ways=1, tracker_banks=1, row_index_bits=0,
    descriptors=5, chunk_window=3, blocks=1, tile_marks=128, wavefronts=1, token_queue=2, event_queue=3,
    count_on="performed",
)  # fmt: skip
CONFIGS = {"small": preset("small"), "narrow": NARROW}


@pytest.mark.long
@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("size", CONFIGS)
def test_gated_clocks_change_nothing(name, size):
    source = part_source(CONFIGS[size], name)
    assert source.gating.gates
    gated, plain = source.compiled(), replace(source, gating=NOT_GATED).compiled()
    parts = {"gated": gated.part_type, "one clock": plain.part_type}
    bench = compare(parts, name, CONFIGS[size], 20_000, f"gated clocks of {name}, {size}, seed {SEED}")
    print(f"seed {SEED}: {bench.cycle} cycles")
    gated.free()
    plain.free()


def test_a_gate_that_lacks_a_reason_is_noticed():
    """The comparison above can fail: slots that no load wakes."""
    source = part_source(CONFIGS["small"], "tracker")
    deaf = tuple(replace(gate, wakes=()) if gate.path[-1] == "slots" else gate for gate in source.gating.gates)
    wrong = replace(source, gating=replace(source.gating, gates=deaf))
    gated, plain = wrong.compiled(), source.compiled()
    with pytest.raises(AssertionError, match=r"outputs of cycle \d+ differ"):
        compare({"deaf": gated.part_type, "gated": plain.part_type}, "tracker", CONFIGS["small"], 20_000, "deaf slots")
    gated.free()
    plain.free()


def test_protected_parts_have_one_clock():
    assert not gating(preset("small", protect=True), "tracker").gates
    assert gating(preset("small"), "trigger") == NOT_GATED


MODULES = """\
/* made up */

module top(clk, a, \\b$1 );
  input clk;
  input a;
  output \\b$1 ;
  inner first (
    .a(a),
    .clk(clk)
  );
  inner \\second$3  (
    .a({ a, a[0] }),
    .b(\\b$1 ),
    .clk(clk)
  );
  leaf third (
    .b(),
    .clk(clk)
  );
endmodule

module inner(clk, a, b);
  leaf deep (
    .clk(clk),
    .q(w)
  );
endmodule

module leaf(clk);
endmodule
"""


def test_clock_and_busy_are_ports_of_the_copy():
    text = with_gated_clocks(MODULES, "top", [Gate(path=("second",), busy=("b",)), Gate(path=("third",))])
    top = text.partition("module inner")[0]
    assert top.startswith("/* made up */\n\nmodule top(gated_clk_third, gated_busy_second, gated_clk_second, clk, a, ")
    for line in (
        "  input gated_clk_second;\n", "  output gated_busy_second;\n",
        "  assign gated_busy_second = |{\\b$1 };\nendmodule",
    ):  # fmt: skip
        assert top.count(line) == 1
    assert "    .b(\\b$1 ),\n    .clk(gated_clk_second)\n" in top
    assert "    .b(),\n    .clk(gated_clk_third)\n" in top
    assert "  inner first (\n    .a(a),\n    .clk(clk)\n" in top, "the others keep their clock"
    assert text.partition("module inner")[2] == MODULES.partition("module inner")[2]
    assert with_gated_clocks(MODULES, "top", []) == MODULES


def test_an_instance_in_several_instances_has_a_clock_in_each():
    gates = [Gate(path=(name, "deep"), busy=("q",)) for name in ("first", "second")]
    text = with_gated_clocks(MODULES, "top", gates)
    inner = text.partition("module inner")[2].partition("endmodule")[0]
    assert inner.count("gated_clk_deep") == 3, "in the list of ports, as an input, and at the instance"
    assert inner.count("  assign gated_busy_deep = |{w};\n") == 1
    for name in ("first", "second"):
        assert f"    .gated_clk_deep(gated_clk_{name}_deep),\n" in text
        assert f"    .gated_busy_deep(gated_busy_{name}_deep),\n" in text


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (Gate(path=("fourth",)), "top has no instance fourth"),
        (Gate(path=("second", "deep")), "first of top has no gated_clk_deep, as other instances of inner have"),
        (Gate(path=("third",), busy=("c",)), "third of top has no port c"),
    ],
)
def test_what_cannot_be_gated_is_refused(gate, message):
    with pytest.raises(ValueError, match=message):
        with_gated_clocks(MODULES, "top", [gate])
