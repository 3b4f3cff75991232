"""``--share i/N``: of the tests that are chosen otherwise, those of the i-th of N shares; see ``shares.py``."""

import pytest
from shares import share_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--share", metavar="i/N", help="run only the i-th (1 to N) of N shares of the chosen tests")


def _share(text: str) -> tuple[int, int]:
    """The share's number and how many there are. Raises UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--share {text}: a share is i/N with 1 <= i <= N")
    return int(number), int(count)


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other shares."""
    if not config.option.share:
        return
    number, count = _share(config.option.share)
    shares = share_of([item.nodeid for item in items], count)
    config.hook.pytest_deselected(items=[item for item in items if shares[item.nodeid] != number])
    items[:] = [item for item in items if shares[item.nodeid] == number]
