"""Describes wrong parameters: which one is wrong, what it must be, and an example of a right value.

What a parameter must be comes from its JSON Schema; examples come from a table by form, and by name
where a form has several meanings. msgspec's messages are read for the parameter's path only.

``drop_nulls`` removes null from the place of a parameter that may be left out: many programs send that.
``read_quoted`` reads numbers and JSON that language models put in quotes."""

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import inspect

from roundtrip.domain.accounts.keys import without_keys
from roundtrip.domain.base.names import reason as clean_quoted
from roundtrip.services.check.schema import AMOUNT_PATTERN
from roundtrip.services.support.answer_fields import EXAMPLE_ADDRESS

EXAMPLE_HASH = "0x" + "00112233445566778899aabbccddeeff" * 2

MAX_BRACKETS = 1000
"""More than any request needs; keeps recursive JSON parsers far from the end of their stack."""
_MAX_NAME = 40
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*?)`(?: - at `\$\.?(.*)`)?", re.S)
_PATH = re.compile(r" - at `\$\.?([^`]*)`$")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

_AN_ADDRESS = f'must be an address: 0x and 40 hex digits, such as "{EXAMPLE_ADDRESS}"'
_DECIMAL = "[0-9]{1,40}(\\.[0-9]{1,40})?"
_BY_PATTERN: Mapping[str, str] = MappingProxyType(
    {
        "^0x[0-9a-fA-F]{40}$": _AN_ADDRESS,
        "^0x[0-9a-fA-F]{64}\\Z": (
            f'must be the hash of a transaction: 0x and 64 hex digits, such as "{EXAMPLE_HASH}"'
        ),
        "^0x([0-9a-fA-F]{2})*$": 'must be bytes in hex: 0x and two digits a byte, such as "0xd0e30db0"',
        "^([0-9]{1,78}|0x[0-9a-fA-F]{1,64})$": (
            'must be an amount in wei, in quotes, such as "100000000000000000" (0.1 eth)'
        ),
        f"^{_DECIMAL}$": 'must be a decimal number in quotes, such as "0.1"',
        f"^(all|{_DECIMAL})$": 'must be "all", or a decimal number of tokens in quotes, such as "1250.5"',
        "^[0-9a-f]{64}$": "must be the claim of POST /v1/keys/nonce: 64 hex digits",
        "^ *[A-Za-z0-9][A-Za-z0-9 ]*$": (
            'must be at most 24 Latin letters, digits and spaces, such as "Trader 7"'
        ),
        AMOUNT_PATTERN: 'must be an amount of eth from 0.001 to 10, such as "0.5"',
        "^[0-9]{1,19}\\Z": 'must be the id of a key, a whole number such as "7"',
        "^[A-Za-z0-9]*$": 'must be at most 24 Latin letters and digits, such as "whale7"',
    }
)
"""What a string must be, by the pattern of its schema."""
_BY_NAME: Mapping[str, str] = MappingProxyType(
    {
        "addresses": f'must be a list of 1 to 50 addresses, such as ["{EXAMPLE_ADDRESS}"]',
        "calls": f'must be a list of 1 to 6 calls, such as [{{"to": "{EXAMPLE_ADDRESS}", "data": "0x"}}]',
        "signature": "must be a signature in hex, at most 8,192 bytes: 0x and two digits for each byte",
        "label": 'must be a text of at most 64 characters, such as "laptop"',
        "tokens": f'must be 1 to 50 addresses separated by commas, such as "{EXAMPLE_ADDRESS}"',
        "events": 'must be kinds of events separated by commas, such as "verdict,launch"',
        "lastEventId": 'must be the id of an event, such as "7.100.3.1760000000.0.9.1760000020"',
        "query": (
            "must be a text of 1 to 80 characters: an address, a transaction's hash or a symbol, "
            'such as "PEPE"; of up to 8,192, such as a link, if it has one address or hash in it'
        ),
        "rule": 'must be a text of at most 200 characters, such as "any selling over 10 eth"',
        "url": 'must be a text of 1 to 300 characters, such as "https://example.com/alerts"',
    }
)
"""What a parameter must be, by its name, where its schema does not say enough."""


def describe_mismatch(
    params: type[msgspec.Struct], tool: str, message: str, unlisted: Sequence[str] = ()
) -> str:
    """The sentence for a message of ``msgspec.ValidationError`` about ``params``. ``unlisted``: parameters
    that a request can carry, and that no schema lists."""
    found = _FIELD.match(message)
    if found is not None and found[1] == "contains unknown":
        return _describe_unknown(params, tool, found[2], found[3] or "", unlisted)
    if found is not None:
        path = ".".join(filter(None, (found[3], found[2])))
        expected = _describe_expected(params, path)
        return f"{path} is missing. It {expected}." if expected else f"{path} is missing."
    at = _PATH.search(message)
    expected = _describe_expected(params, at[1]) if at is not None else None
    if at is None or expected is None:
        return f"The parameters are wrong: {without_keys(message)[:200]}."
    return f"{at[1]} {expected}."


def describe_unknown_query(tool: str, names: Sequence[str], name: str) -> str:
    """The sentence for a parameter of a query string that the tool does not take. ``names``: those it
    takes."""
    similar = find_similar(name, names)
    guess = "" if similar is None else f" Did you mean {similar}?"
    takes = f"It takes {', '.join(names)}." if names else "It takes none."
    return f"{quote_name(name)} is not a query parameter of {tool}.{guess} {takes}"


def describe_repeated_query(name: str, times: int) -> str:
    """The sentence for a parameter that a query string has several times."""
    often = "twice" if times == 2 else f"{times:,} times"
    return f"The query parameter {quote_name(name)} is given {often}. Give it once."


def is_unknown_field(message: str) -> bool:
    """Whether a message of ``msgspec.ValidationError`` is about a parameter that is not taken."""
    return message.startswith("Object contains unknown field")


def find_similar(name: str, names: Sequence[str]) -> str | None:
    """The name that ``name`` most likely misspells; None: none is close."""
    close = difflib.get_close_matches(name[:_MAX_NAME], names, 1)
    return close[0] if close else None


def quote_name(name: str) -> str:
    """A caller's word in quotes: without keys, cleaned and cut."""
    return f'"{clean_quoted(without_keys(name[: 4 * _MAX_NAME]))[:_MAX_NAME]}"'


def _describe_unknown(
    params: type[msgspec.Struct], tool: str, name: str, path: str, unlisted: Sequence[str] = ()
) -> str:
    place = path or tool
    schema = _find_schema(params, path) or {}
    names = list(schema.get("properties", {}))
    similar = find_similar(name, [*names, *unlisted])
    guess = "" if similar is None else f" Did you mean {similar}?"
    beside = f", and what wallets write: {', '.join(unlisted)}" if unlisted else ""
    takes = f"It takes {', '.join(names)}{beside}." if names else "It takes no arguments."
    return f"{quote_name(name)} is not an argument of {place}.{guess} {takes}"


def _describe_expected(params: type[msgspec.Struct], path: str) -> str | None:
    """What the parameter at ``path`` must be, from "must" on; None: not known."""
    schema = _find_schema(params, path)
    name = path.rpartition(".")[2]
    if schema is None:
        return None
    if name == "address":
        # The sentence begins with the name: not "address must be an address".
        return _AN_ADDRESS.replace("an address: ", "")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if "enum" in schema:
        *others, last = (f'"{value}"' for value in schema["enum"])
        return f"must be {', '.join(others)} or {last}" if others else f"must be {last}"
    if "properties" in schema:
        return f"must be an object with {', '.join(schema['properties'])}"
    match schema.get("type"):
        case "boolean":
            return "must be true or false, without quotes"
        case "integer" | "number":
            return _describe_number(schema)
        case "string":
            expected = _BY_PATTERN.get(schema.get("pattern", ""))
            return _describe_text(schema) if expected is None and "pattern" not in schema else expected
    return None


def _describe_number(schema: Mapping[str, Any]) -> str:
    is_whole = schema["type"] == "integer"
    kind = "a whole number" if is_whole else "a number"
    least, above, most = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    low = f"from {least}" if least is not None else f"above {above}" if above is not None else ""
    is_useful = most is not None and most < 2**53
    bounds = f"{low} {'to' if least is not None else 'and at most'} {most}" if is_useful and low else low
    example = schema.get("default")
    if not isinstance(example, int | float):
        example = 7 if is_whole else 50
    return f"must be {kind} {bounds}".rstrip() + f", such as {example}"


def _describe_text(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    length = f" of {least} to {most} characters" if least and most else ""
    return f"must be a text{length or (f' of at most {most} characters' if most else '')}, in quotes"


def _find_schema(params: type[msgspec.Struct], path: str) -> Mapping[str, Any] | None:
    """The schema at a path such as ``calls[0].to``; null is left out of unions."""
    (root,), components = _read_schemas(params)
    schema = _resolve(root, components)
    for name, index in _STEP.findall(path):
        within = schema.get("items") if index else schema.get("properties", {}).get(name)
        if within is None:
            return None
        schema = _resolve(within, components)
    return schema


def _resolve(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Mapping[str, Any]:
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(option, components)
    reference = schema.get("$ref")
    if reference is None:
        return schema
    resolved: Mapping[str, Any] = components[reference.rpartition("/")[2]]
    return resolved


@cache
def _read_schemas(params: type[msgspec.Struct]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    return msgspec.json.schema_components([params])


def drop_nulls(raw: Mapping[str, object], kind: type[msgspec.Struct]) -> dict[str, object]:
    """The parameters without those that are null and may be left out, in inner objects, too. Unknown and
    required ones stay: validation refuses them."""
    optional, inner = _read_fields(kind)
    return {
        name: _drop_within(value, inner.get(name))
        for name, value in raw.items()
        if value is not None or name not in optional
    }


def _drop_within(value: object, kind: type[msgspec.Struct] | None) -> object:
    if kind is None:
        return value
    if isinstance(value, list):
        return [_drop_within(item, kind) for item in value]
    return drop_nulls(value, kind) if isinstance(value, dict) else value


def read_quoted(raw: Mapping[str, object], kind: type[msgspec.Struct]) -> dict[str, object]:
    """The parameters, those that must be a number, true or false, a list or an object and came as a text of
    it as that. What is no such text stays: validation refuses it."""
    return {name: _read_quoted(value, _find_schema(kind, name) or {}) for name, value in raw.items()}


_UNQUOTED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "integer": re.compile(r"-?[0-9]{1,20}"),
        "number": re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?"),
        "boolean": re.compile("true|false"),
        "array": re.compile(r"\s*\[.*\]\s*", re.S),
        "object": re.compile(r"\s*\{.*\}\s*", re.S),
    }
)
"""How a text of a value looks, by the type of its schema."""


def _read_quoted(value: object, schema: Mapping[str, Any]) -> object:
    form = _UNQUOTED.get(schema.get("type", ""))
    is_quoted = isinstance(value, str) and form is not None and form.fullmatch(value)
    return read_json_text(value) if is_quoted else value


def read_json_text(value: object) -> object:
    """What a text holds as JSON; the value itself where it is no such text."""
    # Of a body the brackets were counted before its escapes were read: \u007b hides one.
    if not isinstance(value, str) or value.count("[") + value.count("{") > MAX_BRACKETS:
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


@cache
def _read_fields(kind: type[msgspec.Struct]) -> tuple[frozenset[str], Mapping[str, type[msgspec.Struct]]]:
    """The fields that may be left out, and the structs within fields, by the names that requests use."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    inner = {field.encode_name: _find_struct(field.type) for field in described.fields}
    return (
        frozenset(field.encode_name for field in described.fields if not field.required),
        {name: struct for name, struct in inner.items() if struct is not None},
    )


def _find_struct(described: inspect.Type) -> type[msgspec.Struct] | None:
    """The struct that a field holds, alone or in a list; None: it holds none."""
    match described:
        case inspect.StructType():
            found: type[msgspec.Struct] = described.cls
            return found
        case inspect.Metadata():
            return _find_struct(described.type)
        case inspect.ListType():
            return _find_struct(described.item_type)
        case inspect.UnionType():
            return next(filter(None, map(_find_struct, described.types)), None)
    return None
