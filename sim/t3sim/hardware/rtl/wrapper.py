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

VerilatedContext context;

inline void drive(V___024root& top, const uint64_t* in) {{
{drive}
}}

inline void sample(const V___024root& top, uint64_t* out) {{
{sample}
}}

// Without the bookkeeping of V::eval() for threads and class objects: 14 ns, a fifth of a slice's step.
inline void clock(V& model) {{
    model.rootp->clk ^= 1;
    V___024root___eval(model.rootp);
}}

inline void step(intptr_t state, const uint64_t* in, uint64_t* out) {{
    V& model = *reinterpret_cast<V*>(state);
    drive(*model.rootp, in);
    clock(model);
    sample(*model.rootp, out);
}}

}}  // namespace

#define PART extern "C" __attribute__((visibility("default")))

PART intptr_t part_new() {{
    V* model = new V(&context);
    model->eval();  // initial values
    return reinterpret_cast<intptr_t>(model);
}}

PART void part_free(intptr_t state) {{ delete reinterpret_cast<V*>(state); }}

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
{select}"""

_SELECT = """
// The input that is no port of the part: it keeps its value, also during a reset.
PART void part_select(intptr_t state, int64_t value) {{ reinterpret_cast<V*>(state)->rootp->{select} = value; }}
"""


def simulated_copy(verilog: str) -> str:
    """``verilog`` with a clock that acts at both edges, so that a cycle costs one evaluation and not two.

    Raises ValueError if the design uses the falling edge.
    """
    if re.search(r"\bnegedge\b", verilog):
        raise ValueError("a part must use the rising edge of clk alone, but its Verilog has a negedge")
    return re.sub(r"\bposedge\b", "edge", verilog)


def wrapper(words: WordMap, sources: Iterable[str], select: str = "") -> str:
    """The C++ file for a part with these words; ``sources`` are Verilator's generated files, to be included.

    ``select`` : an input beside those in ``words``, for which there is a function ``part_select`` (prover/mutation.py).
    """
    return _TEMPLATE.format(
        includes="\n".join(f'#include "{name}"' for name in sources),
        drive="\n".join(_drive(_member(path), *place) for path, place in words.inputs.items()),
        sample="\n".join(_sample(_member(path), *place) for path, place in words.outputs.items()),
        input_words=max(1, words.input_words),
        select=_SELECT.format(select=select) if select else "",
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
