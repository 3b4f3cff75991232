"""The golden ControlRegisters against hand-computed scenarios, one per statement of docs/hardware.md."""

import numpy as np
import pytest
from golden_bench import Bench, pack, unpack
from t3hdl import register_map as registers
from t3hdl.config import T3Config, preset
from t3hdl.layouts import NEVER, ConfigWrite
from t3hdl.signatures import registers_signature
from t3sim.golden import registers as golden

SMALL = preset("small", ranges=2, wavefronts=3, descriptors=8)
READABLE = {
    registers.ID: 0x5433_0001, registers.STATUS: 1, registers.PEAK_ENTRIES: 0,
    registers.OVERFLOWED: 0, registers.THRESHOLD: 0,
}  # fmt: skip


def make(config: T3Config = SMALL, init_done=1) -> Bench:
    bench = Bench(golden, registers_signature(config), golden.init_state(config))
    bench.tick(0, init_done=init_done)
    return bench


def access(bench, address, value=None) -> tuple[int, int, dict[str, int] | None]:
    """One request: error, data, configuration pulse. Checks the handshake around it."""
    assert (bench.get("bus_ready"), bench.get("response_valid")) == (1, 0)
    write = {"bus_write": 0} if value is None else {"bus_write": 1, "bus_data": value}
    bench.tick(bus_valid=1, bus_address=address, **write)
    assert (bench.get("bus_ready"), bench.get("response_valid"), bench.get("idle")) == (0, 1, 0)
    pulse = bench.item("config")
    result = bench.get("response_error"), bench.get("response_data"), pulse and unpack(ConfigWrite, pulse)
    bench.tick(bus_valid=0)
    assert (bench.get("response_valid"), bench.get("config_valid"), bench.get("idle")) == (0, 0, 1)
    return result


def is_written(bench, address, value=0) -> bool:
    """Whether a write is good; a good one must give the pulse, a bad one must not."""
    error, data, pulse = access(bench, address, value)
    assert data == 0
    assert pulse == (None if error else {"address": address, "data": value})
    return not error


def control(**values) -> int:
    return pack(registers.Control, **values)


def locked_write(bench) -> int:
    return unpack(registers.Status, access(bench, registers.STATUS)[1])["locked_write"]


def writable(config) -> set[int]:
    """All addresses that can be written, from the register map."""
    tables = {registers.RANGE + i * 32 + 8 * word for i in range(config.ranges) for word in range(3)}
    tables |= {registers.PROFILE + 8 * (edge * 16 + wf) for edge in range(4) for wf in range(config.wavefronts)}
    tables |= {registers.DESCRIPTOR + i * 64 + 8 * word for i in range(config.descriptors) for word in range(6)}
    return tables | {registers.CONTROL, registers.ARBITER, registers.THRESHOLDS}


def test_reset_state_is_complete():
    bench = make()
    fresh = bench.state.copy()
    bench.state[3:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(fresh) - 3)
    bench.instance.reset()
    assert np.array_equal(bench.state, fresh)
    assert (bench.get("bus_ready"), bench.get("response_valid"), bench.get("config_valid")) == (1, 0, 0)
    assert (bench.get("idle"), bench.get("wake_at")) == (1, NEVER)


def test_requests_every_second_cycle():
    bench = make()
    ready = []
    bench.tick(0, bus_valid=1, bus_address=registers.ID)
    for _ in range(6):
        ready.append((bench.get("bus_ready"), bench.get("response_valid")))
        bench.tick()
    assert ready == [(1, 0), (0, 1)] * 3


def test_request_during_an_answer_waits():
    bench = make()
    bench.tick(bus_valid=1, bus_address=registers.ID)
    bench.tick(bus_address=registers.CONTROL, bus_write=1, bus_data=control(disarm=1))  # not taken
    assert bench.get("config_valid") == 0
    bench.tick()  # taken here
    assert bench.get("config_valid") == 1


@pytest.mark.parametrize("address", sorted(READABLE))
def test_readable_registers(address):
    bench = make()
    assert access(bench, address) == (0, READABLE[address], None)
    assert not is_written(bench, address)


def test_status_fields():
    ports = ("init_done", "armed", "live", "chunks_done", "unmatched", "over_count", "over_total")
    for port in ports:
        bench = make(init_done=0)
        value = 127 if port in ("live", "chunks_done") else 1
        bench.tick(0, **{port: value})
        assert access(bench, registers.STATUS)[1] == pack(registers.Status, **{port: value})


