"""``t3 explain``: what limited a run, in sentences."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .console import plain_console

if TYPE_CHECKING:
    from t3sim.explain.case import Finding


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the figures of each sentence.")
def explain(folder: Path, as_json: bool) -> None:
    """Explain what limited a run or each policy of a comparison.

    DIR is the --out folder of `t3 run` or `t3 compare`; nothing is simulated.
    """
    from t3sim.explain import folder as reader
    from t3sim.run.result import json_text

    explained = reader.explain(reader.read_records(folder))
    if as_json:
        click.echo(json_text(reader.to_json(explained)), nl=False)
    else:
        print_findings(explained)


def print_findings(explained: "dict[str, list[Finding]]") -> None:
    """Prints the sentences under the policies that they are about."""
    console = plain_console()
    for number, (policy, found) in enumerate(explained.items()):
        if number:
            console.print()
        console.print(f"{policy}:")
        for finding in found:
            console.print(f"- {finding.text}")
