"""Writers of the generated pages of docs/: ``python -m docs.pages``, or ``make pages``.

Each module of a page has ``PAGE``, the path of what it writes, and ``page()``, the text. They belong to the repository
and are in no wheel.
"""

from pathlib import Path

DOCS = Path(__file__).parents[1]
"""The folder of the documentation."""
GUIDES, REFERENCE, RESULTS = DOCS / "guides", DOCS / "reference", DOCS / "results"
"""Its folders: written by hand; generated from the sources; measured, with the data of the measurements."""
