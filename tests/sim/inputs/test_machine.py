"""Machine presets: every number has a unit and a source, and every illegal machine is refused with a clear message."""

import re
import tomllib
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path

import pytest
from t3hdl.config import PARAMETERS, PRESETS, T3Config
from t3sim.inputs.machine.files import Machine, load_machine, preset_names
from t3sim.inputs.machine.gpu import STORE_ROW_BYTES
from t3sim.inputs.machine.machine import SECTIONS, unit_of
from t3sim.inputs.machine.settings import parse_setting, parse_settings

NUMBER_SOURCE = re.compile(
    r"\[[PDAS]\] .{5,}|HBM2_\w+ of Ramulator 2\.1.*|HBM2 of PIMSimulator: .+|(GPGPU|Accel)-Sim: .{5,}"
)


def test_preset_names():
    assert preset_names() == [
        "a100-like", "b200-like", "h100-like", "h200-like", "mi300x-like", "paper", "paper-accelsim",
        "paper-samsung", "toy",
    ]  # fmt: skip


@pytest.mark.parametrize("name", preset_names())
def test_every_setting_of_a_preset_has_a_unit_and_a_source(name):
    text = (resources.files("t3sim.inputs.machine") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    settings = [
        (section, key, item)
        for section, table in tomllib.loads(text).items()
        if section != "base"
        for key, item in table.items()
    ]
    assert settings
    for section, key, item in settings:
        where = f"{name}: {section}.{key}"
        assert isinstance(item, dict), f"{where} is a plain value"
        assert NUMBER_SOURCE.fullmatch(item["source"]), f"{where} has no proper source: {item['source']!r}"
        assert item.get("unit") == unit_of(section, key), f"{where} has unit {item.get('unit')!r}"


@pytest.mark.parametrize("name", preset_names())
def test_a_resolved_machine_knows_the_source_of_every_setting(name):
    machine = load_machine(name)
    settings = {f"{section}.{key}" for section, model in SECTIONS.items() for key in model.model_fields}
    of_the_preset = {f"hardware.{key}" for key in PARAMETERS if getattr(machine.hardware, key) is None}
    assert set(machine.sources) == settings - of_the_preset


def test_every_number_has_a_unit():
    dimensionless = {
        f"{section}.{key}"
        for section, model in SECTIONS.items()
        for key in model.model_fields
        if unit_of(section, key) is None
    }
    assert dimensionless == {
        "gpu.dispatch", "gpu.store_release", "llc.replacement", "hbm.refresh", "hbm.queue", "hbm.line_order",
        "hbm.bank_hash", "hbm.service_order", "hbm.hit_order", "hbm.row_policy", "hbm.substrate",
        "link.retry", "dma.block", "arbiter.mca", "hardware.preset", "hardware.dtypes", "hardware.protect",
        "hardware.count_on",
    }  # fmt: skip


def test_samsung_preset_has_other_timings_and_nothing_else():
    paper, samsung = load_machine("paper"), load_machine("paper-samsung")
    assert paper.model_copy(update={"hbm": samsung.hbm, "name": samsung.name, "sources": samsung.sources}) == samsung
    differ = {key for key, value in samsung.hbm if value != getattr(paper.hbm, key)}
    assert differ == {
        "nCL", "nCWL", "nRCDWR", "nRAS", "nRC", "nRRDL", "nFAW", "nWTRS", "nWTRL", "nRFC", "pim_switch_cycles",
    }  # fmt: skip


def test_accelsim_preset_has_the_public_timings_and_keeps_what_the_paper_says():
    paper, machine = load_machine("paper"), load_machine("paper-accelsim")
    timing = "CCD=1:RRD=4:RCD=14:RAS=33:RP=14:RC=47:CL=14:WL=2:CDLR=3:WR=12:CCDL=2:RTPL=4"
    names = {"CCD": "nCCDS", "RRD": "nRRDS", "RCD": "nRCDRD", "WL": "nCWL", "CDLR": "nWTRS"}
    for name, clocks in (item.split("=") for item in timing.split(":")):
        assert getattr(machine.hbm, names.get(name, f"n{name}")) == int(clocks), name
    assert machine.hbm.channels * 32 / machine.hbm.nBL * machine.hbm.clock_mhz / 1e3 == 1024
    assert machine.hardware.config() == replace(PRESETS["paper"], slices=32)
    changed = {key for key, source in machine.sources.items() if source != paper.sources.get(key)}
    kept = {key for key, source in paper.sources.items() if source.startswith(("[P]", "[D]"))} - {"hbm.channels"}
    assert changed & kept == {"hbm.queue"}  # which is the same there
    assert machine.hbm.queue == paper.hbm.queue


def test_paper_machine_has_the_published_rates():
    machine = load_machine("paper")
    tflops = machine.gpu.cus * machine.gpu.clock_mhz * machine.gpu.flop_per_clock_per_cu / 1e6
    assert tflops == pytest.approx(114.7, abs=0.05)
    line_rate_gb_s = 32 / machine.hbm.nBL * machine.hbm.clock_mhz / 1e3
    assert machine.hbm.channels * line_rate_gb_s == pytest.approx(1024)
    assert machine.hardware.config() == PRESETS["paper"]


def test_paper_kernel_has_the_published_slowdown_on_8_cus():
    """A middle step reads two bytes for each that it sends: 1.41 times the link's time on 8 CUs, none lost on 16."""
    machine = load_machine("paper")
    per_cu = machine.kernel.bytes_per_clock_per_cu * machine.gpu.clock_mhz / 1e3 / 2
    payload = machine.link.gb_s * STORE_ROW_BYTES / (STORE_ROW_BYTES + machine.link.header_bytes)
    assert payload / (8 * per_cu) == pytest.approx(1.41, rel=0.01)
    assert payload < 16 * per_cu


@pytest.mark.parametrize("name", preset_names())
def test_resolved_file_reads_back_to_the_same_machine(name, tmp_path: Path):
    machine = load_machine(name, {
        "link.gb_s": 33.5, "hardware.tracker_ways": 4, "hardware.dtypes": ["fp16", "int32"], "hardware.protect": True,
        "variation.clock_scale": [1.0, 0.9], "gpu.tiles": [[64, 32], [32, 128]],
    })  # fmt: skip
    path = tmp_path / f"{name}.toml"
    path.write_text(machine.to_toml(), encoding="utf-8")
    assert load_machine(path) == machine.model_copy(update={"settings": {}})
    assert machine.hardware.config().tracker_ways == 4
    assert machine.hardware.config().dtypes == ("fp16", "int32")


def test_a_user_file_replaces_only_what_it_names(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "paper"\n[link]\ngb_s = 75\n', encoding="utf-8")
    child = tmp_path / "child.toml"
    child.write_text('base = "mine.toml"\n[link]\nlatency_ns = { value = 900, unit = "ns" }\n', encoding="utf-8")
    paper, machine = load_machine("paper"), load_machine(child)
    assert machine.link == paper.link.model_copy(update={"gb_s": 75.0, "latency_ns": 900})
    assert machine.hbm == paper.hbm
    assert machine.sources["link.gb_s"] == "machine file mine.toml"
    assert machine.sources["link.latency_ns"] == "machine file child.toml"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("gpu.cu", 3, r"unknown key gpu\.cu; did you mean 'cus'"),
        ("gpux.cus", 3, r"unknown section 'gpux'; did you mean 'gpu'"),
        ("zz.cus", 3, r"unknown section 'zz'; known: gpu, llc"),
        ("gpu.cus", "80", r"gpu\.cus: .*integer \(given: '80'\)"),
        ("gpu.cus", True, r"gpu\.cus: .*integer \(given: True\)"),
        ("gpu.cus", 0, r"gpu\.cus: .*greater than or equal to 1 \(given: 0\)"),
        ("gpu.cus", {"value": 3, "unit": "MHz"}, r"gpu\.cus is in CUs, not 'MHz'"),
        ("gpu.cus", {"amount": 3}, r"gpu\.cus must be a plain value or \{ value, unit, source \}"),
        ("gpu.dispatch", "lockstep", r"gpu\.dispatch: .*'free' or 'stage'"),
        ("gpu.tiles", [[128, 128], [100, 64]], r"multiple of gpu\.wavefronts \(8\), not 100 as in \[100, 64\]$"),
        ("gpu.tiles", [[128, 40]], r"cols a multiple of 16 .*\[\[128, 64\]\], not \[\[128, 40\]\]$"),
        ("gpu.tiles", [[128, 144]], r"up to 128 .*not \[\[128, 144\]\]$"),
        ("gpu.tiles", [[1032, 64]], r"rows of 1 to 1024 .*not \[\[1032, 64\]\]$"),
        ("gpu.tiles", [128, 64], r"^machine 'paper': gpu\.tiles must be a list of .*not \[128, 64\]$"),
        ("gpu.tiles", [[128, 64, 2]], r"^machine 'paper': gpu\.tiles must be a list of .*not \[\[128, 64, 2\]\]$"),
        ("gpu.tiles", [[128, True]], r"^machine 'paper': gpu\.tiles must be a list of .*not \[\[128, true\]\]$"),
        ("gpu.tiles", [["128", 64]], r"gpu\.tiles must be a list of .*not \[\[\"128\", 64\]\]$"),
        ("gpu.tiles", [], r"gpu\.tiles must be a list of one or more .*not \[\]$"),
        ("gpu.tiles", "128x64", r"gpu\.tiles must be a list of .*not \"128x64\"$"),
        ("gpu.tiles", [[64, 64], [64, 64]], r"gpu\.tiles must name each tile once, not \[\[64, 64\], \[64, 64\]\]$"),
        ("llc.replacement", "plru", r"llc\.replacement: .*'lru' or 'random'"),
        ("gpu.wavefronts", 16, r"gpu\.wavefronts must be at most the hardware's wavefronts \(8\), not 16"),
        ("llc.capacity_kib", 1023, r"llc\.capacity_kib must be whole sets"),
        ("kernel.cus", 81, r"kernel\.cus must be at most gpu\.cus \(80\), not 81; lower kernel\.cus or raise gpu\.cus"),
        ("kernel.outstanding_lines_per_cu", 7, r"kernel\.outstanding_lines_per_cu: .*equal to 8 \(given: 7\)"),
        ("hbm.channels", 48, r"hbm\.channels must be a power of two, not 48"),
        ("hbm.channels", 32, r"64 slices and hbm\.channels is 32; set hbm\.channels = 64"),
        ("hbm.drain_low", 0.9, r"hbm\.drain_low must be below drain_high \(0\.8\), not 0\.9"),
        ("hbm.nRC", 47, r"hbm\.nRC must be at least nRAS \+ nRP \(48\), not 47"),
        ("hbm.nREFI", 100, r"hbm\.nREFI must be above nRFC \+ nRC \(208\), not 100"),
        (
            "hardware.preset",
            "smal",
            r"hardware preset must be one of paper, paper-fit, small, fpga, fpga-all, fpga-hx8k, fpga-up5k, not 'smal'",
        ),
        ("hardware.ways", 2, r"unknown key hardware\.ways; known: preset, slices, "),
        ("hardware.overrides.ways", 2, r"unknown key hardware\.overrides\.ways"),
        ("hardware.slices", "64", r"hardware\.slices: .*integer \(given: '64'\)"),
        ("hardware.slices", 65, r"hardware\.slices: .*less than or equal to 64 \(given: 65\)"),
        ("hardware.slices", 48, r"slices must be a power of two, not 48"),
        ("hardware.slices", None, r"hardware\.slices must have a value; leave it out"),
        ("hardware.slices", {"value": 64, "unit": "sets"}, r"hardware\.slices is in channels, not 'sets'"),
        ("hardware.row_index_bits", 1, r"row_index_bits must be in 3 \(bank bits\) to 8 \(set bits\), not 1"),
        ("hardware.dtypes", ["fp8"], r"dtypes must be among fp16, bf16, fp32, int32, each once, in this order"),
        ("hardware.dtypes", [4], r"hardware\.dtypes\.0: .*string \(given: 4\)"),
        ("hardware.protect", 1, r"hardware\.protect: .*boolean \(given: 1\)"),
        ("hardware.count_on", "seen", r"hardware\.count_on: .*'accepted' or 'performed' \(given: 'seen'\)"),
        ("variation.clock_scale", [1.0, 0.0], r"variation\.clock_scale\.1: .* or equal to 0\.001 \(given: 0\.0\)"),
        ("variation.start_skew_ns", [-1.0], r"variation\.start_skew_ns\.0: .* or equal to 0 \(given: -1\.0\)"),
    ],
)
def test_illegal_settings_are_refused_by_name_rule_and_value(setting, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_machine("paper", {setting: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[gpu]\ncus = 4\n", r'these are not: gpu\.clock_mhz, .*, variation; .* begins with a line as base = "paper"'),
        ("[gpu]\ncus = 0\n", r"gpu\.cus: input should be .* equal to 1 \(given: 0\); every value must be there"),
        ("[gpu\n", "is not TOML"),
        ("base = 3\n", "base must be the name of a preset or file, not 3"),
        ("base = 'mine.toml'\n", "is its own base"),
        ("cus = 80\n", r"'cus' must be a section like \[gpu\]"),
        ("base = 'paper'\n[link]\ngb_s = { value = 1, unit = 'Gb/s' }\n", r"link\.gb_s is in GB/s, not 'Gb/s'"),
    ],
)
def test_bad_machine_files_are_refused(tmp_path: Path, content, message):
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_machine(path)


def test_unknown_and_unreadable_machines_name_the_presets(tmp_path: Path):
    with pytest.raises(
        ValueError,
        match="one of a100-like, .*, paper, paper-accelsim, paper-samsung, toy or a readable TOML file, not 'papr'",
    ):
        load_machine("papr")
    with pytest.raises(ValueError, match="readable TOML file"):
        load_machine(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        load_machine(binary)


HARDWARE = {
    "node_inputs": 4, "leaf_outputs": 1, "ranges": 1, "contexts": 4, "tracker_sets": 8, "tracker_ways": 4,
    "tracker_banks": 1, "row_index_bits": 1, "descriptors": 16, "chunk_window": 3, "blocks": 8, "tile_marks": 512,
    "wavefronts": 4, "tile_count_bits": 9, "chunk_count_bits": 17, "token_queue": 4, "event_queue": 4,
    "egress_ports": 2, "nmc_lanes": 8, "nmc_latency": 4, "dtypes": ["fp16"], "protect": True, "count_on": "performed",
}  # fmt: skip
"""A legal change of each parameter of the toy's hardware but its number of slices, which is that of channels."""


def test_every_parameter_of_the_hardware_can_be_set():
    """By its name in the section, one at a time, in a file and for a run."""
    assert {"slices", *HARDWARE} == PARAMETERS.keys()
    before = asdict(load_machine("toy").hardware.config())
    for name, value in {**HARDWARE, "slices": 2}.items():
        more = {"slices": {"hbm.channels": 2}, "event_queue": {"hardware.blocks": 8}}.get(name, {})
        machine = load_machine("toy", {f"hardware.{name}": value, **more})
        expected = {name: tuple(value) if isinstance(value, list) else value}
        if name == "event_queue":  # a longer queue needs as many blocks
            expected["blocks"] = 8
        assert asdict(machine.hardware.config()) == before | expected
        assert machine.sources[f"hardware.{name}"] == "set for this run"


def test_a_parameter_of_the_hardware_outlives_another_preset(tmp_path: Path):
    """What a file says of its base's hardware is said of the preset that replaces it."""
    (tmp_path / "base.toml").write_text('base = "paper"\n[hardware]\ntoken_queue = { value = 16, unit = "tokens" }\n')
    (tmp_path / "mine.toml").write_text('base = "base.toml"\n[hardware]\npreset = "paper-fit"\n')
    assert load_machine(tmp_path / "mine.toml").hardware.config() == replace(PRESETS["paper-fit"], token_queue=16)


def test_per_gpu_lists_need_one_value_per_gpu():
    machine = load_machine("toy", {"variation.link_gb_s": [20, 10]})
    machine.check_gpus(2)
    with pytest.raises(ValueError, match=r"variation\.link_gb_s must be empty or have one value for each of 4 GPUs"):
        machine.check_gpus(4)


def test_a_machine_cannot_be_changed():
    machine = load_machine("toy")
    with pytest.raises(ValueError, match="frozen"):
        machine.gpu.cus = 5
    assert isinstance(machine, Machine)
    assert isinstance(machine.hardware.config(), T3Config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu.cus=40", ("gpu.cus", 40)),
        ("link.gb_s = 75.5", ("link.gb_s", 75.5)),
        ("hbm.refresh=false", ("hbm.refresh", False)),
        ("gpu.dispatch=stage", ("gpu.dispatch", "stage")),
        ("gpu.tiles=[[64,128]]", ("gpu.tiles", [[64, 128]])),
        ("variation.clock_scale=[1, 0.9]", ("variation.clock_scale", [1, 0.9])),
        ("hardware.slices=4", ("hardware.slices", 4)),
        ('hardware.dtypes=["fp16"]', ("hardware.dtypes", ["fp16"])),
    ],
)
def test_settings_are_parsed_as_toml_or_as_a_word(text, expected):
    assert parse_setting(text) == expected


def test_a_key_is_set_once():
    assert parse_settings(["gpu.cus=4", "link.gb_s=5"]) == {"gpu.cus": 4, "link.gb_s": 5}
    with pytest.raises(ValueError, match=r"^--set must give each key once, and gpu\.cus comes twice"):
        parse_settings(["gpu.cus=4", "gpu.cus = 5"])


@pytest.mark.parametrize("text", ["gpu.cus", "cus=3", "=3"])
def test_a_setting_needs_section_key_and_value(text):
    with pytest.raises(ValueError, match=r"section\.key=value"):
        parse_setting(text)
