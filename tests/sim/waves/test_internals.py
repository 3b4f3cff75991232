"""Internal signals: the same RTL at the same time as the ports, and nothing of another instance."""

import pytest
from t3sim.hardware.abi import words_of
from t3sim.waves.internals import parse
from t3sim.waves.record import Wave, Window
from t3sim.waves.signals import NOW

from .recorded import ALL, VcdFile, request, waves

BUSY = Window(first=900, last=1500)  # with clocks in which parts are stepped, and others in which they are not
TOGETHER = "slice.3,matcher,leaf.1,root,tracker,trigger,monitor"


def inside(parts: str = TOGETHER, **options):
    return waves("rtl", BUSY, parts, internals=True, **options)


def in_clocks(changes, number, first, last):
    """The value of a signal in every clock of the window."""
    at = {cycle: value for cycle, n, value in changes if n == number}
    found, value = [], None
    for cycle in range(first, last):
        value = at.get(cycle, value)
        found.append(value)
    return found


def shown_port(wave: Wave, port: str):
    """The signals of a port, and for each its offset and its values in every clock."""
    config = request().machine.hardware.config()
    words = words_of(config, wave.instance.part)
    for number, signal in enumerate(wave.signals):
        side = words.inputs if signal.is_input else words.outputs
        if side.get(port) == signal.place:
            yield signal, in_clocks(wave.changes, number, BUSY.first, BUSY.last)


@pytest.mark.parametrize("index", range(7))
def test_the_modules_ports_are_those_of_the_part_in_every_clock(index):
    """Inputs and outputs, each with the time that it belongs to: also where the engine skips a part."""
    of = inside()
    wave = of.parts[index]
    words = words_of(request().machine.hardware.config(), wave.instance.part)
    numbers = {signal.path[1:]: number for number, signal in enumerate(wave.internals.signals)}
    compared = 0
    for port in {*words.inputs, *words.outputs} - {NOW}:
        raw = in_clocks(wave.internals.changes, numbers[(port.replace(".", "__"),)], BUSY.first, BUSY.last)
        for signal, values in shown_port(wave, port):
            for bits, value in zip(raw, values, strict=True):
                if value is not None:
                    assert bits >> signal.offset & (1 << signal.bits) - 1 == value, (port, signal.path)
                    compared += 1
    assert compared > 600


def test_the_time_within_a_part_goes_on_in_clocks_that_the_engine_skips():
    of = inside()
    for wave in of.parts:
        numbers = {signal.path[1:]: number for number, signal in enumerate(wave.internals.signals)}
        if ("now",) in numbers:
            shown = in_clocks(wave.internals.changes, numbers[("now",)], BUSY.first, BUSY.last)
            assert shown == [cycle + of.epoch for cycle in range(BUSY.first, BUSY.last)], wave.instance.name


def test_modules_within_the_part_are_scopes_of_their_own():
    of = inside()
    file = VcdFile(of)
    below = [name for name in file.changes if name.startswith("tracker.t3_tracker.core.")]
    assert len(below) > 100 and sum(len(file.changes[name]) > 1 for name in below) > 50
    assert file.times == sorted(set(file.times))


def test_each_instance_shows_its_own_signals():
    slices = waves("rtl", BUSY, "slice", internals=True).parts
    assert len({len(wave.internals.signals) for wave in slices}) == 1
    assert len({tuple(wave.internals.changes) for wave in slices}) == 4


def test_threads_change_nothing():
    assert inside("tracker", threads=1).parts == inside("tracker", threads=2).parts


def test_the_ports_are_as_without_internals():
    with_internals, without = inside(), waves("rtl", BUSY, TOGETHER)
    assert [wave.changes for wave in with_internals.parts] == [wave.changes for wave in without.parts]
    assert not any(wave.internals.signals for wave in without.parts)


def test_names_of_verilator_become_scopes_and_names():
    found = parse(
        b"$timescale 1ps $end\n$scope module TOP $end\n$var wire 1 ! clk $end\n$scope module t3_part $end\n"
        b" $var wire 1 ! clk $end\n $var wire 2 # $signal$3 [1:0] $end\n $var wire 8 $ rows[1] [7:0] $end\n"
        b" $var wire 1 % used[0] $end\n $var wire 2 & entry.tag [1:0] $end\n $var wire 2 & alias [1:0] $end\n"
        b"$upscope $end\n$upscope $end\n$enddefinitions $end\n#7\nb00000101 $\n1%\nb10 &\n0!\n#8\nb01 &\n"
    )
    paths = [".".join(signal.path) for signal in found.signals]
    assert paths == ["t3_part.rows_1", "t3_part.used_0", "t3_part.entry.tag", "t3_part.alias"]
    assert [signal.bits for signal in found.signals] == [8, 1, 2, 2]
    assert found.changes == [(7, 0, 5), (7, 1, 1), (7, 2, 2), (7, 3, 2), (8, 2, 1), (8, 3, 1)]


def test_every_part_has_internals():
    assert {wave.instance.part for wave in inside().parts} == set(ALL.split(","))
