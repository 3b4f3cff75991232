"""``--shard i/N``: of the tests that are chosen otherwise, those of the i-th of N shards; see ``shards.py``."""

import pytest

from tests.support.shards import shard_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--shard", metavar="i/N", help="run only the i-th (1 to N) of N shards of the chosen tests")


def _shard(text: str) -> tuple[int, int]:
    """The share's number and how many there are. Raises UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--shard {text}: a shard is i/N with 1 <= i <= N")
    return int(number), int(count)


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other shards."""
    if not config.option.shard:
        return
    number, count = _shard(config.option.shard)
    shards = shard_of([item.nodeid for item in items], count)
    config.hook.pytest_deselected(items=[item for item in items if shards[item.nodeid] != number])
    items[:] = [item for item in items if shards[item.nodeid] == number]
