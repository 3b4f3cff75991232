"""The memory slice under random traffic: what it passes, gives back and counts, and the idle promise."""

from collections import Counter

import pytest
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import Op

from tests.contract.slice.scene import PERFORMED, PORTS, TILE, UPDATES, WRITE_PORTS, Scene

ITEMS = 150


def _item(scene: Scene, port: str, tag: int) -> dict:
    rng = scene.random
    tile = {**TILE, "row": rng.randrange(2), "col": rng.randrange(2)}
    op = rng.choice(UPDATES) if port.endswith("write") else rng.choice([Op.READ, Op.READ_CLEAR])
    line, tagged, context = rng.randrange(900, 2100), int(rng.random() < 0.8), rng.choice([1, 1, 0])
    epoch = rng.choice([2, 2, 2, 3])
    length = rng.choice([0, 7 - line % 8, rng.randint(0, 7 - line % 8), rng.randrange(8)])
    return {
        "line": line,
        "length": length,
        "op": op,
        "tagged": tagged,
        "tag": tag,
        **tile,
        "context": context,
        "epoch": epoch,
    }


def _update_in_range(item: dict) -> bool:
    return item["op"] in UPDATES and all(1000 <= line < 2000 for line in _lines(item))


def _lines(item: dict) -> range:
    return range(item["line"], item["line"] + item["length"] + 1)


def _improper(item: dict) -> bool:
    """In two blocks, or in the range and out of it."""
    first, last = _lines(item)[0], _lines(item)[-1]
    return first // 8 != last // 8 or (1000 <= first < 2000) != (1000 <= last < 2000)


def _tracked(item: dict) -> bool:
    mine = item["context"] == 1 and item["epoch"] == 2
    return bool(_update_in_range(item) and not _improper(item) and item["tagged"] and mine)


def _violation(item: dict) -> bool:
    return bool(_improper(item) or (_update_in_range(item) and item["context"] != 1))


def _stale(item: dict) -> bool:
    return bool(item["op"] in UPDATES and item["tagged"] and not _tracked(item) and not _violation(item))


class _Traffic:
    """Random items at all ports, random levels, reports in any order."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.refused: dict[str, list[int]] = {"compute": [], "comm": []}
        self.stale: dict[str, list[int]] = {"compute": [], "comm": []}
        self.in_memory: list[dict] = []
        self.seen = 0
        self.offered = {
            port: [_item(scene, port, 1000 * index + i) for i in range(ITEMS)] for index, port in enumerate(PORTS)
        }
        for port, items in self.offered.items():
            scene.offer(port, *items)

    def step(self) -> None:
        scene, rng = self.scene, self.scene.random
        if scene.now > 1500:
            scene.gap, scene.accept = 0.0, {"dram": 1.0, "token": 1.0}
            scene.set("threshold", NO_LIMIT)
        elif scene.now % 16 == 0:
            scene.gap = rng.choice([0.0, 0.0, 0.7, 1.0])
            scene.accept = {"dram": rng.choice([0, 0.4, 1]), "token": rng.choice([0, 0.1, 0.5, 1])}
            scene.set("threshold", rng.choice([0, 5, NO_LIMIT]))
            scene.set("occupancy", rng.choice([0, 4, 5, 60]))
        reports = {}
        if self.in_memory and rng.random() < 0.6:
            reports["update_done"] = self.in_memory.pop(rng.randrange(len(self.in_memory)))
        scene.step(**reports)
        for stream, item in scene.refused().items():
            self.refused[stream].append(item["tag"])
        for stream, item in scene.stale().items():
            self.stale[stream].append(item["tag"])
        passed = [request for _, request in scene.got["dram"][self.seen :]]
        self.seen += len(passed)
        self.in_memory += [request for request in passed if request["tagged"]]

    def check(self) -> None:
        """Every item passed once, in order, or was given back; every update was counted once."""
        requests = [request for _, request in self.scene.got["dram"]]
        for index, port in enumerate(PORTS):
            seen = [request for request in requests if request["tag"] // 1000 == index]
            foreign, stale = (
                [item for item in self.offered[port] if port in WRITE_PORTS and cause(item)]
                for cause in (_violation, _stale)
            )
            passed = [item for item in self.offered[port] if item not in foreign + stale]
            assert [request["tag"] for request in seen] == [item["tag"] for item in passed], f"{port}: order"
            assert [request["tagged"] for request in seen] == [_tracked(item) for item in passed]
            if port in WRITE_PORTS:
                stream = port.removesuffix("_write")
                assert self.refused[stream] == [item["tag"] for item in foreign], f"{port}: refused"
                assert self.stale[stream] == [item["tag"] for item in stale], f"{port}: stale"
        counted: Counter = Counter()
        for _, token in self.scene.got["token"]:
            assert token["epoch"] == 2 and token["context"] == 1
            counted[token["row"], token["col"]] += token["n"]
        everything = [item for items in self.offered.values() for item in items]
        expected: Counter = Counter()
        for item in filter(_tracked, everything):
            expected[item["row"], item["col"]] += len(_lines(item))
        assert counted == expected
        assert len(self.scene.got["token"]) < sum(counted.values()), "some tokens merged"


def _check_traffic(scene: Scene, mca: int) -> None:
    scene.set_range()
    scene.set_arbiter(mca=mca, starvation=12)
    traffic = _Traffic(scene)
    while scene.now < 1700 or any(scene.send.values()):
        traffic.step()
    traffic.check()


@pytest.mark.parametrize("mca", [0, 1])
def test_random_traffic_is_passed_once_in_order_and_counted(backend, mca):
    scene = Scene(backend, seed=7 + mca)
    _check_traffic(scene, mca)
    assert backend == "rtl" or scene.idle_checks > 60


@pytest.mark.own_size
@pytest.mark.parametrize("mca", [0, 1])
def test_random_traffic_is_passed_once_in_order_and_counted_when_performed(backend, mca):
    scene = Scene(backend, seed=7 + mca, **PERFORMED)
    _check_traffic(scene, mca)
    assert backend == "rtl" or scene.idle_checks > 60


@pytest.mark.parametrize("starvation", [0, 3, 40])
def test_idle_cycles_may_be_skipped_up_to_wake_at(backend, starvation):
    scene = Scene(backend, seed=starvation)
    rng = scene.random
    scene.set_range()
    scene.set_arbiter(starvation=starvation)
    scene.step(threshold=2)
    for _ in range(150):
        port = rng.choice(PORTS)
        scene.offer(port, _item(scene, port, 0))
        scene.accept = {"dram": rng.choice([0, 1]), "token": rng.choice([0, 1])}
        scene.step(rng.randrange(8), occupancy=rng.choice([0, 1, 2]))
        if scene["idle"] and scene["wake_at"] > scene.now:
            scene.now = min(scene["wake_at"], scene.now + rng.randrange(100)) - 1
            scene.step()
    assert backend == "rtl" or scene.idle_checks > 150
