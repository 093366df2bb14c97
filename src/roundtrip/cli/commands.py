"""The table of commands, and the help that lists them. It imports nothing that takes long."""

import json
import shutil
import textwrap
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import roundtrip


class CommandPart(NamedTuple):
    """A part of the software that brings commands. ``module``: it is installed where this module is; empty:
    always. ``package``: our package of it. ``install``: how to install it."""

    title: str
    module: str = ""
    package: str = ""
    install: str = ""


# The index has another project of this name: what is installed is a file.
_EXTRA = (
    "install the file or checkout that this came from with its extra, as in "
    f"pipx install --force 'roundtrip_check-{roundtrip.__version__}-py3-none-any.whl[server]'"
)
_NODE = CommandPart("Over a node alone")
_VERIFIER = CommandPart(
    "Offline",
    "roundtrip_verify",
    "the package roundtrip-verify",
    "install the folder verify of a checkout, or its wheel",
)
_DEVELOPMENT = CommandPart(
    "To try and to develop",
    "roundtrip_development",
    "the package roundtrip-development",
    f"{_EXTRA}, and the folder development of the checkout",
)
_SERVICE = CommandPart(
    "The service and its database", "uvicorn", "the extra 'server' of roundtrip-check", _EXTRA
)
JUDGING = "judging"
"""The module of the commands that read their arguments themselves, and whose exit code is a verdict."""
HELP_FILE, HELP_COLUMNS = "cli/help.json", 80
"""What ``--help`` of the other commands prints, in the package; ``roundtrip publish`` writes it. Their own
modules take seconds to import."""
GROUP = "roundtrip.commands"
"""The group of entry points by which another package brings commands."""


class CommandEntry(NamedTuple):
    """Where a command is: the part that brings it, its module, and its name there (a function, or a Typer
    application of several commands); both empty: another package brings it, as an entry point of ``GROUP``.
    ``line``: what help says of it, so that help imports nothing."""

    part: CommandPart
    module: str
    attribute: str
    line: str


COMMANDS = MappingProxyType(
    {
        "check": CommandEntry(
            _NODE, "judging", "check",
            "Buys tokens and sells them straight back in a simulation, over a node alone; exit 0: ok, 1: "
            "warn, 2: danger, 3: unknown.",
        ),
        "simulate": CommandEntry(
            _NODE, "judging", "simulate",
            "Runs calls of your own in a simulation and sells straight back what they bring, over a node "
            "alone; exit codes as of check.",
        ),
        "prepare": CommandEntry(
            _NODE, "judging", "prepare",
            "Writes a buy or a sell for your wallet to sign, simulated before, over a node alone; exit codes "
            "as of check.",
        ),
        "holders": CommandEntry(_NODE, "judging", "holders", "Says what it takes to see who holds a token."),
        "verify-trade": CommandEntry(
            _VERIFIER, "verify_trade", "verify_trade",
            "Verifies a prepared trade from its own bytes, without the service; exit 0: all of it holds, "
            "also a refusal of the trade, 1: do not sign, 2: not read or not verified.",
        ),
        "demo": CommandEntry(
            _DEVELOPMENT, "", "",
            "A local chain, a database and the service, with sample tokens to try it on.",
        ),
        "devnet": CommandEntry(
            _DEVELOPMENT, "", "",
            "Only the local chain; var/devnet.json describes it.",
        ),
        "tour": CommandEntry(
            _DEVELOPMENT, "", "",
            "Writes docs/tour.md: every tool once, called on a demo. With --examples also an answer of each.",
        ),
        "publish": CommandEntry(
            _DEVELOPMENT, "", "",
            "Writes the interface's documentation from the table of operations.",
        ),
        "serve": CommandEntry(
            _SERVICE, "serve", "serve",
            "Serves the API, the tools and the console, on the configured network.",
        ),
        "sync": CommandEntry(
            _SERVICE, "index", "sync",
            "Follows the chain into the database: launches, pools, trades, wallets. Of several one leads, "
            "and the others wait.",
        ),
        "rebuild": CommandEntry(
            _SERVICE, "index", "rebuild",
            "Recomputes positions and profits from the trades, while everything goes on.",
        ),
        "forget": CommandEntry(
            _SERVICE, "index", "forget",
            "Deletes what sync stored, and the holder books, so that the next sync starts over; exit 1: "
            "nothing was done.",
        ),
        "origin": CommandEntry(
            _SERVICE, "index", "origin",
            "Shows when a wallet was first seen and who funded it, from the index or an archive; exit 2: "
            "unknown.",
        ),
        "keys": CommandEntry(
            _SERVICE, "keys", "app",
            "API keys: list them, revoke one.",
        ),
        "deliveries": CommandEntry(
            _SERVICE, "deliveries", "app",
            "Messages to channels: list those of a channel, send one again.",
        ),
        "work": CommandEntry(
            _SERVICE, "operate", "work",
            "Runs only the background jobs and the alerts, on the configured network.",
        ),
        "migrate": CommandEntry(
            _SERVICE, "operate", "migrate",
            "Brings the database's schema up to date.",
        ),
        "drain": CommandEntry(
            _SERVICE, "drain", "drain",
            "Stops new traffic to the service on this machine, before it ends.",
        ),
        "backup": CommandEntry(
            _SERVICE, "backup", "backup",
            "Writes the database into a file, as it is at one moment, while everything goes on.",
        ),
        "restore": CommandEntry(
            _SERVICE, "backup", "restore",
            "Restores a backup into an empty database: all of it, or nothing.",
        ),
        "doctor": CommandEntry(
            _SERVICE, "operate", "doctor",
            "Shows what each node lacks, and what a check and the service lose by it; exit 1: with no node "
            "can the service follow the chain.",
        ),
        "verify": CommandEntry(
            _SERVICE, "verify", "verify_proof",
            "Repeats a check from its proof; exit 0: all of it holds, 1: something does not, 2: "
            "unknown.",
        ),
    }
)  # fmt: skip
"""By command name, those of a part together."""


