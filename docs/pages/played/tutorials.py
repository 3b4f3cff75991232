"""The tutorials of docs/tutorials, and guides whose commands print figures of a run:
``python -m docs.pages.played.tutorials`` writes what their commands print anew.

A fence with a title is a file that the reader saves; in one of ``console`` every line that begins with ``$`` is a
command, and the lines below it are what it prints. Commands run in one folder, one after another.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from t3sim.common.output import write_atomically

from docs.pages import DOCS

FOLDER = DOCS / "tutorials"
TUTORIALS = tuple(sorted(FOLDER.glob("*.md")))
PLAYED = (*TUTORIALS, DOCS / "guides" / "waves.md", DOCS / "guides" / "traces.md")
COMMAND_SECONDS = 900
"""Most time for a command; the first simulation compiles for a minute or two."""
PICTURES = {
    "architect": {"out/compare/comparison.png": "comparison.png", "out/links/sweep.png": "sweep.png"},
    "reader": {
        "out/fc2/t3-mca/timeline.png": "timeline.png",
        "out/figure-17/dram-traffic-over-time.png": "figure-17.png",
    },
}
"""Of a tutorial, which files that its commands write are kept in ``FOLDER``, and under what name."""
_FENCE = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)
_PROMPT = "$ "
_ROOT = "opent3"
"""In a tutorial, the folder of the repository."""


class CommandFailedError(Exception):
    """A command of a tutorial failed; says which one, and what it printed."""


def commands(text: str) -> list[str]:
    """The commands of a tutorial, in their order."""
    blocks = (fence["body"] for fence in _FENCE.finditer(text) if fence["kind"] == "console")
    return [line.removeprefix(_PROMPT) for block in blocks for line in block.splitlines() if line.startswith(_PROMPT)]


def played(text: str, folder: Path) -> str:
    """The tutorial ``text`` with what its commands print in ``folder`` today. Raises CommandFailedError."""
    (folder / _ROOT).symlink_to(DOCS.parent)

    def play(fence: re.Match[str]) -> str:
        kind, title, body = fence["kind"], fence["title"], fence["body"]
        if title:
            file = folder / title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)
        if kind != "console":
            return fence[0]
        printed = (f"{_PROMPT}{command}\n{_run(command, folder)}" for command in commands(fence[0]))
        return f"```console\n{''.join(printed)}```"

    return _FENCE.sub(play, text)


def _run(command: str, folder: Path) -> str:
    """What a command prints on a terminal of 110 columns, progress left out."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder, env=environment, capture_output=True, check=False, text=True, timeout=COMMAND_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise CommandFailedError(f"{command}: exit code {done.returncode}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([path.stem for path in PLAYED]))
def main(names: tuple[str, ...]) -> None:
    """Play the pages NAMES, all of them by default, and write them."""
    for path in PLAYED:
        if not names or path.stem in names:
            with TemporaryDirectory() as folder:
                write_atomically(path, played(path.read_text(), Path(folder)))
                for made, name in PICTURES.get(path.stem, {}).items():
                    shutil.copyfile(Path(folder) / made, FOLDER / name)
            click.echo(f"written: {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
