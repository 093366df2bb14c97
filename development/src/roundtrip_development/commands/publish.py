"""The command that writes the documents generated from the code."""

import contextlib
import io
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from typer.core import TyperGroup

import roundtrip
from roundtrip.api.documents import tool_schemas as publishing
from roundtrip.api.documents.llms_txt import llms_txt
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.cli import main
from roundtrip.cli.commands import COMMANDS, HELP_COLUMNS, HELP_FILE, JUDGING
from roundtrip.domain.base.policy import POLICY


def publish(
    folder: Annotated[Path, typer.Argument(help="The folder to write the documents to.")] = Path("docs"),
    package: Annotated[
        Path, typer.Option(help="The folder of the package, for the commands' help.", show_default=False)
    ] = Path(roundtrip.__file__).parent,
) -> None:
    """Writes the interface's documentation from the table of operations."""
    (package / HELP_FILE).parent.mkdir(parents=True, exist_ok=True)
    (package / HELP_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(list_help_texts()), indent=1))
    (folder / "api.md").write_text(publishing.api_markdown())
    (folder / "llms.txt").write_text(llms_txt())
    for name, document in (("tools.json", publishing.tools_json()), ("openapi.json", openapi_json())):
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    verdicts = folder / "verdicts.md"
    page = verdicts.read_text() if verdicts.exists() else publishing.EMPTY_VERDICTS
    verdicts.write_text(publishing.verdicts_markdown(page, POLICY))
    print(f"written: api.md, tools.json, openapi.json, llms.txt and verdicts.md in {folder}, and {HELP_FILE}")


def list_help_texts() -> dict[str, str]:
    """What ``--help`` prints, by command, such as ``keys list``. Without the commands that read their
    arguments themselves."""
    texts = {}
    for name in (name for name, entry in COMMANDS.items() if entry.module != JUDGING):
        found = main.command(name)
        below = [f"{name} {child}" for child in found.commands] if isinstance(found, TyperGroup) else []
        for words in (name, *below):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                main.app(
                    [*words.split(), "--help"],
                    prog_name="roundtrip",
                    standalone_mode=False,
                    terminal_width=HELP_COLUMNS - 2,
                )
            texts[words] = printed.getvalue()
    return texts
