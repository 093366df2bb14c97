"""What a page of the tour has its readers type."""

import json
import subprocess

from roundtrip_development.tour.page import BASE_URL, CALL

# In place of curl: what it would be called with, one argument a line.
STUB = 'curl() { printf "%s\\n" "$@"; }'


def typed(line: str, key: str = "") -> list[str]:
    script = f"{STUB}\n{CALL}\nKEY={key}\n{line}"
    return subprocess.run(
        ["/bin/bash", "-euc", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_the_function_calls_a_tool() -> None:
    *head, body = typed("""call look_up '{"query": "it'\\''s $X"}'""")
    assert head == ["-s", f"{BASE_URL}/mcp", "-H", "content-type: application/json", "-d"]
    assert json.loads(body)["params"] == {"name": "look_up", "arguments": {"query": "it's $X"}}


def test_it_sends_a_key_where_there_is_one() -> None:
    assert "x-api-key: rt_abc" in typed("call my_mite '{}'", "rt_abc")
