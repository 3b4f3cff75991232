"""Which packages the doctor finds missing, by what the metadata of this program asks for, and how to install them."""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest
from click.testing import CliRunner
from packaging.version import Version
from t3sim.cli import doctor
from t3sim.cli import main as cli
from t3sim.cli.start import packages

NEWER = f"click>={Version(version('click')).major + 1}"


@pytest.fixture
def asks_for(monkeypatch):
    """Makes the metadata ask for these requirements."""

    def ask(*wanted: str) -> None:
        monkeypatch.setattr(packages.importlib.metadata, "requires", lambda _: list(wanted))

    return ask


def test_what_is_not_there_is_missing_for_its_extra_alone(asks_for):
    asks_for(
        "click>=8.1", "no-such-package>=1", "other-missing<2,>=1; extra == 'fpga'", "tool; extra == 'dev'",
        "opent3[prove]; extra == 'gpu'",
    )  # fmt: skip
    assert packages.missing_packages() == ["no-such-package>=1"]
    assert packages.missing_packages("fpga") == ["other-missing<2,>=1"]
    assert packages.missing_packages("gpu") == []


@pytest.mark.parametrize(
    ("marker", "wanted"),
    [
        ("python_version < '3.14' and platform_machine == 'no-such-machine'", False),
        ("python_version < '3' and sys_platform == 'linux'", False),
        ("python_version >= '3' and sys_platform == 'linux'", True),
    ],
)
def test_what_is_not_for_this_python_or_computer_is_not_missing(asks_for, marker, wanted):
    asks_for(f"no-such-package[fast]>=1; {marker}", f"other>=1; ({marker}) and extra == 'fpga'")
    assert packages.missing_packages() == (["no-such-package[fast]>=1"] if wanted else [])
    assert packages.missing_packages("fpga") == (["other>=1"] if wanted else [])


@pytest.mark.parametrize(("text", "wanted"), [("click>=1", False), (NEWER, True), ("click<1", True)])
def test_another_version_than_the_one_that_will_do_is_missing(asks_for, text, wanted):
    asks_for(text)
    assert packages.missing_packages() == ([text] if wanted else [])


def test_a_version_before_a_release_will_do(asks_for, monkeypatch):
    asks_for("no-such-package>=1")
    monkeypatch.setattr(packages.importlib.metadata, "version", lambda _: "1.1rc1")
    assert packages.missing_packages() == []
    monkeypatch.setattr(packages.importlib.metadata, "version", lambda _: "of today")
    assert packages.missing_packages() == ["no-such-package>=1"]


def test_the_extras_of_the_doctors_table_are_those_of_the_metadata():
    assert {*doctor.EXTRAS, "gpu"} == set(packages.extras()), "gpu is of one check alone"


def test_sources_that_were_not_installed_say_so(monkeypatch):
    def unknown(_: str) -> None:
        raise PackageNotFoundError

    monkeypatch.setattr(packages.importlib.metadata, "requires", unknown)
    monkeypatch.setattr(packages.importlib.metadata, "metadata", unknown)
    assert packages.extras() == packages.missing_packages() == []
    check = doctor._extra("fpga")
    assert check.optional and "not installed by pip" in check.found


def test_the_doctor_prints_the_command_that_installs_them(asks_for, tmp_path, monkeypatch):
    asks_for("click>=8.1", "other-missing<2,>=1; extra == 'fpga'")
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path))
    monkeypatch.setattr(doctor, "_toolchain", list)  # it takes seconds
    printed = CliRunner().invoke(cli.main, ["doctor", "--fix"]).stdout
    assert "for t3 fpga:" in printed and "every command" not in printed
    command = next(line for line in printed.splitlines() if sys.executable in line)
    assert shlex.split(command) == [sys.executable, "-m", "pip", "install", "other-missing<2,>=1"]
    assert sys.executable not in CliRunner().invoke(cli.main, ["doctor"]).stdout, "without --fix no command"
