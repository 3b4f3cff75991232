"""What a round is: everything follows from its 32-bit seed, but its epoch, which counts the rounds."""

from amaranth.hdl import Array, Cat, Const, Mux, Value
from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface.layouts import EPOCH_BITS, Dtype, Op

FIRST_SEED = 0x5433_0001

Seed = data.StructLayout(
    {
        "gpu": 2,  # which of the ring's GPUs the board is
        "op": 2,  # 0 and 3 add, 1 minimum, 2 maximum
        "dtype": 2,  # among those of the configuration, in turn
        "plain": 2,  # bit 0: local stores in the order of the GEMM, not shuffled; bit 1: incoming updates likewise
        "local_step": 8,
        "incoming_step": 8,  # distance from one line to the next when shuffled, made odd
        "more": 8,  # for the values alone
        "epoch": EPOCH_BITS,
    }
)
"""The seed, 32 bits, and above it the epoch: one more than that of the round before, as software counts."""


def after(seed: Value) -> Value:
    """The seed of the next round: Marsaglia's xorshift32 (13, 17, 5), of period 2**32 - 1."""
    seed = seed ^ (seed << 13)[:32]
    seed = seed ^ (seed >> 17)
    return (seed ^ (seed << 5)[:32])[:32]


def op_of(seed: data.View) -> Value:
    """The operation of the round."""
    return Mux(seed.op == 1, int(Op.MIN), Mux(seed.op == 2, int(Op.MAX), int(Op.ADD)))


def dtype_of(seed: data.View, config: T3Config) -> Value:
    """The element type of the round, one of the configuration's."""
    numbers = [int(Dtype[name.upper()]) for name in config.dtypes]
    if len(numbers) == 1:
        return Const(numbers[0], 2)
    return Array(Const(numbers[index % len(numbers)], 2) for index in range(4))[seed.dtype]


def spread(seed: Value, address: Value, *, incoming: int) -> Value:
    """16 bits that say which values an update of this line carries: bits 2k and 2k + 1 are for lanes 2k and 2k + 1."""
    half = seed[16:] if incoming else Cat(seed[5:16], seed[:5])
    return Value.cast(half)[:16] ^ Cat(
        address[bit % 8] ^ address[(3 * bit + 1 + 2 * incoming) % 8] for bit in range(16)
    )
