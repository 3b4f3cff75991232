"""Expected errors of the command line: one message on stderr, and an exit code for each kind."""

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
