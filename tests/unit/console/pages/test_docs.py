"""The calls that the pages for programs show."""

import json

from roundtrip.api.operations.catalog import tools
from roundtrip.console.pages.docs import shorten_example, write_call

TOKEN = "0x" + "ab" * 20


def test_the_call_of_each_tool_is_json_and_names_a_token_where_it_needs_an_address() -> None:
    for tool in tools():
        body = write_call("https://here", tool, TOKEN).partition("-d '")[2].removesuffix("'")
        arguments = json.loads(body)["params"]["arguments"]
        assert arguments.get("address", TOKEN) == TOKEN, tool.name


def test_an_example_shows_the_form_of_an_answer_and_says_what_it_leaves_out() -> None:
    answer = {
        "text": "x" * 100,
        "rows": [{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, {}],
        "none": [],
        "n": None,
    }
    assert shorten_example(answer) == {
        "text": "x" * 80 + "…",
        "rows": [{"a": 1, "b": 2, "c": 3, "d": 4, "…": "…"}, "…"],
        "none": [],
        "n": None,
    }
