"""Expected errors of the command line: one message on stderr, and an exit code for each kind."""

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


class Failure(click.ClickException):
    """An error that the user can fix."""

    exit_code = 2


class Interrupted(click.ClickException):
    """Ctrl-C: 128 + SIGINT."""

    exit_code = 130


@contextmanager
def kept_if_interrupted(written: Sized, text: str) -> Iterator[None]:
    """On Ctrl-C says ``text``, what is kept and where, if something is ``written`` by then."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not len(written):
            raise
        raise Interrupted(f"interrupted; {text}") from error


class Mismatch(click.ClickException):
    """A result or a check that does not hold."""

    exit_code = 1


class _Named(click.Path):
    """A path by a name. No name would be the current folder: that is a shell variable that is not set."""

    def __init__(self, what: str) -> None:
        super().__init__(path_type=Path)
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            remedy = "give one" if param is None or param.required else "give one, or leave the option out"
            self.fail(f"must be the name of a {self._what}, not empty: {remedy}", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = _Named("folder")
"""Type of what names a folder, as ``--out``."""
FILE = _Named("file")
"""Type of what names a file, to be read or written."""


def out_option(command: Any) -> Any:
    """The option ``--out`` of a command that also works without it."""
    text = "Folder for results; none are written without it."
    return click.option("--out", "-o", type=FOLDER, help=text)(command)


def is_given(name: str) -> bool:
    """Whether the option of the command was given, and has not its default value."""
    return click.get_current_context().get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def refuse_given(names: Iterable[str], why: str) -> None:
    """Refuses (ValueError) options of the command that were given although they would have no effect."""
    options = {item.name: item.opts[0] for item in click.get_current_context().command.params}
    given = [options[name] for name in names if is_given(name)]
    if given:
        raise ValueError(f"{why}: leave out {', '.join(given)}")
