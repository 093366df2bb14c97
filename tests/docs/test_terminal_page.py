"""The commands and the program of docs/terminal.md, run over the local chain's node as they are."""

import json
from pathlib import Path

from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe
from support.documents import MORE, blocks, run

PAGE = "docs/terminal.md"


async def test_the_page_prints_what_it_shows(tmp_path: Path, rpc: SyncRpc, built: Built) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    (program,) = (block.text for block in blocks(PAGE, "python"))
    (tmp_path / program.splitlines()[0].removeprefix("# ")).write_text(program)
    (shown,) = (block.text for block in blocks(PAGE, "text"))
    card, lines, traded, asked = await run(
        tmp_path, [block.text for block in blocks(PAGE, "bash")], "", rpc.url
    )
    printed = " ".join(card.split())
    for line in shown.splitlines():
        assert " ".join(line.partition(MORE)[0].split()) in printed
    assert [line.split()[1] for line in lines.splitlines()] == list(built.tokens.values())[:5]
    assert traded.splitlines()[0].startswith("OK: ")
    assert "goes through and changes no balance" in traded
    assert asked.split()[:2] == ["ok", "ok"]