def list_installed() -> list[str]:
    """The names of the commands whose part is installed here."""
    return [name for name, entry in COMMANDS.items() if is_installed(entry.part)]


def is_installed(part: CommandPart) -> bool:
    """Whether the module of a part is there. It is not imported."""
    return not part.module or find_spec(part.module) is not None


def format_help(width: int | None = None) -> str:
    """The list of commands, by parts; of a part that is not installed, how to install it."""
    columns = width or min(shutil.get_terminal_size().columns, _WIDEST)
    does = "Buys a token and sells it straight back inside a simulation, before you buy it."
    lines = ["usage: roundtrip COMMAND [OPTIONS]", "", *_wrap(does, columns, "")]
    for part, entries in groupby(COMMANDS.items(), lambda item: item[1].part):
        names = dict(entries)
        if not is_installed(part):
            lines += [
                "",
                *_wrap(
                    f"{part.title} (not installed): {', '.join(names)}. To have them, {part.install}.",
                    columns,
                    "",
                ),
            ]
            continue
        lines += ["", f"{part.title}:"]
        for name, entry in names.items():
            lines += _wrap(entry.line, columns, f"  {name:<13} ")
    options = (
        "roundtrip COMMAND --help lists a command's options, --version says which one this is, "
        "--install-completion makes your shell complete the commands."
    )
    return "\n".join([*lines, "", *_wrap(options, columns, "")]) + "\n"


def read_help(words: Sequence[str]) -> str | None:
    """The written help of a command, such as ``["keys", "list"]``. None: there is none, its part is not
    installed, or the terminal is too narrow for it."""
    entry = COMMANDS.get(words[0])
    is_wide = shutil.get_terminal_size().columns >= HELP_COLUMNS
    if entry is None or not is_wide or not is_installed(entry.part):
        return None
    texts: dict[str, str] = json.loads((Path(roundtrip.__file__).parent / HELP_FILE).read_text())
    return texts.get(" ".join(words))


_WIDEST = 100
"""Columns of help, at most."""


def _wrap(text: str, columns: int, start: str) -> list[str]:
    return textwrap.wrap(
        text,
        columns,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
