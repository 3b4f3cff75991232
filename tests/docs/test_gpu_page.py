"""The page of the model beside GPUs: comparisons belong to their measurements."""

import json

import pytest
from t3sim.run.records import read_record
from t3sim.validation.gpu_record import GpuRecord

from docs.pages.gpu import KEPT, MACHINES, section

FOLDER, MACHINE = next(iter(MACHINES.items()))


@pytest.mark.parametrize("change", [{"measured": "2020-01-01T00:00:00+00:00"}, {"machine": "a100-like"}])
def test_a_comparison_of_another_measurement_is_refused(change):
    record = read_record(KEPT / FOLDER / "gpu.json", GpuRecord)
    compared = json.loads((KEPT / FOLDER / "validate.json").read_text())
    assert record.device.name in section(FOLDER, record, compared, MACHINE)
    with pytest.raises(ValueError, match=f"{FOLDER}/validate.json is of another measurement"):
        section(FOLDER, record, compared | change, MACHINE)
