"""``validate``: the model against the reference simulator's traces, closed forms, clear errors."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import t3sim
from t3hdl.interface.layouts import BankHash, LineOrder, dram_address
from t3sim.inputs.machine.hbm import TIMINGS
from t3sim.validation.hbm import replay, validate

from tests.sim.dram.memory import memory

REFERENCE = Path(t3sim.__file__).parent / "validation" / "reference"
DEFAULT = memory(refresh=False)
REQUESTS = 4000


def built_in_traces():
    """Name: (trace, cycles per request that the timing forces)."""
    i = np.arange(REQUESTS)
    zero = np.zeros(REQUESTS, int)
    rng = np.random.default_rng(1)
    scattered = [rng.integers(0, n, REQUESTS) for n in (4, 4, 1 << 14, 32)]
    return {
        "stream": (np.column_stack([zero, i % 4, i // 128 % 4, i // 512, i // 4 % 32]), DEFAULT.nCCDS),
        "one_group": (np.column_stack([zero, zero, i // 32 % 4, i // 128, i % 32]), DEFAULT.nCCDL),
        "one_bank": (np.column_stack([zero, zero, zero, i, zero]), DEFAULT.nRC),
        "scattered": (np.column_stack([zero, *scattered]), DEFAULT.nRRDS),
    }


@pytest.fixture
def files(tmp_path):
    """A pair of files with the built-in traces and their closed forms."""
    traces = {name: trace.astype(np.uint16) for name, (trace, _) in built_in_traces().items()}
    np.savez(tmp_path / "traces.npz", **traces)
    cycles = {name: rate * REQUESTS for name, (_, rate) in built_in_traces().items()}
    reference = {
        "timings_in_clock_cycles": {name: getattr(DEFAULT, name) for name in TIMINGS} | {"tCK_ps": 1000},
        "results": {
            name: {"requests": REQUESTS, "cycles": n, "cycles_with_refresh": round(n * 1.05), "row_hits": 0}
            for name, n in cycles.items()
        },
    }
    (tmp_path / "reference.json").write_text(json.dumps(reference))
    return tmp_path / "traces.npz", tmp_path / "reference.json"


def edit(path: Path, change):
    """Rewrites a JSON file."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("refresh", [False, True])
def test_reference_traces(refresh):
    """The promise is 3 %; what holds is 0.2 %, and the same cycles in all traces but one."""
    rows = validate(REFERENCE / "hbm2_traces.npz", REFERENCE / "hbm2_reference.json", 0.002, refresh)
    assert len(rows) == 18
    assert all(row.within for row in rows), [(row.name, row.error) for row in rows if not row.within]
    # The reference answers a read of a line that waits to be written from its write buffer; the model keeps the order.
    exact = [row for row in rows if row.name != "rw_random_75"]
    assert [row.cycles for row in exact] == [row.reference_cycles for row in exact]
    if not refresh:
        assert [row.row_hits for row in exact] == [row.reference_row_hits for row in exact]


@pytest.mark.parametrize("name", ["aligned_reads", "aligned_copies"])
def test_hashed_traces_are_the_same_lines_as_the_plain_ones(name):
    """The reference needed half the time, or four fifths, for what the hash makes of the lines."""
    traces = np.load(REFERENCE / "hbm2_traces.npz")
    results = json.loads((REFERENCE / "hbm2_reference.json").read_text())["results"]
    plain, hashed = traces[name].astype(int), traces[f"{name}_hashed"].astype(int)
    number = np.arange(REQUESTS * 5)
    line = number // 4 % 8 * 33 * 512 + number // 32 * 4 + number % 4
    assert (plain[:, 0] == hashed[:, 0]).all()
    for trace, bank_hash in ((plain, BankHash.NONE), (hashed, BankHash.ROW_XOR)):
        assert (np.column_stack(dram_address(line, LineOrder.ROTATE, bank_hash)) == trace[:, 1:]).all()
    assert results[f"{name}_hashed"]["cycles"] < 0.85 * results[name]["cycles"]


@pytest.mark.parametrize("refresh", [False, True])
def test_closed_forms(files, refresh):
    rows = validate(*files, 0.05, refresh)
    assert [row.name for row in rows] == list(built_in_traces())
    assert all(row.within for row in rows), [(row.name, row.error) for row in rows]
    assert all(row.error == pytest.approx(row.cycles / row.reference_cycles - 1) for row in rows)


def test_replay_ignores_the_queue_of_the_parameters():
    trace, rate = built_in_traces()["one_bank"]
    other = memory(DEFAULT, queue_lines=8, drain_high=0.5, drain_low=0.1, age_limit_cycles=10)
    assert replay(DEFAULT, trace) == replay(other, trace) == (REQUESTS - 33) * rate + 1


