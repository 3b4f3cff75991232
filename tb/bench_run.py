"""What one simulator process is to do; travels from the runner to the testbench in the environment."""

import os
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import Any

from t3hdl.config import T3Config, preset

_VARIABLE = "T3_TB_JOB"


@dataclass(frozen=True, kw_only=True)
class BenchRun:
    """One run of the testbench of ``part``: ``cycles`` cycles of random traffic from ``seed``; writes ``report``."""

    part: str
    simulator: str
    report: str
    seed: int = 1
    cycles: int = 4000
    preset: str = "small"
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> T3Config:
        """The hardware's configuration."""
        return preset(self.preset, **self.overrides)

    @property
    def title(self) -> str:
        """Names the run in messages."""
        return f"{self.part}, {self.simulator}, seed {self.seed}"

    def environment(self) -> dict[str, str]:
        """The variables with which a testbench finds its job."""
        return {_VARIABLE: dumps(asdict(self))}

    @classmethod
    def here(cls) -> "BenchRun":
        """The job of this simulator process."""
        return cls(**loads(os.environ[_VARIABLE]))

    def report_path(self) -> Path:
        """Where the testbench writes what it has covered."""
        return Path(self.report)
