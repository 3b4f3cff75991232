"""``python -m tests.fuzz``: see :mod:`tests.fuzz.campaign`."""

from tests.fuzz.campaign import main

main()
