"""Moves API keys and session tokens out of request paths before anything else reads the path."""

import re
from urllib.parse import quote, unquote

from starlette.types import Scope

PATH_KEY = "roundtrip.path_key"
"""The scope entry that holds the key of ``/mcp/{key}``."""

_TOOL_SERVER = "/mcp/"
_LOOKS_LIKE_A_KEY = re.compile("(rt_|rs_(?=[0-9A-Za-z]{20}))[^/&?#=]*")
"""``rs_`` must be followed by 20 more characters, because many words end with it."""
_SLASH = re.compile(rb"%2f", re.IGNORECASE)


def hide_keys(scope: Scope) -> None:
    """Removes keys from a request's path and query, in place, so that no log, trace or error contains them.
    An encoded slash stays part of its segment."""
    path, query = scope["path"], scope.get("query_string", b"")
    if b"%2f" in scope.get("raw_path", b"").lower():
        path = unquote(_SLASH.sub(b"%252F", scope["raw_path"]).decode("latin-1"))
        scope["path"] = path
    if path.startswith(_TOOL_SERVER):
        key = path[len(_TOOL_SERVER) :]
        is_key = key and "/" not in key
        if is_key:
            scope[PATH_KEY] = key
        _set_path(scope, "/mcp" if is_key else "/mcp/-")
    elif _LOOKS_LIKE_A_KEY.search(path):
        _set_path(scope, _LOOKS_LIKE_A_KEY.sub(r"\1", path))
    query_text = query.decode("latin-1")
    if _LOOKS_LIKE_A_KEY.search(query_text):
        scope["query_string"] = _LOOKS_LIKE_A_KEY.sub(r"\1", query_text).encode("latin-1")


def _set_path(scope: Scope, path: str) -> None:
    scope["path"] = path
    scope["raw_path"] = quote(path).encode()
