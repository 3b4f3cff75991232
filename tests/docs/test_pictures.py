"""Pictures that are drawn from what a run wrote: what they show is there."""

from pathlib import Path

from matplotlib.image import imread

from docs.pages.played import traces, waves


def test_the_picture_of_a_trace_shows_tracks_and_flows_of_the_file(tmp_path: Path, monkeypatch):
    found = traces.lanes(traces.traced(tmp_path / "run.pftrace"))
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
    assert says(traces.GUIDES / "traces.png", traces.described(found)), "old: python -m docs.pages.played.traces"


def test_the_picture_of_waves_shows_todays_clocks():
    window = waves.window_shown(waves.request_shown())
    assert says(waves.PICTURE, waves.described(window)), "old: python -m docs.pages.played.waves"


def says(picture: Path, description: str) -> bool:
    """Whether a PNG carries this description."""
    return b"Description\0" + description.encode() in picture.read_bytes()
