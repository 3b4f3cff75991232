"""Tables keep every character at any width of the terminal."""

import io

import pytest
from rich.console import Console
from rich.text import Text
from t3sim.common.fitted_table import FittedTable

POLICIES = (
    "sequential", "sequential-pipelined", "sequential-nmc", "t3", "t3-mca", "ideal-overlap", "ideal-overlap-nmc",
)  # fmt: skip


def printed(table: FittedTable, width: int) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, force_terminal=True, color_system=None).print(table)
    return output.getvalue().splitlines()


def result_like(policies: int) -> FittedTable:
    """Names of rows and policies as ``t3 compare`` has them, and a number in each cell that is nowhere else."""
    table = FittedTable("", *POLICIES[:policies])
    for row, name in enumerate(("time (us)", "  reduce-scatter (us)", "blocks by tile / by chunk")):
        table.add_row(name, *(f"{1000 + 100 * row + column}.5" for column in range(policies)))
    return table


@pytest.mark.parametrize("policies", range(1, 8))
@pytest.mark.parametrize("width", range(40, 201, 4))
def test_every_header_and_number_is_whole_at_any_width(width, policies):
    lines = printed(result_like(policies), width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for policy in POLICIES[:policies]:
        assert words.count(policy) == 1
    for row in range(3):
        for column in range(policies):
            assert words.count(f"{1000 + 100 * row + column}.5") == 1
    assert words.count("reduce-scatter") == words.count("chunk"), "each block has all names"


@pytest.mark.parametrize("width", [8, 20, 39])
def test_narrower_still_nothing_is_lost(width):
    letters = "".join("".join(printed(result_like(2), width)).split())
    for text in ("sequential-pipelined", "1000.5", "1201.5"):
        assert all(letters.count(letter) >= text.count(letter) for letter in text)
    assert letters.count("5") == 6


def test_columns_that_fit_stand_side_by_side():
    table = result_like(3)
    assert len(printed(table, 200)) == 1 + 3
    needed = max(map(len, printed(table, 200)))
    assert len(printed(table, needed)) == 1 + 3
    assert "" not in [line.strip() for line in printed(table, needed - 1)], "names wrap before a block is split"
    assert "" in [line.strip() for line in printed(table, needed - 3)]


def test_a_blank_line_stands_between_blocks_and_all_name_columns_in_each():
    table = FittedTable("system", "fault", *POLICIES, names=2)
    table.add_row("protected", "lost packet", *"1234567")
    lines = printed(table, 60)
    blocks = "\n".join(line.rstrip() for line in lines).split("\n\n")
    assert len(blocks) > 1
    for block in blocks:
        assert block.split()[:2] == ["system", "fault"]
        assert "protected  lost packet" in block


def test_figures_are_right_aligned_and_text_wraps_between_words():
    table = FittedTable("name", "value", "why", text=["why"])
    table.add_row("a", "1", "some of the words that say why this value may be another one")
    table.add_row("b", "1234", "short")
    lines = printed(table, 46)
    assert [line[:11] for line in lines[:2]] == ["name  value", "a         1"]
    assert max(map(len, lines)) <= 46
    assert " ".join(" ".join(lines).split()) == (
        "name value why a 1 some of the words that say why this value may be another one b 1234 short"
    )


def test_titles_wrap_before_a_block_is_split():
    table = FittedTable("sublayer", "CUs wait for loads, % of GEMM", "full queue, clocks/line")
    table.add_row("op", "12.5 -> 13.0", "0.1 -> 0.2")
    assert len(printed(table, 64)) == 2
    assert max(map(len, printed(table, 40))) <= 40
    assert sum("sublayer" in line for line in printed(table, 40)) == 1


def test_a_long_name_is_whole_if_it_fits_beside_a_figure():
    table = FittedTable("machine", "t3", "t3-mca")
    table.add_row("link.gb_s=150, hardware.tracker_sets=512", "1.420 ( +4.4 %)", "1.415 ( +4.7 %)")
    for width in range(52, 80):
        assert "hardware.tracker_sets=512" in " ".join(printed(table, width)).split()


def test_a_word_longer_than_the_terminal_is_folded():
    path = "/home/somebody/" + "x" * 80
    table = FittedTable("", "what", "found", text=["what", "found"])
    table.add_row("ok", "cache folder", path)
    lines = printed(table, 40)
    assert max(map(len, lines)) <= 40
    assert path in "".join(line.split()[-1] for line in lines if line.strip())


@pytest.mark.parametrize("text", ["[/b]", "[red]x[/red]", ":warning:", "opent3[fpga]", "a\\[b"])
def test_nothing_is_markup(text):
    table = FittedTable(f"title {text}", "figure")
    table.add_row(text, f"1{text}")
    assert " ".join(printed(table, 80)).split() == ["title", *text.split(), "figure", *text.split(), f"1{text}"]


def test_styled_cells_keep_their_style():
    table = FittedTable("", "verdict")
    table.add_row("a", Text("violated", style="bold red"))
    output = io.StringIO()
    Console(file=output, width=80, force_terminal=True, color_system="standard").print(table)
    assert "\x1b[1;31mviolated" in output.getvalue()


def test_a_row_needs_a_cell_for_each_column():
    with pytest.raises(ValueError, match="zip"):
        FittedTable("a", "b").add_row("1")
