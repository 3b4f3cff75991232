"""``t3 explain``: what limited a run, in sentences."""

from pathlib import Path

import click
import opent3

from t3sim.common.json_text import json_text

from .console import plain_console
from .errors import FOLDER


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the figures of each sentence.")
def explain(folder: Path, as_json: bool) -> None:
    """Explain what limited a run or each policy of a comparison.

    DIR is the --out folder of `t3 run` or `t3 compare`; nothing is simulated.
    """
    explained = opent3.explain(folder)
    if as_json:
        click.echo(json_text(explained.to_json()), nl=False)
    else:
        plain_console().print(str(explained))
