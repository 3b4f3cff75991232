"""Records say of which hardware they are, and pages say it of records of another one."""

import json

import pytest
from t3hdl.export import identity
from t3hdl.export.identity import hardware_identity, netlist_digest

from docs.pages.shared.hardware import measured_on
from tb.mutation.outcomes import known

OLDER = {"version": "4.0.0", "netlist": "0123456789abcdef"}


def test_a_page_names_the_hardware_if_it_is_another_one():
    ours = hardware_identity()
    assert measured_on(ours, ours).startswith(f"Hardware version {ours['version']}, netlist `{ours['netlist']}`")
    text = measured_on(OLDER).replace("\n", " ")
    assert text.startswith("**Of another hardware than this tree's**: version 4.0.0, netlist `0123456789abcdef`.")
    assert "1 of 2 records: an older one, which the record does not name." in measured_on(ours, None)


@pytest.mark.long
def test_the_digest_follows_the_netlist(monkeypatch):
    """Of a configuration with one register more it is another one; asked again, the same."""
    before = netlist_digest()
    netlist_digest.cache_clear()
    assert netlist_digest() == before and len(before) == 16
    monkeypatch.setattr(identity, "_FEW", {**identity._FEW, "token_queue": 4})
    netlist_digest.cache_clear()
    assert netlist_digest() != before
    netlist_digest.cache_clear()


def test_mutants_of_another_hardware_are_not_taken_over(tmp_path):
    path = tmp_path / "mutation.json"
    mutant = {"component": "axi", "number": 1, "command": "mutate", "wire": ""}
    path.write_text(json.dumps({"hardware": OLDER, "mutants": [mutant]}))
    assert [outcome.number for outcome in known(path, {"hardware": OLDER})["axi"]] == [1]
    assert known(path, {"hardware": hardware_identity()}) == {}
    path.write_text(json.dumps({"mutants": [mutant]}))  # of a time before it was kept
    assert known(path, {"hardware": hardware_identity()}) == {}
    path.write_text("[]")
    with pytest.raises(ValueError, match="no record of a campaign"):
        known(path, {"hardware": OLDER})
