"""Loaded by schemathesis: tokens that there are in the place of made-up ones.

Requests then get further than the first look at the chain. What does not fit the document stays as it was.

The published schemas of parameters are looser than what the service takes, for clients that read no more of
JSON Schema. Here they are read as the service holds them: closed, with every bound, null for what may be left
out.
"""

import json
import os
import re
from pathlib import Path
from typing import Any
from zlib import crc32

import schemathesis
from schemathesis import HookContext

TOKENS = os.environ["SCHEMATHESIS_TOKENS"].split()
STRICT = json.loads(Path(os.environ["SCHEMATHESIS_STRICT"]).read_text())
"""Schemas of parameters by name."""
ADDRESS = re.compile("0x[0-9a-fA-F]{40}")


def there_is(address: object) -> object:
    """One of the tokens, for two of three addresses, always the same one for the same address."""
    if not isinstance(address, str) or not ADDRESS.fullmatch(address):
        return address
    place = crc32(address.encode())
    return address if place % 3 == 0 else TOKENS[place // 3 % len(TOKENS)]


@schemathesis.hook
def before_load_schema(context: HookContext, schema: dict[str, Any]) -> None:
    components = schema["components"]["schemas"]
    components |= {name: STRICT[name] for name in components if name in STRICT}
    for path in schema["paths"].values():
        for operation in path.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for option in body.get("schema", {}).get("anyOf", ()):
                option["properties"] = {name: {"not": {"type": "null"}} for name in option["required"]}


@schemathesis.hook
def map_path_parameters(context: HookContext, path_parameters: Any) -> Any:
    if isinstance(path_parameters, dict) and "address" in path_parameters:
        return {**path_parameters, "address": there_is(path_parameters["address"])}
    return path_parameters


@schemathesis.hook
def before_call(context: HookContext, case: Any, kwargs: dict[str, Any]) -> None:
    """Blocks that there are: any other one is waited for, and then nothing more is asked."""
    text = str((case.headers or {}).get("x-min-block", ""))
    if text.isdigit() and len(text) <= 15:
        case.headers["x-min-block"] = str(len(text) % 2)


@schemathesis.hook
def map_body(context: HookContext, body: Any) -> Any:
    """Amounts stay away from tokens that there are: how many decimals one takes, no schema can say."""
    if not isinstance(body, dict) or "token" not in body:
        return body
    whole = re.fullmatch("all|[0-9]{1,40}([.][0-9]{1,6})?", str(body.get("amount", "all")))
    return {**body, "token": there_is(body["token"])} if whole else body
