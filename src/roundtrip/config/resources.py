"""What comes not by pip: our contracts, the local chain's node, the libraries that pages load.

In a checkout they lie in it, where ``make run`` has npm put them. A wheel carries the contracts, npm's lock
file and what pages load; the node comes by npm at the first start of a local chain.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from roundtrip.domain.base.errors import CannotRun

_CHECKOUT = Path(__file__).resolve().parents[3]
_CARRIED = Path(__file__).resolve().parents[1] / "carried"
IS_WHEEL = _CARRIED.is_dir()
LIBRARIES = (_CARRIED if IS_WHEEL else _CHECKOUT) / "node_modules"
"""Where what pages load lies."""
NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")


class NotInstalled(CannotRun):
    """What a local chain needs could not be had."""


def project(var: Path, say: Callable[[str], None]) -> Path:
    """Where ``contracts`` and ``node_modules`` lie: the checkout, or for a wheel a folder of ``var``, made on
    first use and again for another release. Raises NotInstalled."""
    return laid_out(_CARRIED, var / "project", say) if IS_WHEEL else _CHECKOUT


def laid_out(carried: Path, folder: Path, say: Callable[[str], None]) -> Path:
    """``folder`` with all that ``carried`` holds, and what its lock file names. Raises NotInstalled."""
    stamp, wanted = folder / ".installed", _digest(carried)
    if stamp.is_file() and stamp.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(carried, folder, ignore=shutil.ignore_patterns("node_modules"))
    say("installing the local chain's node")
    try:
        done = subprocess.run(NPM, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise NotInstalled(
            "The local chain's node comes by npm, and there is none: install Node 20."
        ) from error
    if done.returncode != 0:
        raise NotInstalled(f"npm could not install the local chain's node: {done.stderr.strip()[-500:]}")
    stamp.write_text(wanted)
    return folder


def _digest(carried: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in carried.rglob("*") if path.is_file()):
        digest.update(path.relative_to(carried).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
