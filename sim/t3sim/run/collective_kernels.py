"""What the collective kernels on the CUs do: the rectangles of output that one GPU reads and sends, in order.

The closed forms of :func:`t3sim.collective.ring.closed_forms` are what these lists cost.
"""

from dataclasses import asdict

from t3hdl.interface.layouts import Op

from t3sim.collective.ring import ring_order
from t3sim.engine import state

from .plan import RunPlan

NOTHING, REDUCE_SCATTER, ALL_GATHER = range(3)
"""What a rectangle waits for: nothing, or its part of that collective from the neighbour."""


def transfers(plan: RunPlan, gpu: int) -> list[dict[str, int]]:
    """TRANSFER records of one GPU: the reduce-scatter, if it is a kernel's, then the all-gather.

    ``drain``: everything sent before must be gone when this rectangle starts.
    """
    scatter = _reduce_scatter(plan, gpu) if plan.sequential else []
    return scatter + _all_gather(plan, gpu)


def _reduce_scatter(plan: RunPlan, gpu: int) -> list[dict[str, int]]:
    """A ring of N - 1 sends: the first chunk as it is, the others with what was received added.

    The sum is made by the kernel, which reads both copies and in the end reduces the owned chunk in place; or near
    memory, where every send is an update of the neighbour's output. Pipelined, the slices of the owned chunk are
    reduced while they arrive, which is during the last send.
    """
    out, temp, order = plan.bases["out"], plan.bases["temp"], ring_order(gpu, plan.gpus)
    steps = []
    for step, chunk in enumerate(order[:-1] if plan.near_memory else order):
        last, reduces = chunk == gpu, step > 0 and not plan.near_memory
        steps.append(_step(
            plan, chunk, source=out, source2=temp if reduces else state.NO_SOURCE,
            target=out if last or plan.near_memory else temp,
            link=int(not last), op=Op.ADD if plan.near_memory else Op.STORE,
            read_cause=state.RS_READ, write_cause=state.RS_WRITE, need=REDUCE_SCATTER if step else NOTHING,
        ))  # fmt: skip
    if plan.pipelined:
        steps[-2:] = [_interleave(*steps[-2:])]
    return [move for step in steps for move in step]


def _interleave(sends: list[dict[str, int]], reductions: list[dict[str, int]]) -> list[dict[str, int]]:
    """Each reduction one send behind the send during which the neighbour sends its input, so that nothing waits."""
    order = [((i + 1) * len(reductions), send) for i, send in enumerate(sends)]
    order += [((i + 1) * len(sends) + len(reductions), move) for i, move in enumerate(reductions)]
    return [move for _, move in sorted(order, key=lambda entry: entry[0])]


def _all_gather(plan: RunPlan, gpu: int) -> list[dict[str, int]]:
    """A ring of N - 1 sends, from the owned chunk on. It starts when that chunk is reduced and written."""
    out, result = plan.bases["out"], []
    for step in range(plan.gpus - 1):
        own = REDUCE_SCATTER if plan.near_memory else NOTHING
        result += _step(
            plan, (gpu + step) % plan.gpus, source=out, source2=state.NO_SOURCE, target=out, link=1, op=Op.STORE,
            read_cause=state.AG_READ, write_cause=state.AG_WRITE, need=ALL_GATHER if step else own,
        )  # fmt: skip
    result[0]["drain"] = 1
    return result


def _step(plan: RunPlan, chunk: int, **values: int) -> list[dict[str, int]]:
    """One chunk, part by part."""
    first = sum(len(parts) for parts in plan.parts[:chunk])
    common = values | {"chunk": chunk, "pitch": plan.grid.pitch, "drain": int(not plan.pipelined)}
    return [
        common | asdict(part) | plan.grid.tile_sizes(part) | {"need_part": first + i}
        for i, part in enumerate(plan.parts[chunk])
    ]
