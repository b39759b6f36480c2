"""Who may know whom: imports go down the table of layers, and never round in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("kernels", "harness", "suites", "conftest.py")

# From the bottom up. A module stands with the longest name that it begins with; commands
# (`__main__`) and tests stand above all others, wherever they lie.
LAYERS: Final = (
    ("kernels", "harness.spelling"),
    ("harness.baselines",),  # what was recorded: read, merged
    ("harness.devices", "harness.visible"),  # a GPU, and the emulated device
    ("harness.timing", "harness.comparison", "harness.watch", "harness.workbench"),
    ("harness.models", "harness.workloads", "harness.strategies", "harness.draws"),
    ("harness.evidence", "harness.ratios", "harness.profiles", "harness.instructions"),
    ("harness.claims", "harness.rows"),
    ("harness.gate",),  # the verdicts on a night, and on what is promoted
    ("harness.report",),  # whatever is shown of claims and nights
    ("harness.rig", "harness.benchmark_files", "harness.pytest_claims"),
    ("harness.pytest_benchmarks", "harness.pytest_workers", "conftest"),
    ("suites", "harness.selftest", "harness.profiler"),
    ("__main__",),
    ("tests",),
)
HEIGHTS: Final = {name: height for height, names in enumerate(LAYERS) for name in names}


def layer(module: str) -> int:
    """Return how high a module stands."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    standing = [each for each in ("tests", "__main__") if each in parts]
    found = next((name for name in (*standing, *names) if name in HEIGHTS), None)
    assert found, f"{module} stands in no layer: add it to LAYERS"
    return HEIGHTS[found]


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Return what each module here imports of the others, wherever in its text."""
    files = [file for place in PLACES for file in _python(ROOT / place)]
    modules = {_named(file): file for file in files}
    return {
        name: frozenset(_imported(file.read_text("utf-8"), modules.keys()))
        for name, file in modules.items()
    }


def _python(place: Path) -> Iterator[Path]:
    return place.rglob("*.py") if place.is_dir() else iter([place])


def _named(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(text: str, modules: Set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"name the whole module in `{ast.unparse(node)}`"
            outer = str(node.module)
            inner = {f"{outer}.{alias.name}" for alias in node.names}
            yield from inner & modules
            if outer in modules and inner - modules:
                yield outer
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
            yield from named & modules


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b, json", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a import b, c", {"a", "a.b"}),
        ("from a.b import c", {"a.b"}),
        ("def late():\n    from a import b", {"a.b"}),
        ("import_module('a.b')", {"a.b"}),
        ("importlib.import_module('a')", {"a"}),
        ("import_module('json'), import_module(name), print('a.b')", set()),
    ],
)
def test_an_import_is_seen_however_it_is_written(text: str, found: set[str]) -> None:
    """Of the modules `a` and `a.b`."""
    assert set(_imported(text, {"a", "a.b"})) == found


def test_every_module_stands_in_a_layer() -> None:
    """Also one that nobody imports yet; only the package around all of them holds nothing."""
    for module in imports().keys() - {"harness"}:
        layer(module)
    assert not imports()["harness"]
    with pytest.raises(AssertionError, match=r"harness\.new stands in no layer: add it to LAYERS"):
        layer("harness.new")


def test_imports_go_down() -> None:
    """Or stay in their layer."""
    up = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if layer(other) > layer(module)
    ]
    assert not up, "up the layers: " + "; ".join(sorted(up))


def test_no_two_modules_import_each_other() -> None:
    """Not through others either."""
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError("a circle: " + " -> ".join(error.args[1])) from None


def test_every_name_of_the_table_is_a_module_s() -> None:
    """One that nothing begins with has moved, or gone."""
    assert {name for name in HEIGHTS if not any(_stands(name, each) for each in imports())} == set()


def _stands(name: str, module: str) -> bool:
    return f".{name}." in f".{module}."
