"""The guide to the models: the example of the rule of arbitration is that of the machine ``paper``."""

from pathlib import Path

from t3sim.collective.backlog import Backlog
from t3sim.run.plan import RunPlan
from t3sim.study.suite import Point, Suite

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "models.md"


def test_the_example_of_arbitration_is_what_the_plan_works_out():
    def rule(sublayer: str) -> Backlog:
        point = Point(model="t-nlg", sublayer=sublayer, tp=8)
        return RunPlan(Suite(machine="paper", hardware="golden").experiment(point, "t3-mca").request()).backlog

    fc2, op = rule("fc2"), rule("op")
    text = " ".join(GUIDE.read_text(encoding="utf-8").split())
    assert fc2.communication_may_wait and not op.communication_may_wait
    for said in (
        f"to take {fc2.gemm_ns / 1e3:.0f} us in {fc2.stages} stages, the reduce-scatter {fc2.ring_ns / 1e3:.0f} us",
        f"a DMA block {fc2.block_ns / 1e3:.1f} us, what a stage stores {fc2.stage_ns / 1e3:.1f} us",
        f"/ 8 = {fc2.spare_ns / 1e3:.0f} us",
        f"= {fc2.blocks} blocks on, or when some have waited for 118 / 2 = {fc2.patience_ns / 1e3:.0f} us",
        f"= {fc2.slack_ns / 1e3:.0f} us to spare",
        f"has {op.gemm_ns / 1e3:.0f} us of GEMM under {op.ring_ns / 1e3:.0f} us of reduce-scatter",
    ):
        assert said in text, said
