"""The C++ file of a compiled part: Verilator's sources and the functions of the call convention in one unit.

One unit, so that the compiler inlines the model into ``step``. The clock counts every edge (see
:func:`simulated_copy`), so that one evaluation is one cycle.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from t3hdl.interface.words import WordMap

from .gated_clocks import Gating, busy_of, clock_of, with_gated_clocks

_TEMPLATE = """\
{includes}
#include <cstdint>

namespace {{

inline void drive(V___024root& top, const uint64_t* in) {{
{drive}
}}

inline void sample(const V___024root& top, uint64_t* out) {{
{sample}
}}

// A model, and for how many cycles all of its gated clocks tick after what roused them.
struct Part {{
    V model;
    unsigned roused = 0;
    explicit Part(VerilatedContext* context) : model(context) {{}}
}};

inline void clock(Part& part, bool rouse) {{
    V& model = part.model;
    V___024root& top = *model.rootp;
    top.clk ^= 1;
{gates}
    {evaluate}
}}

inline void step(intptr_t state, const uint64_t* in, uint64_t* out) {{
    Part& part = *reinterpret_cast<Part*>(state);
    drive(*part.model.rootp, in);
    clock(part, false);
    sample(*part.model.rootp, out);
}}

}}  // namespace

#define PART extern "C" __attribute__((visibility("default")))

// A context for each instance: a trace shows all instances of a context.
PART intptr_t part_new() {{
    VerilatedContext* context = new VerilatedContext;
    context->traceEverOn({traced});
    Part* part = new Part(context);
    part->model.eval();  // initial values
    return reinterpret_cast<intptr_t>(part);
}}

PART void part_free(intptr_t state) {{
    Part* part = reinterpret_cast<Part*>(state);
    VerilatedContext* context = part->model.contextp();
    delete part;
    delete context;
}}

// Two cycles with all inputs 0: after the first no write port of a memory is active any more.
PART void part_reset(intptr_t state, intptr_t, intptr_t out) {{
    static const uint64_t zeros[{input_words}] = {{}};
    Part& part = *reinterpret_cast<Part*>(state);
    V___024root& top = *part.model.rootp;
    drive(top, zeros);
    top.rst = 1;
    clock(part, true);
    clock(part, true);
    top.rst = 0;
    sample(top, reinterpret_cast<uint64_t*>(out));
}}

PART void part_step(intptr_t state, intptr_t in, intptr_t out) {{
    step(state, reinterpret_cast<const uint64_t*>(in), reinterpret_cast<uint64_t*>(out));
}}

// `steps` cycles with the `vectors` input vectors at `in` in turn: the speed without a caller's loop.
PART void part_bench(intptr_t state, intptr_t in, intptr_t out, int64_t vectors, int64_t steps) {{
    const uint64_t* words = reinterpret_cast<const uint64_t*>(in);
    for (int64_t cycle = 0, vector = 0; cycle < steps; ++cycle) {{
        step(state, words + vector * {input_words}, reinterpret_cast<uint64_t*>(out));
        if (++vector == vectors) vector = 0;
    }}
}}
{select}{trace}"""

# Without the bookkeeping of V::eval() for threads, class objects and traces: 14 ns, a fifth of a slice's step.
_EVALUATE = "V___024root___eval(model.rootp);"
_EVALUATE_TRACED = "model.eval();"

_SELECT = """
// The input that is no port of the part: it keeps its value, also during a reset.
PART void part_select(intptr_t state, int64_t value) {{
    reinterpret_cast<Part*>(state)->model.rootp->{select} = value;
}}
"""

# A trace is kept in memory: Verilator ends the process when it cannot write a file.
_TRACE = """
namespace {{

struct Text final : VerilatedVcdFile {{
    std::string text;
    bool open(const std::string&) override {{ return true; }}
    void close() override {{}}
    ssize_t write(const char* data, ssize_t size) override {{ return text.append(data, size), size; }}
}};

struct Trace {{
    Text file;
    VerilatedVcdC vcd{{&file}};
}};

}}  // namespace

PART intptr_t part_trace_begin(intptr_t state) {{
    Trace* trace = new Trace;
    reinterpret_cast<Part*>(state)->model.trace(&trace->vcd, 99);
    trace->vcd.open("");
    return reinterpret_cast<intptr_t>(trace);
}}

