"""``python -m t3sim`` is ``t3``."""

from .entry import main

main()
