"""Third-party contract bytecode, fetched by pinned version and integrity hash; none of it is committed."""

import base64
import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundtrip.domain.base.errors import CannotRun

from .project import NPM_RETRIES, reason_of


@dataclass(frozen=True, slots=True)
class Package:
    """A published package, its integrity (SRI, sha512), and the bytecode to take from it by name."""

    name: str
    version: str
    sha512: str
    files: tuple[tuple[str, str], ...]


_V3_PERIPHERY = "package/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager.json"
_V3_ROUTER = "package/artifacts/contracts/SwapRouter02.sol/SwapRouter02.json"
_V3_QUOTER = "package/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json"

PACKAGES = (
    Package(
        "canonical-weth",
        "1.4.0",
        "9rkLfAFndWALLhxd5lpyTX4RkV36WmVBZ92NYtYr1kWdAUmclRp7I5KkK4wvogzDcCI++yw53TLwx/GCPcocMg==",
        (("WETH9", "package/build/contracts/WETH9.json"),),
    ),
    Package(
        "@uniswap/v3-core",
        "1.0.1",
        "7pVk4hEm00j9tc71Y9+ssYpO6ytkeI0y7WE9P6UcmNzhxPePwyAxImuhVsTqWK9YFvzgtvzJHi64pBl4jUzKMQ==",
        (("UniswapV3Factory", "package/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json"),),
    ),
    Package(
        "@uniswap/v3-periphery",
        "1.4.4",
        "S4+m+wh8HbWSO3DKk4LwUCPZJTpCugIsHrWR86m/OrUyvSqGDTXKFfc2sMuGXCZrD1ZqO3rhQsKgdWg3Hbb2Kw==",
        (("NonfungiblePositionManager", _V3_PERIPHERY),),
    ),
    Package(
        "@uniswap/swap-router-contracts",
        "1.3.1",
        "mh/YNbwKb7Mut96VuEtL+Z5bRe0xVIbjjiryn+iMMrK2sFKhR4duk/86mEz0UO5gSx4pQIw9G5276P5heY/7Rg==",
        (("SwapRouter02", _V3_ROUTER), ("QuoterV2", _V3_QUOTER)),
    ),
    Package(
        "@uniswap/v4-core",
        "1.0.2",
        "X15Tm2wWd+USAzEExMbo+g9naA6QN6mPgWm0MzDwRNlOfaNlepfUpSyt9RSrUfEODspwbyWbcLg6t5nwc/e7lg==",
        (("PoolManager", "package/out/PoolManager.sol/PoolManager.json"),),
    ),
    Package(
        "@uniswap/v4-periphery",
        "1.0.3",
        "JxLL0Djv9XcMvI2PatEnWrCrxuEaYNVhHxstndBOP+aJfh1XLg5ec8SDZ0xyoVfg2ElJTvuKpBgnu90bNValsg==",
        (
            ("PositionManager", "package/foundry-out/PositionManager.sol/PositionManager.json"),
            ("StateView", "package/foundry-out/StateView.sol/StateView.json"),
            ("V4Quoter", "package/foundry-out/V4Quoter.sol/V4Quoter.json"),
            ("Permit2Runtime", "package/lib/permit2/test/utils/DeployPermit2.sol"),
        ),
    ),
    Package(
        "@uniswap/universal-router",
        "2.1.0",
        "rt18RUsZd9xDfyVfIONJo+TEQ8w+olOYxu9+A1g4Thil1R7IMa+8mnyVQjdLPK2REhejScDwjYbOGpeaAce0hg==",
        (("UniversalRouter", "package/artifacts/contracts/UniversalRouter.sol/UniversalRouter.json"),),
    ),
    Package(
        "viem",
        "2.57.20",
        "LSvREzKT7xFXpmxW2YFJ/OtcZRkSGLp5zywSgadBf0qQCeqh2+FxHHWyrS2zEG7ZfBWQQvk8HI1i4HPzSMD14g==",
        (("Multicall3", "package/constants/contracts.ts"),),
    ),
)


class ArtifactError(CannotRun):
    """A package could not be fetched, or differs from its pin."""


def fetch(
    directory: Path, say: Callable[[str], None], packages: Sequence[Package] = PACKAGES
) -> dict[str, str]:
    """Creation bytecode (``0x`` hex) by contract name, fetched into ``directory`` on first use.

    Raises ArtifactError: a package is unavailable or its hash differs.
    """
    bundle = directory / f"bytecode-{pins_digest(packages)}.json"
    if not bundle.exists():
        directory.mkdir(parents=True, exist_ok=True)
        bytecode: dict[str, str] = {}
        for number, package in enumerate(packages, 1):
            say(f"fetching contracts {number}/{len(packages)}: {package.name} {package.version}")
            bytecode |= _fetch_package(package)
        partial = bundle.with_suffix(".partial")
        partial.write_text(json.dumps(bytecode, sort_keys=True))
        partial.replace(bundle)
    loaded: dict[str, str] = json.loads(bundle.read_text())
    return loaded


def pins_digest(packages: Sequence[Package] = PACKAGES) -> str:
    """A short hash of every pin: a changed pin gives another bundle."""
    return hashlib.sha256(repr(tuple(packages)).encode()).hexdigest()[:16]


def _fetch_package(package: Package) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        command = ["npm", "pack", "--silent", "--pack-destination", scratch]
        try:
            done = subprocess.run(
                [*command, f"{package.name}@{package.version}", *NPM_RETRIES],
                capture_output=True,
                text=True,
                cwd=scratch,
            )
        except FileNotFoundError:
            raise ArtifactError(
                "fetching the contracts needs npm, which is missing: start with make run, or install Node 20"
            ) from None
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            reason = reason_of(done.stderr)
            raise ArtifactError(f"npm could not fetch {package.name} {package.version}: {reason}")
        content = archives[0].read_bytes()
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        if digest != package.sha512:
            raise ArtifactError(f"{package.name} {package.version} is not the package that was pinned")
        with tarfile.open(archives[0]) as archive:
            return {name: _bytecode(_read(archive, path), path) for name, path in package.files}


def _read(archive: tarfile.TarFile, path: str) -> str:
    member = archive.extractfile(path)
    if member is None:
        raise ArtifactError(f"{path} is missing")
    return member.read().decode()


def _bytecode(text: str, path: str) -> str:
    if path.endswith(".json"):
        code = json.loads(text)["bytecode"]
        digits = code["object"] if isinstance(code, dict) else code
    elif path.endswith(".sol"):
        digits = _match(r'hex"([0-9a-f]+)"', text, path)
    else:
        digits = _match(r"multicall3Bytecode\s*=\s*'0x([0-9a-f]+)'", text, path)
    code_hex = "0x" + str(digits).removeprefix("0x")
    if not re.fullmatch(r"0x([0-9a-f]{2})+", code_hex):
        raise ArtifactError(f"{path} holds no linked bytecode")
    return code_hex


def _match(pattern: str, text: str, path: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ArtifactError(f"{path} holds no bytecode")
    return match[1]
