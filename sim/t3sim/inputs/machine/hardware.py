"""Section of the T3 hardware: a preset, and the parameters of its configuration that differ from it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from pydantic import Field, create_model, model_validator
from t3hdl.config import PARAMETERS, T3Config, preset

from .section import Section, choice


def hardware_config(name: str, parameters: Mapping[str, Any]) -> T3Config:
    """The hardware preset ``name`` with other ``parameters``. Raises ValueError, also for a value of the wrong type."""
    try:
        return preset(name, **parameters)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _fields() -> dict[str, Any]:
    """The preset, and a field for each parameter of the hardware, which is None where the preset's value stays."""
    types = get_type_hints(T3Config)
    parameters = {
        name: (
            types[name] | None,
            Field(
                default=None,
                ge=about.low,
                le=about.high,
                description=about.meaning,
                json_schema_extra={"unit": about.unit, "range": about.legal},
            ),
        )
        for name, about in PARAMETERS.items()
    }
    named = choice("a preset of `hdl/t3hdl/config.py`: `paper`, `paper-fit`, `small` or one for a board")
    return {"preset": (str, named), **parameters}


_Fields: Any = create_model("_Fields", __base__=Section, **_fields())


class HardwareSection(_Fields):
    """Configuration of the T3 hardware: a preset, and parameters with other values than the preset's."""

    if TYPE_CHECKING:  # one of the fields
        preset: str

    @model_validator(mode="after")
    def _is_legal(self) -> Self:
        self.config()
        return self

    def config(self) -> T3Config:
        """The hardware's configuration. Raises ValueError naming the parameter if it is illegal."""
        chosen = {name: getattr(self, name) for name in PARAMETERS}
        return hardware_config(self.preset, {name: value for name, value in chosen.items() if value is not None})
