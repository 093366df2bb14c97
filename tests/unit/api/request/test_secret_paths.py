"""No key stays in a path, a query or their raw forms."""

from typing import Any

import pytest

from roundtrip.api.request.callers import PATH_KEY, hide_keys

KEY = "rt_" + "k" * 49


def scope_of(target: str) -> dict[str, Any]:
    """As the HTTP server would make it."""
    raw, _, query = target.encode().partition(b"?")
    path = raw.replace(b"%2F", b"/").replace(b"%2f", b"/").decode()
    return {"type": "http", "path": path, "raw_path": raw, "query_string": query}


@pytest.mark.parametrize(("target", "key"), [(f"/mcp/{KEY}", KEY), ("/mcp/dead", "dead")])
def test_a_key_at_the_end_of_the_address_moves_out_of_it(target: str, key: str) -> None:
    scope = scope_of(target)
    hide_keys(scope)
    assert scope.pop(PATH_KEY) == key
    assert scope == scope_of("/mcp")


@pytest.mark.parametrize(
    "target",
    [
        f"/mcp/{KEY}/", f"/mcp/{KEY}/more", f"/mcp//{KEY}", "/mcp/", f"/mcp%2F{KEY}", f"/mcp%2f{KEY}",
        f"/{KEY}", f"/v1/check/{KEY}", f"/MCP/{KEY}", f"//mcp/{KEY}", f"/mcp?key={KEY}",
        f"/v1/health?a=1&{KEY}=2&b=3",
    ],
)  # fmt: skip
def test_a_key_anywhere_else_is_no_key_and_is_taken_out_too(target: str) -> None:
    scope = scope_of(target)
    hide_keys(scope)
    assert PATH_KEY not in scope
    assert "kkk" not in repr(scope)
    assert scope["path"] != "/mcp" or scope["query_string"] == b"key=rt_"


def test_a_session_is_taken_out_of_a_query_and_a_word_that_ends_like_its_beginning_is_not() -> None:
    scope = scope_of(f"/search?q=rs_{'k' * 49}&b=bears_club")
    hide_keys(scope)
    assert scope["query_string"] == b"q=rs_&b=bears_club"


def test_what_stands_beside_a_key_in_a_query_stays() -> None:
    scope = scope_of(f"/v1/health?a=1&k={KEY}&b=3")
    hide_keys(scope)
    assert scope["query_string"] == b"a=1&k=rt_&b=3"


@pytest.mark.parametrize("target", ["/", "/mcp", "/v1/check/0x12?deep=1", "/v1/health"])
def test_any_other_path_stays_as_it_is(target: str) -> None:
    scope = scope_of(target)
    hide_keys(scope)
    assert scope == scope_of(target)


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_an_encoded_slash_separates_nothing(slash: str) -> None:
    scope = scope_of(f"/v1/check/0x12{slash}proof")
    hide_keys(scope)
    assert scope["path"] == "/v1/check/0x12%2Fproof"
