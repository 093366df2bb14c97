"""The calls that the pages for programs show."""

import json

from roundtrip.api.operations.catalog import tools
from roundtrip.console.pages.docs import write_call

TOKEN = "0x" + "ab" * 20


def test_the_call_of_each_tool_is_json_and_names_a_token_where_it_needs_an_address() -> None:
    for tool in tools():
        body = write_call("https://here", tool, TOKEN).partition("-d '")[2].removesuffix("'")
        arguments = json.loads(body)["params"]["arguments"]
        assert arguments.get("address", TOKEN) == TOKEN, tool.name
