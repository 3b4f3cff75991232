"""One fault after the other in one process: the reference run, then runs that are judged against it."""

import random
from dataclasses import dataclass

from t3hdl.export.single_event_upsets import stored_words
from t3hdl.export.verilog import PARTS

from t3sim.run.request import SimulationError

from .around import AroundBench
from .kinds import DRAWS, InjectionSites, group_of
from .outcome import Observation, Outcome, ended_with_error, judge, observe
from .setup import GPUS, UPSETTABLE, FaultSetup, FaultSystem, Injection
from .struck import AROUND


@dataclass(frozen=True)
class Verdict:
    """A fault and what became of it: its kind and number, what the table calls it, what named it."""

    kind: str
    number: int
    label: str
    text: str
    outcome: Outcome
    named: tuple[str, ...]


class Bench:
    """A campaign's system and its run without a fault. Raises BuildError as the hardware does."""

    def __init__(self, setup: FaultSetup) -> None:
        self.setup = setup
        windows: list[list[int]] = [[] for _ in range(GPUS)]
        writes = []

        def watch(system: FaultSystem) -> None:
            for packets, gpu in zip(windows, system.gpus, strict=True):
                packets.append(int(gpu.link["out_head"]))

        system = self.setup.run(Injection(watch=watch, alter=lambda gpu, driver: writes.append(tuple(driver.writes))))
        self.right = observe(system)
        if judge(self.right, self.right) is not Outcome.MASKED:
            raise SimulationError(f"the run without a fault is not right: {self.right}")
        stored = {name: stored_words(PARTS[name](self.setup.config)) for name in UPSETTABLE}
        groups = {
            part: tuple(
                tuple(word for word in words if group_of(word) == name) for name in dict.fromkeys(map(group_of, words))
            )
            for part, words in stored.items()
        }
        self.sites = InjectionSites(max(self.right.times), tuple(map(tuple, windows)), tuple(writes), stored, groups)
        self._around = AroundBench(self.setup.config, writes[0])
        self.setup.hardware.close()

    def run(self, kind: str, number: int, seed: int) -> Verdict:
        """The fault ``number`` of a kind, which depends on that and the seed alone."""
        rng = random.Random(f"{seed} {kind} {number}")
        if kind in AROUND:
            label, text, outcome, named = self._around.run(kind, rng)
            return Verdict(kind, number, label, text, outcome, tuple(sorted(named)))
        drawn = DRAWS[kind](rng, self.setup, self.sites)
        seen = self.observe(drawn.injection)
        outcome = judge(seen, self.right, drawn.injection.retimed)
        return Verdict(kind, number, drawn.label, drawn.text, outcome, tuple(sorted(seen.named)))

    def observe(self, injection: Injection) -> Observation:
        """A run with a fault; an error of the simulated system is what names it."""
        try:
            return observe(self.setup.run(injection))
        except SimulationError as error:
            return ended_with_error(str(error))
        except RuntimeError as error:
            if type(error) is not RuntimeError:  # as RecursionError: a defect of this program, not of the system
                raise
            return ended_with_error(str(error))  # a pool of the models is exhausted: a buffer that overflowed
        finally:
            self.setup.hardware.close()
