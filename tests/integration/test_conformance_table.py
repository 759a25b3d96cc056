"""The table of looprig's list in README.md: every line has its test or its reason, and every test is there."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> dict[int, str]:
    found = re.findall(r"^\| C(\d+) \|(.*)\|$", (HERE / "README.md").read_text(), flags=re.MULTILINE)
    return {int(number): rest for number, rest in found}


def test_the_table_has_every_line_of_the_list_with_a_test_or_a_reason() -> None:
    table = rows()
    assert list(table) == list(range(1, 57))
    for number, rest in table.items():
        promise, proof = (cell.strip() for cell in rest.split("|"))
        assert promise
        assert "::test_" in proof or proof.startswith("Does not apply: "), f"C{number}: {proof}"


def test_the_table_names_only_tests_that_exist() -> None:
    named = NAMED.findall((HERE / "README.md").read_text())
    assert named
    for path, name in named:
        assert name in functions_of(ROOT / "tests" / path), f"{path} has no {name}"
    own = {name for path in HERE.glob("test_conformance_*.py") for name in functions_of(path)}
    ours = {name for path, name in named if path.startswith("integration/test_conformance_")}
    assert {name for name in own if re.match(r"test_c\d", name)} == ours


def test_each_test_that_proves_a_line_cites_it() -> None:
    """In its name, or in its docstring: whoever changes it then knows what rests on it."""
    for number, rest in rows().items():
        proof = rest.split("|")[1].strip()
        for path, name in NAMED.findall(proof) if not proof.startswith("Does not apply") else ():
            cited = f"_c{number:02}_" in name or f"C{number}" in re.findall(
                r"C\d+", functions_of(ROOT / "tests" / path)[name]
            )
            assert cited, f"{path}::{name} does not cite C{number}"


@functools.cache
def functions_of(path: Path) -> dict[str, str]:
    """The docstrings of a module's functions, by their names."""
    nodes = ast.parse(path.read_text()).body
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_docstring(node) or "" for node in functions}
