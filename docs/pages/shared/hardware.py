"""What a page of measurements says of the hardware that was measured."""

from collections.abc import Iterable, Mapping

from t3hdl.export.identity import hardware_identity

from docs.pages.shared.markdown import paragraph


def measured_on(*records: Mapping[str, str] | None) -> str:
    """A paragraph: the hardware of the records, and whether it is this tree's; None: a record does not say."""
    ours = hardware_identity()
    others = [record for record in records if record != ours]
    if not others:
        return paragraph(f"Hardware {_name(ours)}, which is that of this tree.")
    names = "; ".join(sorted(set(_names(others))))
    some = "" if len(others) == len(records) else f"{len(others)} of {len(records)} records: "
    return paragraph(f"**Of another hardware than this tree's**: {some}{names}. It is to be measured again.")


def _names(records: Iterable[Mapping[str, str] | None]) -> Iterable[str]:
    return ("an older one, which the record does not name" if record is None else _name(record) for record in records)


def _name(identity: Mapping[str, str]) -> str:
    return f"version {identity['version']}, netlist `{identity['netlist']}`"
