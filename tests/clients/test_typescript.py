"""The TypeScript client alone: its own tests, and what a package of it holds."""

import json
import re
from pathlib import Path

from support.typescript_client import CLIENT, build, run, run_node
from support.webhook_vectors import CHALLENGE, NOW_S, SECRET, vectors


async def test_the_clients_own_tests_pass_on_signed_messages(tmp_path: Path) -> None:
    built = await build()
    messages = [vector.as_json() for vector in vectors()]
    signed = {"secret": SECRET, "nowS": NOW_S, "challenge": CHALLENGE, "messages": messages}
    (tmp_path / "vectors.json").write_text(json.dumps(signed))
    tests = sorted(map(str, (built / "test").glob("*.test.js")))
    printed = await run_node("--test", *tests, VECTORS=str(tmp_path / "vectors.json"))
    (passed,) = re.findall(r"(?m)^# pass (\d+)$", printed)
    # One test for each message, and more than 15 others: none was left out silently.
    assert int(passed) > len(messages) + 15


async def test_a_package_holds_the_client_without_its_tests() -> None:
    await build()
    printed = await run("npm", "pack", "--dry-run", "--json", "--ignore-scripts", within_s=60)
    packed = {file["path"] for file in json.loads(printed)[0]["files"]}
    modules = {path.stem for path in (CLIENT / "src").glob("*.ts")}
    compiled = {f"dist/src/{module}{end}" for module in modules for end in (".js", ".d.ts")}
    assert packed == compiled | {"package.json", "README.md"}
