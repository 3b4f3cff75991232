"""One module definition for all instances of the same thing: Amaranth writes a copy of a component per instance."""

import re
from collections import Counter
from collections.abc import Collection, Iterator

_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"^ *attribute \\(\S+) .*\n", re.MULTILINE)
_UNNAMED = re.compile(r"\\port\$\d+\$\d+")
_INSTANCE = re.compile(r"^( *cell )\\(\S+)", re.MULTILINE)


def share_modules(rtlil: str, kept: Collection[str] = ()) -> str:
    """The RTLIL text with textually identical modules merged, deepest first, and module names that are identifiers.

    A module is named by the path of its first instance, parts joined by two underscores; numbers of instances, and
    those of names that are a signal's, too (``$7``), are left out where that is not ambiguous (``top__slice__queue``).
    Attributes (source locations, initial values) are dropped, as they say nothing about what a module does after reset,
    but for those in ``kept``.
    """
    text = _ATTRIBUTE.sub(lambda attribute: attribute[0] if attribute[1] in kept else "", rtlil)
    bodies = _with_counted_ports(dict(_MODULE.findall(text)))
    shared: dict[str, str] = {}  # text of a module, in terms of shared modules: the name of the first one
    stands_for: dict[str, str] = {}
    for name in sorted(bodies, key=lambda path: -path.count(".")):
        text = _renamed(bodies[name], stands_for)
        stands_for[name] = shared.setdefault(text, name)
    final = _readable(list(shared.values()))
    return "".join(f"module \\{final[name]}\n{_renamed(text, final)}end\n" for text, name in shared.items())


def _with_counted_ports(bodies: dict[str, str]) -> dict[str, str]:
    """The modules with unnamed ports (parts of signals) counted per module, where Amaranth counts them in all."""
    names: dict[str, dict[str, str]] = {
        module: {port: f"\\port${number}" for number, port in enumerate(dict.fromkeys(_UNNAMED.findall(body)))}
        for module, body in bodies.items()
    }

    def lines(module: str, body: str) -> Iterator[str]:
        inside: dict[str, str] = {}  # names of the instance whose connections these are
        for line in body.splitlines(True):
            instance = _INSTANCE.match(line)
            if instance:
                inside = names.get(instance[2], {})
            elif line.strip() == "end":
                inside = {}
            connect, space, rest = line.partition("connect ")
            port, gap, value = rest.partition(" ")
            if port in inside and not connect.strip():
                yield f"{connect}{space}{inside[port]}{gap}{_UNNAMED.sub(lambda name: names[module][name[0]], value)}"
            else:
                yield _UNNAMED.sub(lambda name: names[module][name[0]], line)

    return {module: "".join(lines(module, body)) for module, body in bodies.items()}


def _renamed(body: str, names: dict[str, str]) -> str:
    """The module's text with instances of the modules in ``names`` made of others."""
    return _INSTANCE.sub(lambda match: f"{match[1]}\\{names.get(match[2], match[2])}", body)


def _readable(paths: list[str]) -> dict[str, str]:
    """A Verilog name for each path."""
    short = {path: re.sub(r"[_$]\d+(?=\.|$)", "", path).replace(".", "__") for path in paths}
    long = {path: path.replace(".", "__").replace("$", "_") for path in paths}
    times = Counter(short.values())
    return {path: name if times[name] == 1 else long[path] for path, name in short.items()}
