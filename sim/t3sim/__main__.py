"""``python -m t3sim`` is ``t3``."""

from .cli.entry import main

main()
