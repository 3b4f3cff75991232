"""The result record: its schema, its bytes, and outputs that are whole or absent."""

import json
import os
from pathlib import Path

import pytest
from t3sim.common.output import write_atomically
from t3sim.run.records import read_result
from t3sim.run.result import write_result

from tests.support.sample_result import sample_result


def test_record_has_the_documented_fields(tmp_path: Path):
    path = tmp_path / "result.json"
    write_result(sample_result("t3-mca"), path)
    record = json.loads(path.read_text())
    assert record["schema"] == 1
    assert record["workload"] == {
        "model": "t-nlg", "sublayer": "fc2", "tp": 8, "m": 8192, "n": 4256, "k": 2128, "k_smallest": 2128,
        "k_total": 17024, "dtype": "fp16",
    }  # fmt: skip
    assert set(record) == {
        "schema", "opent3", "policy", "hardware", "machine", "provenance", "mirror", "seed", "gpus_simulated",
        "workload", "gemm", "time_ns", "traffic_bytes_per_gpu", "tracker", "blocks", "rtl", "data_check",
        "contention", "identities",
    }  # fmt: skip
    assert set(record["time_ns"]) == {
        "total",
        "gemm",
        "reduce_scatter",
        "all_gather",
        "exposed_communication",
        "init_write",
    }
    assert set(record["rtl"]) == {"cycles", "cycles_evaluated", "cycles_skipped", "evaluated_by_part"}
    assert '"wall"' not in path.read_text(), "real time would make the record differ from run to run"


def test_record_reads_back_and_is_deterministic(tmp_path: Path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write_result(sample_result("t3"), first)
    write_result(read_result(first), second)
    assert first.read_bytes() == second.read_bytes()
    assert read_result(second) == sample_result("t3")


def test_fields_without_meaning_are_null():
    record = json.loads(sample_result("ideal-overlap").to_json())
    assert record["tracker"] is None
    assert record["rtl"] is None


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 2}', '{"schema": 1, "more": 0}'])
def test_other_files_are_not_read_as_records(tmp_path: Path, content):
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"result\.json (is not JSON|is not a record of this version|has format)"):
        read_result(path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch):
    path = tmp_path / "result.json"
    write_atomically(path, "old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.json"]
