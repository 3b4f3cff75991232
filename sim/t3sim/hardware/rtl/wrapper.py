"""The C++ file of a compiled part: Verilator's sources and the functions of the call convention in one unit.

One unit, so that the compiler inlines the model into ``step``. The clock counts every edge (see
:func:`simulated_copy`), so that one evaluation is one cycle.
"""

import re
from collections.abc import Iterable

from t3hdl.interface.words import WordMap

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

inline void clock(V& model) {{
    model.rootp->clk ^= 1;
    {evaluate}
}}

inline void step(intptr_t state, const uint64_t* in, uint64_t* out) {{
    V& model = *reinterpret_cast<V*>(state);
    drive(*model.rootp, in);
    clock(model);
    sample(*model.rootp, out);
}}

}}  // namespace

#define PART extern "C" __attribute__((visibility("default")))

// A context for each instance: a trace shows all instances of a context.
PART intptr_t part_new() {{
    VerilatedContext* context = new VerilatedContext;
    context->traceEverOn({traced});
    V* model = new V(context);
    model->eval();  // initial values
    return reinterpret_cast<intptr_t>(model);
}}

PART void part_free(intptr_t state) {{
    V* model = reinterpret_cast<V*>(state);
    VerilatedContext* context = model->contextp();
    delete model;
    delete context;
}}

// Two cycles with all inputs 0: after the first no write port of a memory is active any more.
PART void part_reset(intptr_t state, intptr_t, intptr_t out) {{
    static const uint64_t zeros[{input_words}] = {{}};
    V& model = *reinterpret_cast<V*>(state);
    drive(*model.rootp, zeros);
    model.rootp->rst = 1;
    clock(model);
    clock(model);
    model.rootp->rst = 0;
    sample(*model.rootp, reinterpret_cast<uint64_t*>(out));
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
PART void part_select(intptr_t state, int64_t value) {{ reinterpret_cast<V*>(state)->rootp->{select} = value; }}
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
    reinterpret_cast<V*>(state)->trace(&trace->vcd, 99);
    trace->vcd.open("");
    return reinterpret_cast<intptr_t>(trace);
}}

// What every signal is in the present cycle, with these inputs; the clock does not advance.
PART void part_trace_observe(intptr_t trace, intptr_t state, intptr_t in, int64_t time) {{
    V& model = *reinterpret_cast<V*>(state);
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


def simulated_copy(verilog: str) -> str:
    """``verilog`` with a clock that acts at both edges, so that a cycle costs one evaluation and not two.

    Raises ValueError if the design uses the falling edge.
    """
    if re.search(r"\bnegedge\b", verilog):
        raise ValueError("a part must use the rising edge of clk alone, but its Verilog has a negedge")
    return re.sub(r"\bposedge\b", "edge", verilog)


def wrapper(words: WordMap, sources: Iterable[str], select: str = "", traced: bool = False) -> str:
    """The C++ file for a part with these words; ``sources`` are Verilator's generated files, to be included.

    ``select`` : an input beside those in ``words``, for which there is a function ``part_select`` (prover/mutation.py).
    ``traced`` : with functions that record every signal (``traced.py``); Verilator's files must be made for that.
    """
    return _TEMPLATE.format(
        includes="\n".join(f'#include "{name}"' for name in sources),
        drive="\n".join(_drive(_member(path), *place) for path, place in words.inputs.items()),
        sample="\n".join(_sample(_member(path), *place) for path, place in words.outputs.items()),
        input_words=max(1, words.input_words),
        traced="true" if traced else "false",
        evaluate=_EVALUATE_TRACED if traced else _EVALUATE,
        select=_SELECT.format(select=select) if select else "",
        trace=_TRACE.format() if traced else "",
    )


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