def test_tolerance_decides(files):
    edit(files[1], lambda content: content["results"]["stream"].update(cycles=9000))
    rows = {row.name: row for row in validate(*files, 0.05, False)}
    assert not rows["stream"].within and rows["one_bank"].within
    assert all(row.within for row in validate(*files, 0.2, False))


def test_wrong_timings_show(files):
    edit(files[1], lambda content: content["timings_in_clock_cycles"].update(nRC=60))
    rows = {row.name: row for row in validate(*files, 0.05, False)}
    assert not rows["one_bank"].within and rows["stream"].within


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("results"), "no table 'results'"),
        (lambda c: c.pop("timings_in_clock_cycles"), "no table 'timings_in_clock_cycles'"),
        (lambda c: c["timings_in_clock_cycles"].pop("nRP"), "nRP missing"),
        *(
            (lambda c, value=value: c["timings_in_clock_cycles"].update(nRP=value), f"^timing table: nRP: {message}")
            for value, message in (
                ("14", r"input should be a valid integer \(given: '14'\)$"),
                (None, r"input should be a valid integer \(given: None\)$"),
                ({"value": 14}, "input should be a valid integer"),
                (5000, r"input should be less than or equal to 4096 \(given: 5000\)$"),
            )
        ),
        (lambda c: c["timings_in_clock_cycles"].update(nRC=40), "^timing table: hbm.nRC must be at least nRAS"),
        (lambda c: c["results"].pop("stream"), "trace 'stream' is in .*traces.npz but not in .*reference.json"),
        (lambda c: c["results"].update(more={}), "trace 'more' is in .*reference.json but not in .*traces.npz"),
        (lambda c: c["results"]["stream"].pop("cycles"), "'stream': 'cycles' must be a count, not None"),
        (lambda c: c["results"]["stream"].update(cycles=True), "'stream': 'cycles' must be a count, not True"),
        (lambda c: c["results"]["stream"].update(requests=5), "for 5 requests .* the trace has 4000"),
        (lambda c: c["results"].update(stream=3), "result 'stream' .* must be a table"),
    ],
)
def test_wrong_references_are_refused(files, change, message):
    edit(files[1], change)
    with pytest.raises(ValueError, match=message):
        validate(*files, 0.05, False)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (np.zeros((5, 4), int), "rows of .write, bank_group, bank, row, column."),
        (np.zeros((0, 5), int), "rows of"),
        (np.zeros((5, 5)), "not float64"),
        (np.full((5, 5), 4), "column 'write' must be 0 to 1, not 4"),
        (np.array([[0, 0, 0, 0, 32]]), "column 'column' must be 0 to 31, not 32"),
        (np.array([[0, 0, -1, 0, 0]]), "column 'bank' must be 0 to 3, not -1"),
    ],
)
def test_wrong_traces_are_refused(files, trace, message):
    np.savez(files[0], stream=trace)
    with pytest.raises(ValueError, match=message):
        validate(*files, 0.05, False)
    with pytest.raises(ValueError, match=message):
        replay(DEFAULT, trace)


def with_bytes(path: Path, offset: int, *values: int) -> None:
    """Overwrites bytes of the only member's header, which an archive has at its start and again at its end."""
    content = bytearray(path.read_bytes())
    for start in (offset, content.rindex(b"PK\x01\x02") + offset + 2):
        content[start : start + len(values)] = values
    path.write_bytes(content)


def with_broken_data(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[120:160] = bytes([0xFF]) * 40
    path.write_bytes(content)


def with_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, built_in_traces()["stream"][0])


def with_no_array(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("stream", "no array")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: with_bytes(path, 6, 1), "is not an .npz file of arrays .*encrypted"),
        (lambda path: with_bytes(path, 8, 99), "is not an .npz file of arrays .*compression method"),
        (with_broken_data, "is not an .npz file of arrays"),
        (lambda path: path.write_bytes(b""), "is not an .npz file of arrays"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is not an .npz file of arrays"),
        (with_one_array, "is not an .npz file of arrays .but one array."),
        (with_no_array, "array 'stream' of .* must be an array, not b'no array'"),
    ],
)
def test_broken_archives_are_refused(files, change, message):
    np.savez_compressed(files[0], stream=built_in_traces()["stream"][0])
    change(files[0])
    with pytest.raises(ValueError, match=message):
        validate(*files, 0.05, False)


def test_wrong_files_are_refused(files, tmp_path):
    traces, reference = files
    (tmp_path / "text").write_text("no numbers")
    for pair, message in [
        ((tmp_path / "none", reference), "traces: no file"),
        ((traces, tmp_path / "none"), "reference: no file"),
        ((tmp_path / "text", reference), "is not an .npz file"),
        ((traces, tmp_path / "text"), "is not a JSON file"),
    ]:
        with pytest.raises(ValueError, match=message):
            validate(*pair, 0.05, False)
    with pytest.raises(ValueError, match="tolerance must be above 0"):
        validate(traces, reference, 0.0, False)
