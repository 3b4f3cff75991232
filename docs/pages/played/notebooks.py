"""The notebooks of docs/notebooks, executed: their code stays, what it shows is written anew."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from t3sim.common.output import write_atomically

from docs.pages import DOCS

FOLDER = DOCS / "notebooks"
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))
CELL_SECONDS = 600
"""Most time for a cell; the first simulation compiles for a minute or two."""


def stored(path: Path) -> NotebookNode:
    """The notebook at ``path`` as it is."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def executed(path: Path) -> NotebookNode:
    """The notebook at ``path`` with the outputs of a new execution. Raises CellExecutionError for a cell that fails."""
    notebook = stored(path)
    where = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(notebook, timeout=CELL_SECONDS, resources=where, store_widget_state=False)
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    return notebook


def texts(notebook: NotebookNode) -> list[str]:
    """What each output of a notebook says; a picture says that it is one."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.get("text") or output["data"]["text/plain"] for output in outputs]


def main() -> None:
    """Execute and write every notebook."""
    for path in NOTEBOOKS:
        write_atomically(path, f"{nbformat.writes(executed(path))}\n")


if __name__ == "__main__":
    main()
