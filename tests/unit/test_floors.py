"""Floors and rooms: a module imports only from floors below its own, rooms have no circle, the domain imports
nothing else."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from roundtrip.chain.rpc.client import READ_METHODS

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "src" / "roundtrip"
MODULES = sorted(PACKAGE.rglob("*.py"))
VERIFIER = PROJECT / "verify" / "src" / "roundtrip_verify"
DEVELOPMENT = PROJECT / "development" / "src" / "roundtrip_development"
EVERY_MODULE = [*MODULES, *sorted(VERIFIER.rglob("*.py")), *sorted(DEVELOPMENT.rglob("*.py"))]

MAY_IMPORT: dict[str, set[str]] = {
    "domain": set(),
    "venues": {"domain"},
    "chain": {"domain", "venues"},
    "store": {"domain", "venues"},
    "channels": {"domain"},
    "sync": {"domain", "venues", "chain", "store"},
    "services": {"domain", "venues", "chain", "store", "channels"},
    "jobs": {"domain", "venues", "chain", "store", "channels", "sync", "services"},
    "api": {"domain", "venues", "chain", "store", "services", "jobs"},
    "console": {"domain", "services", "api"},
    "config": {"domain", "venues"},
    "observability": {"config", "domain", "chain", "services"},
    "app": {
        "config",
        "domain",
        "venues",
        "chain",
        "store",
        "channels",
        "sync",
        "services",
        "jobs",
        "api",
        "console",
    },
    "library": {"config", "domain", "venues", "chain", "services"},
    "cli": {
        "api",
        "app",
        "chain",
        "config",
        "domain",
        "library",
        "observability",
        "services",
        "store",
        "sync",
    },
    "__main__": {"cli"},
    "__init__": {"domain", "library"},
}
"""Every floor and the floors below it."""
OF_DEVELOPMENT = {
    "__init__": set[str](),
    "devnet": {"domain", "venues"},
    "tour": {"api", "domain", "devnet"},
    "commands": {"api", "app", "chain", "cli", "config", "domain", "observability", "services", "store"}
    | {"devnet", "tour"},
}
"""Every folder of the development package, and what it imports: floors of the product, folders of its own."""
VERIFIED_BY = {"cli/verify_trade.py", "console/pages/trade.py"}
"""The only modules of the product that import the verifier, which is installed apart."""
MAX_MODULES = 25
"""The most modules of one folder."""


def floor(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parse(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module. Cached: most tests here read all modules, which takes most of their time."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imports(path: Path, source: str | None = None) -> tuple[tuple[int, str], ...]:
    """Absolute names of what a module imports from this package, with the line."""
    package = next(folder for folder in (PACKAGE, VERIFIER, DEVELOPMENT) if path.is_relative_to(folder))
    inside = [package.name, *path.relative_to(package).parts[:-1]]
    lines_and_names: list[tuple[int, str]] = []
    for node in parse(path) if source is None else ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            lines_and_names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            lines_and_names.append((node.lineno, module))
            if module == "roundtrip":
                lines_and_names += [(node.lineno, f"roundtrip.{alias.name}") for alias in node.names]
    return tuple(lines_and_names)


def breaches(path: Path, source: str | None = None) -> list[str]:
    allowed = MAY_IMPORT[floor(path)] | {floor(path)}
    messages = []
    for line, name in imports(path, source):
        parts = name.split(".")
        if parts[0] == "roundtrip" and len(parts) > 1 and parts[1] not in allowed:
            messages.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    return messages


def test_every_module_stands_on_a_known_floor() -> None:
    assert {floor(path) for path in MODULES} == MAY_IMPORT.keys()


def test_a_module_imports_only_from_floors_below_it() -> None:
    assert [breach for path in MODULES for breach in breaches(path)] == []


def test_the_product_imports_the_verifier_in_two_places_and_development_nowhere() -> None:
    importers: dict[str, set[str]] = {}
    for path in MODULES:
        for _, name in imports(path):
            importers.setdefault(name.split(".")[0], set()).add(path.relative_to(PACKAGE).as_posix())
    assert importers["roundtrip_verify"] == VERIFIED_BY
    assert "roundtrip_development" not in importers


def test_development_imports_what_it_may() -> None:
    folders: dict[str, set[str]] = {}
    for path in DEVELOPMENT.rglob("*.py"):
        folder = path.relative_to(DEVELOPMENT).parts[0].removesuffix(".py")
        names = [name.split(".") for _, name in imports(path)]
        ours = {name[1] for name in names if name[0].startswith("roundtrip") and len(name) > 1}
        folders[folder] = folders.get(folder, set()) | ours - {folder}
    assert {folder: names - OF_DEVELOPMENT[folder] for folder, names in folders.items()} == {
        folder: set() for folder in OF_DEVELOPMENT
    }


@pytest.mark.parametrize(
    "source", ["from roundtrip.api import http", "from ...chain import rpc", "import roundtrip.cli.main"]
)
def test_a_breach_is_seen(source: str) -> None:
    assert len(breaches(PACKAGE / "domain" / "base" / "types.py", source)) == 1


def test_nothing_is_imported_inside_a_function() -> None:
    for path in EVERY_MODULE:
        for node in parse(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [n.lineno for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
                assert inner == [], f"{path}: {node.name} imports at {inner}"


def test_there_is_no_import_cycle() -> None:
    names = {".".join(["roundtrip", *p.relative_to(PACKAGE).with_suffix("").parts]): p for p in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {name: {imported for _, imported in imports(path)} & names.keys() for name, path in names.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for below in graph[name] - {name}:
                visit(below, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def room_imports() -> dict[str, set[str]]:
    """The folders that each folder's modules import from, by folder."""
    rooms = {".".join(["roundtrip", *p.relative_to(PACKAGE).with_suffix("").parts]): p for p in MODULES}
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        own = path.parent.relative_to(PACKAGE).as_posix()
        graph.setdefault(own, set())
        for _, name in imports(path):
            if name in rooms:
                graph[own].add(rooms[name].parent.relative_to(PACKAGE).as_posix())
    return {own: others - {own} for own, others in graph.items()}