def test_values_come_from_the_cycle_of_the_request():
    bench = make()
    bench.tick(0, peak_entries=0xFFFF, overflowed=127, threshold=127)
    assert access(bench, registers.PEAK_ENTRIES)[1] == 0xFFFF
    assert access(bench, registers.OVERFLOWED)[1] == 127
    assert access(bench, registers.THRESHOLD)[1] == 0x7F
    bench.tick(0, chosen=1, threshold=5)
    assert access(bench, registers.THRESHOLD)[1] == 0x85
    bench.tick(bus_valid=1, bus_write=0, bus_address=registers.PEAK_ENTRIES)
    bench.tick(0, peak_entries=1)
    assert bench.get("response_data") == 0xFFFF


@pytest.mark.parametrize("config", [SMALL, T3Config(), preset("paper", ranges=4, wavefronts=16)])
def test_every_address_below_the_end_of_the_map(config):
    bench = make(config)
    good = writable(config)
    for address in range(0, registers.DESCRIPTOR + 65 * registers.DESCRIPTOR_STRIDE, 8):
        value = control(disarm=1) if address == registers.CONTROL else 0xFEDC_BA98_7654_3210 ^ address
        assert is_written(bench, address, value) == (address in good), hex(address)
        if address not in READABLE:
            assert access(bench, address) == (1, 0, None), hex(address)


@pytest.mark.parametrize("low", range(1, 8))
def test_unaligned_addresses_are_errors(low):
    bench = make()
    bench.tick(0, armed=1)
    for address in (registers.ID, registers.STATUS, registers.CONTROL, registers.RANGE, registers.DESCRIPTOR, 0xFFF8):
        assert access(bench, address + low) == (1, 0, None)
        assert not is_written(bench, address + low, control(disarm=1))
    assert locked_write(bench) == 0


def test_tables_are_locked_while_armed():
    for address in sorted(writable(SMALL) - {registers.CONTROL, registers.ARBITER, registers.THRESHOLDS}):
        bench = make()
        bench.tick(0, armed=1)
        assert not is_written(bench, address, 1)
        assert locked_write(bench) == 1
    bench.tick(0, armed=0)
    assert is_written(bench, address, 1)
    assert locked_write(bench) == 1  # sticky
    assert is_written(bench, registers.CONTROL, control(disarm=1))
    assert locked_write(bench) == 0


@pytest.mark.parametrize("address", [registers.ARBITER, registers.THRESHOLDS])
def test_arbiter_and_thresholds_are_never_locked(address):
    bench = make()
    bench.tick(0, armed=1)
    assert is_written(bench, address, 0xFFFF_FFFF_FFFF_FFFF)
    assert locked_write(bench) == 0


def test_unknown_address_while_armed_is_no_locked_write():
    bench = make()
    bench.tick(0, armed=1)
    assert not is_written(bench, registers.RANGE + 24)
    assert locked_write(bench) == 0


@pytest.mark.parametrize(
    ("value", "armed", "init_done", "good"),
    [
        (control(arm=1, descriptors=1), 0, 1, True),
        (control(arm=1, descriptors=8), 0, 1, True),
        (control(arm=1, descriptors=0), 0, 1, False),
        (control(arm=1, descriptors=9), 0, 1, False),
        (control(arm=1, descriptors=127), 0, 1, False),
        (control(arm=1, descriptors=1), 1, 1, False),
        (control(arm=1, descriptors=1), 0, 0, False),
        (control(arm=1, disarm=1, descriptors=1), 0, 1, False),
        (control(arm=1, disarm=1, descriptors=1), 1, 0, False),
        (control(disarm=1), 0, 1, True),
        (control(disarm=1), 1, 0, True),
        (control(disarm=1, descriptors=100), 1, 1, True),
        (control(), 1, 0, True),
    ],
)
def test_control(value, armed, init_done, good):
    bench = make(init_done=init_done)
    bench.tick(0, armed=armed)
    assert is_written(bench, registers.CONTROL, value) == good


def test_refused_control_does_not_clear_locked_write():
    bench = make()
    bench.tick(0, armed=1)
    is_written(bench, registers.RANGE)
    assert not is_written(bench, registers.CONTROL, control(arm=1, disarm=1, descriptors=1))
    assert locked_write(bench) == 1
