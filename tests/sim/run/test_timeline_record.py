"""``timeline.json``: what the engine's timeline has, in numbers that read back."""

import json

import numpy as np
import pytest
from pydantic import ValidationError
from t3sim.run.events import QUEUES
from t3sim.run.request import CAUSES
from t3sim.run.timeline_record import TimelineRecord

from tests.support.sample_result import sample_timeline


@pytest.mark.parametrize("policy", ["sequential", "t3-mca"])
def test_the_record_has_all_of_the_timeline(policy):
    timeline = sample_timeline(policy, gpus=3)
    record = TimelineRecord.of(timeline)
    assert TimelineRecord.model_validate_json(record.text()) == record
    assert record.bin_ns == timeline.bin_ns and len(record.gpus) == 3
    for number, gpu in enumerate(record.gpus):
        np.testing.assert_allclose(gpu.cu_busy, timeline.cu_busy[number], atol=1e-6)
        np.testing.assert_array_equal(gpu.link_bytes, np.rint(timeline.link_bytes[number]))
        np.testing.assert_array_equal(gpu.incoming_updates, np.rint(timeline.updates[number]))
        np.testing.assert_array_equal(gpu.local_updates, np.rint(timeline.local_updates[number]))
        for cause in CAUSES:
            np.testing.assert_array_equal(gpu.dram_bytes[cause], np.rint(timeline.bytes[cause][number]))
        for queue in QUEUES:
            np.testing.assert_allclose(getattr(gpu.queues, queue), timeline.queues[queue][number], atol=1e-6)
    spans = [(n, item.kind, item.start_ns, item.end_ns) for n, gpu in enumerate(record.gpus) for item in gpu.intervals]
    assert spans == [(item.gpu, item.kind, item.start_ns, item.end_ns) for item in timeline.intervals]
    fired = [(n, item.chunk, item.time_ns) for n, gpu in enumerate(record.gpus) for item in gpu.triggers]
    assert fired == [(item.gpu, item.chunk, item.time_ns) for item in timeline.triggers]


def test_the_file_has_a_line_for_each_gpu():
    text = TimelineRecord.of(sample_timeline("t3", gpus=4)).text()
    assert len(text.splitlines()) == 1 + 4 + 1
    assert TimelineRecord.of(sample_timeline("t3", gpus=4)).text() == text


def test_a_record_of_before_the_queues_is_read():
    content = json.loads(TimelineRecord.of(sample_timeline("t3", gpus=2)).text())
    assert content["schema"] == 2
    old = content | {"schema": 1, "gpus": [{k: v for k, v in gpu.items() if k != "queues"} for gpu in content["gpus"]]}
    assert [gpu.queues for gpu in TimelineRecord.model_validate(old).gpus] == [None, None]
    for wrong in (content | {"schema": 1}, old | {"schema": 2}):
        with pytest.raises(ValidationError, match="queues in format 2, and none in format 1"):
            TimelineRecord.model_validate(wrong)


@pytest.mark.parametrize("change", ["shorter", "cause", "none", "surplus", "queue", "longer queue"])
def test_a_record_that_is_not_whole_is_refused(change):
    content = json.loads(TimelineRecord.of(sample_timeline("t3", gpus=2)).text())
    if change == "shorter":
        content["gpus"][1]["cu_busy"].pop()
    elif change == "cause":
        del content["gpus"][0]["dram_bytes"]["rs_read"]
    elif change == "none":
        content["gpus"] = []
    elif change == "queue":
        del content["gpus"][1]["queues"]["tokens"]
    elif change == "longer queue":
        content["gpus"][1]["queues"]["tokens"].append(0)
    else:
        content["gpus"][0]["more"] = []
    with pytest.raises(ValidationError):
        TimelineRecord.model_validate(content)
