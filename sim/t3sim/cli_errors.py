"""Expected errors of the command line: one message on stderr, and an exit code for each kind."""

from collections.abc import Iterable

import click


class Failure(click.ClickException):
    """An error that the user can mend."""

    exit_code = 2


class Interrupted(click.ClickException):
    """Ctrl-C: 128 + SIGINT."""

    exit_code = 130


class Mismatch(click.ClickException):
    """A result or a check that does not hold."""

    exit_code = 1


def refuse_given(names: Iterable[str], why: str) -> None:
    """Refuses (ValueError) options of the command that were given although they would have no effect."""
    context = click.get_current_context()
    options = {item.name: item.opts[0] for item in context.command.params}
    default = click.core.ParameterSource.DEFAULT
    given = [options[name] for name in names if context.get_parameter_source(name) is not default]
    if given:
        raise ValueError(f"{why}: leave out {', '.join(given)}")
