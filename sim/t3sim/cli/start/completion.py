"""``t3 completion``: the script by which a shell completes commands, options and values."""

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

PROGRAM = "t3"
VARIABLE = "_T3_COMPLETE"
"""Variable by which the script asks the program; click makes its name from the program's."""
INSTALL = {
    "bash": 'for this shell: eval "$(t3 completion bash)"; for all: add that line to ~/.bashrc',
    "zsh": 'for this shell: eval "$(t3 completion zsh)"; for all: add that line to ~/.zshrc, behind compinit',
    "fish": "for this shell: t3 completion fish | source; for all: "
    "t3 completion fish > ~/.config/fish/completions/t3.fish",
}
"""How the script of each shell is installed."""


@click.command()
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
def completion(shell: str) -> None:
    """Print the script by which bash, zsh or fish completes t3.

    In bash: eval "$(t3 completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(f"click has no completion for {shell}")
    from ..main import main  # it has this command

    script = kind(main, {}, PROGRAM, VARIABLE)
    # Not script.source(): it runs a shell to see its version, which need not be there where the script is made.
    click.echo((script.source_template % script.source_vars()).strip())
    click.echo(f"# {INSTALL[shell]}")


def values(known: Iterable[str]) -> Callable[[Any, Any, str], list[str]]:
    """Completes an option's value, which may be a list with commas, from what it may be."""
    names = tuple(known)

    def complete(_: Any, __: Any, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def values_or_files(known: Iterable[str]) -> Callable[[Any, Any, str], list[CompletionItem]]:
    """Completes an option's value from names, or else from files."""
    names = tuple(known)

    def complete(_: Any, __: Any, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]

    return complete
