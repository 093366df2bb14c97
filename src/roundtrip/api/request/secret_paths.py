"""Request paths before anything else sees them: a key or session that stands in one is moved out of it."""

import re
from urllib.parse import quote, unquote

from starlette.types import Scope

PATH_KEY = "roundtrip.path_key"
"""Where the key of ``/mcp/{key}`` is found in a request's scope."""

_TOOL_SERVER = "/mcp/"
_LOOKS_LIKE_A_KEY = re.compile("(rt_|rs_(?=[0-9A-Za-z]{20}))[^/&?#=]*")
"""A session's beginning is the end of many words."""
_SLASH = re.compile(rb"%2f", re.IGNORECASE)


def clean(scope: Scope) -> None:
    """Takes keys out of a request's path and query, in place, so that no log, trace or error has them; an
    encoded slash stays part of its segment."""
    path, query = scope["path"], scope.get("query_string", b"")
    if b"%2f" in scope.get("raw_path", b"").lower():
        path = unquote(_SLASH.sub(b"%252F", scope["raw_path"]).decode("latin-1"))
        scope["path"] = path
    if path.startswith(_TOOL_SERVER):
        key = path[len(_TOOL_SERVER) :]
        found = key and "/" not in key
        if found:
            scope[PATH_KEY] = key
        _set(scope, "/mcp" if found else "/mcp/-")
    elif _LOOKS_LIKE_A_KEY.search(path):
        _set(scope, _LOOKS_LIKE_A_KEY.sub(r"\1", path))
    told = query.decode("latin-1")
    if _LOOKS_LIKE_A_KEY.search(told):
        scope["query_string"] = _LOOKS_LIKE_A_KEY.sub(r"\1", told).encode("latin-1")


def _set(scope: Scope, path: str) -> None:
    scope["path"] = path
    scope["raw_path"] = quote(path).encode()
