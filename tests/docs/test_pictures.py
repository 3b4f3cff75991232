"""Pictures that are drawn from what a run wrote: what they show is there."""

from pathlib import Path

import opent3
from matplotlib.image import imread

from docs.pages.played import traces


def test_the_picture_of_a_trace_shows_tracks_and_flows_of_the_file(tmp_path: Path, monkeypatch):
    path = tmp_path / "run.pftrace"
    opent3.run(
        opent3.custom_workload(m=128, n=64, k=64, tp=4), "t3-mca", machine="toy", settings=traces.SETTINGS,
        hardware="golden", trace=path,
    )  # fmt: skip
    found = traces.lanes(path)
    wanted = {(process, name) for process, names in traces.SHOWN for name in names}
    wanted |= {(traces.SHOWN[1][0], name) for name in traces.COUNTERS}
    assert wanted <= {(lane.process, lane.name) for lane in found}
    sender, receiver = (process for process, _ in traces.SHOWN)
    sent, arrived = (
        {flow for lane in found if (lane.process, lane.name) == track for _, _, flows in lane.slices for flow in flows}
        for track in ((sender, "link out"), (receiver, "link in"))
    )
    assert sent == arrived and sent, "GPU 1 sends to GPU 0"
    monkeypatch.setattr(traces, "PICTURE", tmp_path / "traces.png")
    traces.draw(found)
    shape = imread(tmp_path / "traces.png").shape
    assert shape[1] == imread(traces.GUIDES / "traces.png").shape[1] == 1152
