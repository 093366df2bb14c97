"""What the local chain takes and pip does not install: contracts, and the chain's node.

In a checkout they are in its folders, installed by ``make run`` with npm. A wheel contains the contracts and
npm's lock file, and npm installs the node at the first start of a local chain.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from roundtrip.domain.base.errors import CannotRun

_CHECKOUT = Path(__file__).resolve().parents[4]
_CARRIED = Path(__file__).resolve().parents[1] / "carried"
NPM_RETRIES = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
"""Without them npm takes over a minute to notice that there is no network."""
NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", *NPM_RETRIES)


class NotInstalled(CannotRun):
    """A resource of the local chain could not be installed."""


def project_folder(var: Path, report: Callable[[str], None]) -> Path:
    """The folder with ``contracts`` and ``node_modules``: the checkout, or for a wheel a folder in ``var``,
    installed on first use and after an upgrade. Raises NotInstalled."""
    return lay_out_project(_CARRIED, var / "project", report) if _CARRIED.is_dir() else _CHECKOUT


def lay_out_project(carried: Path, folder: Path, report: Callable[[str], None]) -> Path:
    """Copies ``carried`` to ``folder`` and installs its npm packages, unless done already. Returns
    ``folder``. Raises NotInstalled."""
    stamp, digest = folder / ".installed", _digest(carried)
    if stamp.is_file() and stamp.read_text() == digest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(carried, folder)
    report("installing the local chain's node")
    try:
        result = subprocess.run(NPM, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise NotInstalled("The local chain's node needs npm, which is missing: install Node 20.") from error
    if result.returncode != 0:
        raise NotInstalled(f"npm could not install the local chain's node: {reason_of(result.stderr)}")
    stamp.write_text(digest)
    return folder


def reason_of(npm_errors: str) -> str:
    """What npm wrote, in one line; it writes nothing where the network fails."""
    return " ".join(npm_errors.split())[-300:] or "check the network and start again"


def _digest(carried: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in carried.rglob("*") if path.is_file()):
        digest.update(path.relative_to(carried).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
