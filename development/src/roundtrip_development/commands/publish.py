"""The command that writes the documents generated from the code."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from roundtrip.api.documents import tool_schemas as publishing
from roundtrip.api.documents.llms_txt import llms_txt
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.domain.base.policy import POLICY


def publish(
    folder: Annotated[Path, typer.Argument(help="The folder to write the documents to.")] = Path("docs"),
) -> None:
    """Writes the interface's documentation from the table of operations."""
    (folder / "api.md").write_text(publishing.api_markdown())
    (folder / "llms.txt").write_text(llms_txt())
    for name, document in (("tools.json", publishing.tools_json()), ("openapi.json", openapi_json())):
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    verdicts = folder / "verdicts.md"
    page = verdicts.read_text() if verdicts.exists() else publishing.EMPTY_VERDICTS
    verdicts.write_text(publishing.verdicts_markdown(page, POLICY))
    print(f"written: api.md, tools.json, openapi.json, llms.txt and verdicts.md in {folder}")
