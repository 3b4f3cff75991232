"""Where a pipeline's registers go."""

from itertools import combinations_with_replacement, pairwise


def register_stages(times: tuple[int, ...], registers: int) -> tuple[int, ...]:
    """After how many steps each register comes, the last one after all.

    ``times`` : how long each step takes beside the others. Of all places these have the shortest longest way from one
    register to the next, then the shortest second longest, and so on.
    """

    def ways(places: tuple[int, ...]) -> list[int]:
        return sorted((sum(times[a:b]) for a, b in pairwise((0, *places))), reverse=True)

    before_last = combinations_with_replacement(range(1, len(times) + 1), registers - 1)
    return min(((*places, len(times)) for places in before_last), key=ways)