BOTTOM = {"runtime", "support"}
"""Rooms of services that import no other ones than each other."""
BELOW_USE_CASES = BOTTOM | {"engine", "valuation", "holder_record", "rehearsal"}
"""Rooms of services that every use case may import. The other rooms are use cases, and do not import each
other."""


def upward_imports(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The imports by which a room of services breaks its rule: (room, imported room)."""
    return {
        (own.removeprefix("services/"), name)
        for own, others in graph.items()
        if own.startswith("services/")
        for name in (other.removeprefix("services/") for other in others if other.startswith("services/"))
        if name not in (BOTTOM if own.removeprefix("services/") in BOTTOM else BELOW_USE_CASES)
    }


def test_services_have_three_floors_and_use_cases_do_not_import_each_other() -> None:
    assert upward_imports(room_imports()) == set()
    graph = {
        "services/engine": {"services/check", "domain/base", "services/support"},
        "services/check": {"services/engine"},
        "services/support": {"services/runtime", "services/engine"},
    }
    assert upward_imports(graph) == {("engine", "check"), ("support", "engine")}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Folders that import each other in a circle; empty: none."""
    done: set[str] = set()

    def visit(room: str, above: tuple[str, ...]) -> list[str]:
        if room in above:
            return [*above[above.index(room) :], room]
        if room in done:
            return []
        for other in sorted(graph[room]):
            if rooms := visit(other, (*above, room)):
                return rooms
        done.add(room)
        return []

    return next((rooms for room in sorted(graph) if (rooms := visit(room, ()))), [])


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    assert circle(room_imports()) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_no_room_is_too_wide() -> None:
    widths: dict[str, int] = {}
    for path in MODULES:
        room = path.parent.relative_to(PACKAGE).as_posix()
        widths[room] = widths.get(room, 0) + 1
    assert {room: count for room, count in widths.items() if count > MAX_MODULES} == {}


def test_the_domain_needs_no_third_party_package() -> None:
    """-I -S: no site-packages, no environment, no user folder."""
    modules = [
        ".".join(["roundtrip", *p.relative_to(PACKAGE).with_suffix("").parts])
        for p in MODULES
        if floor(p) == "domain"
    ]
    source = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
    source += "".join(f"import {name.removesuffix('.__init__')}\n" for name in modules)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_domain_asks_no_clock_and_draws_no_chance() -> None:
    banned = {"time", "random", "secrets", "os", "asyncio", "socket", "uuid"}
    for path in MODULES:
        if floor(path) == "domain":
            for node in parse(path):
                if isinstance(node, ast.Import):
                    assert banned.isdisjoint(alias.name.split(".")[0] for alias in node.names), path
                elif isinstance(node, ast.ImportFrom):
                    assert (node.module or "").split(".")[0] not in banned, path


def sends_or_signs(source: str) -> list[str]:
    """What in a module could send or sign: words, packages, and methods of a node other than reads."""
    words = (
        "eth_send", "eth_sign", "personal_", "sign_transaction", "sign_message", "signTypedData",
        "sign_typed_data", "private_key", "Account.from_key", "mnemonic",
    )  # fmt: skip
    offenders = [word for word in words if word in source]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            offenders += [name for name in names if name.split(".")[0] in ("eth_account", "eth_keys")]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            method = re.fullmatch(
                r"(eth|net|web3|debug|trace|anvil|evm|personal|txpool)_[A-Za-z0-9]+", node.value
            )
            is_other = node.value in READ_METHODS or node.value.endswith(("_wei", "_usd"))
            offenders += [node.value] if method and not is_other else []
    return offenders


ASKED_FOR = ("services/accounts/issue_key.py", "personal_sign")
"""The only file that names a method with which callers sign in a wallet of their own, and that method."""


def test_only_the_local_chain_signs_or_sends() -> None:
    """The service holds no key and sends nothing."""
    for path in EVERY_MODULE:
        if not path.is_relative_to(DEVELOPMENT / "devnet"):
            name, source = path.as_posix(), path.read_text()
            if name.endswith(ASKED_FOR[0]):
                source = source.replace(ASKED_FOR[1], "")
            assert sends_or_signs(source) == [], name


@pytest.mark.parametrize(
    "source",
    [
        "import eth_account",
        "from eth_account.messages import encode_defunct",
        "from eth_keys import keys",
        "key = Account.from_key(secret)",
        "ask('eth_sendRawTransaction')",
        "ask('eth_signTypedData_v4')",
        "ask('personal_unlockAccount')",
        "ask('anvil_setBalance')",
        "def mine():\n    return {'method': 'evm_mine'}",
        "ask('eth_accounts')",
    ],
)
def test_what_could_send_or_sign_is_seen(source: str) -> None:
    assert sends_or_signs(source) != []


def test_reading_and_plain_words_are_no_alarm() -> None:
    assert sends_or_signs("import eth_abi\nask('eth_call', 'eth_getCode')\n'eth_ is a prefix'") == []


def test_only_the_command_line_reads_the_environment() -> None:
    readers = {PACKAGE / name for name in ("config/settings.py", "cli/terminal.py", "cli/arguments.py")}
    for path in EVERY_MODULE:
        if path not in readers:
            assert "os.environ" not in path.read_text(), path
            assert "getenv" not in path.read_text(), path


UNTYPED_ROW = re.compile(r"\b(?:row|record|one)\[\"")


def test_rows_of_the_database_have_types() -> None:
    """A record of the driver has fields of any type: ``store/server/rows`` reads it as a typed tuple."""
    untyped = [
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if floor(path) in ("store", "sync", "jobs", "services") and UNTYPED_ROW.search(path.read_text())
    ]
    assert untyped == []
    assert UNTYPED_ROW.search('found = row["wallet"]')


PRIVATE = re.compile(
    r"(?<!\bself)(?<!\bcls)(?<!\bsuper\(\))(?<=[\w\])])\._(?!_|replace\b|asdict\b|fields\b|exit\b)\w+"
)
PRIVATE_IMPORT = re.compile(r"^from roundtrip\S* import (?:\([^)]*\)|.*)", re.MULTILINE)
PATCH = re.compile(r"\.(?:setattr|delattr|setitem|delitem)\(|\bmock\.patch\b")
MAX_PRIVATE, MAX_PATCHES = 121, 126
"""What tests still reach behind a public door, and what they patch. Lower these with what you replace."""


def count_private(source: str) -> int:
    imported = " ".join(found.group().partition(" import ")[2] for found in PRIVATE_IMPORT.finditer(source))
    return len(PRIVATE.findall(source)) + len(re.findall(r"(?<!\w)_\w", imported))


def test_tests_reach_less_and_less_behind_public_doors() -> None:
    files = {path for folder in ("tests", "bench") for path in (PROJECT / folder).rglob("*.py")}
    # This module quotes what it looks for.
    others = files - {Path(__file__).resolve()}
    sources = [path.read_text() for path in others if "node_modules" not in path.parts]
    assert sum(map(count_private, sources)) <= MAX_PRIVATE
    assert sum(len(PATCH.findall(source)) for source in sources) <= MAX_PATCHES


def test_what_reaches_behind_a_public_door_is_seen() -> None:
    assert (
        count_private("from roundtrip.x import (\n    _a,\n    b,\n)\nx._y\nf()._z\nself._own\nsuper()._own")
        == 3
    )
    assert count_private("from roundtrip.x import a_b\nx.__name__\nx._replace(a=1)\n'a sentence._'") == 0
    assert len(PATCH.findall("patch.setattr(x, 'A', 1)\npatch.setenv('A', '1')")) == 1