// What every signal is in the present cycle, with these inputs; the clock does not advance.
PART void part_trace_observe(intptr_t trace, intptr_t state, intptr_t in, int64_t time) {{
    V& model = reinterpret_cast<Part*>(state)->model;
    drive(*model.rootp, reinterpret_cast<const uint64_t*>(in));
    model.eval();
    reinterpret_cast<Trace*>(trace)->vcd.dump(uint64_t(time));
}}

PART const char* part_trace_text(intptr_t trace) {{
    Trace& of = *reinterpret_cast<Trace*>(trace);
    of.vcd.flush();
    return of.file.text.c_str();
}}

PART void part_trace_end(intptr_t trace) {{ delete reinterpret_cast<Trace*>(trace); }}
"""


@lru_cache(maxsize=64)  # asked for the name of the part's library, and for the library
def simulated_copy(verilog: str, top: str, gating: Gating) -> str:
    """``verilog``, of module ``top``, with clocks that act at both edges, so that a cycle costs one evaluation and not
    two, and with those of ``gating``.

    Raises ValueError if the design uses the falling edge, or cannot be gated like that.
    """
    if re.search(r"\bnegedge\b", verilog):
        raise ValueError("a part must use the rising edge of clk alone, but its Verilog has a negedge")
    return with_gated_clocks(re.sub(r"\bposedge\b", "edge", verilog), top, gating.gates)


def wrapper(words: WordMap, sources: Iterable[str], gating: Gating, select: str = "", traced: bool = False) -> str:
    """The C++ file for a part with these words; ``sources`` are Verilator's generated files, to be included.

    ``gating`` : as of :func:`simulated_copy`. ``select`` : an input beside those in ``words``, for which there is a
    function ``part_select`` (prover/mutation.py). ``traced`` : with functions that record every signal
    (``traced.py``); Verilator's files must be made for that.
    """
    return _TEMPLATE.format(
        includes="\n".join(f'#include "{name}"' for name in sources),
        drive="\n".join(_drive(_member(path), *place) for path, place in words.inputs.items()),
        sample="\n".join(_sample(_member(path), *place) for path, place in words.outputs.items()),
        gates=_ticks(gating),
        input_words=max(1, words.input_words),
        traced="true" if traced else "false",
        evaluate=_EVALUATE_TRACED if traced else _EVALUATE,
        select=_SELECT.format(select=select) if select else "",
        trace=_TRACE.format() if traced else "",
    )


ROUSED_CYCLES = 2
"""For how many cycles after what roused them all gated clocks tick."""


def _ticks(gating: Gating) -> str:
    """The edges of the gated clocks."""
    if not gating.gates:
        return "    static_cast<void>(rouse);"
    rouses = [*map(_member, gating.rouses), *(f"!{_member(path)}" for path in gating.resting)]
    lines = [
        f"    part.roused = rouse || {' || '.join(rouses)} ? {ROUSED_CYCLES + 1} : part.roused - (part.roused != 0);"
    ]
    for gate in gating.gates:
        wakes = [*([f"top.{busy_of(gate.path)}"] if gate.busy else []), *map(_member, gate.wakes)]
        lines.append(f"    top.{clock_of(gate.path)} ^= {' || '.join(['part.roused', *wakes])};")
    return "\n".join(lines)


_RENAMED = ("interrupt",)
"""Port names that Verilator marks, because they are common words in C."""


def _member(path: str) -> str:
    """Verilator's name of a port: Amaranth joins a path by two underscores, of which Verilator escapes the second."""
    return "top." + ("__SYM__" if path in _RENAMED else "") + path.replace(".", "___05F")


def _drive(member: str, word: int, bits: int) -> str:
    """Assign a port from its words, without the bits above its width (Verilator relies on that)."""
    if bits <= 64:
        return f"    {member} = in[{word}] & {(1 << bits) - 1:#x}ull;"
    lines = []
    for half in range(-(-bits // 32)):
        mask = (1 << min(32, bits - 32 * half)) - 1
        lines.append(f"    {member}[{half}] = (in[{word + half // 2}] >> {half % 2 * 32}) & {mask:#x}u;")
    return "\n".join(lines)


def _sample(member: str, word: int, bits: int) -> str:
    """Assign the words of a port from it."""
    if bits <= 64:
        return f"    out[{word}] = {member};"
    lines = []
    halves = -(-bits // 32)
    for low in range(0, halves, 2):
        high = f" | uint64_t({member}[{low + 1}]) << 32" if low + 1 < halves else ""
        lines.append(f"    out[{word + low // 2}] = {member}[{low}]{high};")
    return "\n".join(lines)
