"""The register description and everything that is made from it agree."""

import subprocess
from pathlib import Path

import pytest
from t3hdl.interface import layouts, rdl, register_map
from t3hdl.interface.layouts import ChunkKind, Dtype, Op
from t3hdl.nmc import float as float_words


def test_files_in_the_repository_are_current():
    """After a change of t3.rdl: python -m t3hdl.interface.rdl."""
    assert Path(register_map.__file__).read_text() == rdl.python_module()
    assert rdl.HEADER.read_text() == rdl.c_header()


@pytest.mark.parametrize(
    "name, layout", [("ContextRecord", layouts.ContextStatus), ("Stuck", layouts.Stuck), ("Flags", float_words.Flags)]
)
def test_words_that_also_travel(name, layout):
    """The description's fields are those of the word that the parts exchange; CONTEXT has more behind them."""
    (register, *_) = (each for each in rdl.registers() if each.layout == name)
    described = [(field.name, field.low, field.width) for field in register.fields]
    travels = [(member, field.offset, field.width) for member, field in layout]
    added = ["pending", "aborting"] if name == "ContextRecord" else []
    assert described[: len(travels)] == travels
    assert [field for field, _, _ in described[len(travels) :]] == added


@pytest.mark.parametrize("field, enum", [("op", Op), ("dtype", Dtype), ("kind", ChunkKind)])
def test_encodings(field, enum):
    for register in rdl.registers():
        for described in register.fields:
            if described.name == field:
                assert described.values == {member.name: member.value for member in enum}


def test_no_two_registers_overlap():
    places = [each.address + index * each.stride for each in rdl.registers() for index in range(each.count)]
    assert len(places) == len(set(places)) > 500
    assert all(place % 8 == 0 and place < 1 << 16 for place in places)


def test_header_compiles_and_says_the_same(tmp_path):
    """A C program prints some of its constants."""
    (tmp_path / "t3_registers.h").write_text(rdl.c_header())
    source = """
    #include <stdio.h>
    #include "t3_registers.h"
    int main(void) {
        printf("%x %x %llx %d %x %d\\n", T3_STATUS, T3_DESCRIPTOR_TARGET(63),
               (unsigned long long)T3_CONTROL_CONTEXT_MASK, T3_RANGE_ATTRIBUTES_OP_SHIFT, T3_QUOTA(3), T3_OP_ADD);
        return 0;
    }"""
    (tmp_path / "main.c").write_text(source)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["10", "1fd8", "78000", "13", "218", "2"]
