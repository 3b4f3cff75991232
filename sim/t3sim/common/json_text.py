"""The JSON of every output file."""

import json


def json_text(content: object) -> str:
    """``content`` as text: the same bytes for the same content; numbers that JSON does not have are a ValueError."""
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
