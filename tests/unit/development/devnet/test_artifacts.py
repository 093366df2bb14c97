"""Contracts of others: fetched by pinned version, refused when they are not what was pinned."""

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from roundtrip_development.devnet import artifacts
from roundtrip_development.devnet.artifacts import ArtifactError, Package, fetch, pins_digest

CODE = "package/build/Thing.json"

Publish = Callable[[dict[str, str]], Package]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Puts an archive where the only ``npm`` of this test finds it, and gives its pin."""
    bin_, archive = tmp_path / "bin", tmp_path / "thing-1.0.0.tgz"
    bin_.mkdir()
    npm = bin_ / "npm"
    npm.write_text(f'#!/bin/sh\nshift 3\n/bin/cp "{archive}" "$1/"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_))

    def put(files: dict[str, str]) -> Package:
        with tarfile.open(archive, "w:gz") as packed:
            for path, text in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(text.encode())
                packed.addfile(member, io.BytesIO(text.encode()))
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        return Package("thing", "1.0.0", digest, tuple(("Thing", path) for path in files))

    return put


def quiet(line: str) -> None:
    pass


def test_bytecode_is_taken_from_the_pinned_package_and_kept(publish: Publish, tmp_path: Path) -> None:
    pinned = publish({CODE: json.dumps({"bytecode": "0x6001"})})
    messages: list[str] = []
    assert fetch(tmp_path / "kept", messages.append, (pinned,)) == {"Thing": "0x6001"}
    assert messages == ["fetching contracts 1/1: thing 1.0.0"]
    (tmp_path / "bin" / "npm").unlink()
    assert fetch(tmp_path / "kept", messages.append, (pinned,)) == {"Thing": "0x6001"}
    assert len(messages) == 1
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [
        f"bytecode-{pins_digest((pinned,))}.json"
    ]


def test_a_package_whose_hash_differs_is_refused(publish: Publish, tmp_path: Path) -> None:
    pinned = publish({CODE: json.dumps({"bytecode": "0x6001"})})
    publish({CODE: json.dumps({"bytecode": "0x6002"})})
    with pytest.raises(ArtifactError, match="not the package that was pinned"):
        fetch(tmp_path / "kept", quiet, (pinned,))
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_package_that_cannot_be_had_is_named(publish: Publish, tmp_path: Path) -> None:
    pinned = publish({CODE: "{}"})
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\necho no such version >&2\nexit 1\n")
    with pytest.raises(ArtifactError, match=r"thing 1\.0\.0: no such version"):
        fetch(tmp_path / "kept", quiet, (pinned,))
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ArtifactError, match=r"thing 1\.0\.0: check the network and start again"):
        fetch(tmp_path / "kept", quiet, (pinned,))
    (tmp_path / "bin" / "npm").unlink()
    with pytest.raises(ArtifactError, match="needs npm, which is missing"):
        fetch(tmp_path / "kept", quiet, (pinned,))


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("package/a.json", '{"bytecode": {"object": "6001"}}', "0x6001"),
        ("package/a.json", '{"bytecode": {"object": "0x6001"}}', "0x6001"),
        ("package/a.sol", 'bytes code = hex"6001";', "0x6001"),
        ("package/a.ts", "export const multicall3Bytecode =\n  '0x6001'", "0x6001"),
    ],
)
def test_bytecode_is_found_in_every_shape_it_is_published_in(
    publish: Publish, tmp_path: Path, path: str, text: str, code: str
) -> None:
    pinned = publish({path: text})
    assert fetch(tmp_path / "kept", quiet, (pinned,)) == {"Thing": code}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package/a.json", '{"bytecode": "0x"}'),
        ("package/a.json", '{"bytecode": "0x600"}'),
        ("package/a.json", '{"bytecode": "0x60__$library$__01"}'),
        ("package/a.sol", "contract A {}"),
        ("package/a.ts", "export const multicall3 = 1"),
    ],
)
def test_a_file_without_linked_bytecode_is_refused(
    publish: Publish, tmp_path: Path, path: str, text: str
) -> None:
    pinned = publish({path: text})
    with pytest.raises(ArtifactError, match="bytecode"):
        fetch(tmp_path / "kept", quiet, (pinned,))
    assert not list((tmp_path / "kept").glob("*.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"version": "9.9.9"},
        {"sha512": "AAAA"},
        {"files": (("WETH9", "package/other.json"),)},
        {"files": (("WETH10", "package/build/contracts/WETH9.json"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_pin_is_another_bundle(change: dict[str, object]) -> None:
    first, *others = artifacts.PACKAGES
    assert pins_digest((replace(first, **change), *others)) != pins_digest()  # type: ignore[arg-type]
    assert pins_digest((first, *others)) == pins_digest()


def test_every_pin_is_a_whole_hash_and_every_contract_comes_from_one_place() -> None:
    for package in artifacts.PACKAGES:
        assert len(base64.b64decode(package.sha512, validate=True)) == 64
        assert package.version.count(".") == 2
    names = [name for package in artifacts.PACKAGES for name, _ in package.files]
    assert len(set(names)) == len(names)
