"""The subset of JSON Schema in which schemas are published, which every client's library reads.

Gemini, Cursor, OpenAI's strict mode, JavaScript's regular expressions and code generators each refuse another
part of what msgspec writes. A published schema accepts whatever the service accepts, and somewhat more: the
service itself validates with msgspec, which refuses unknown parameters and holds every bound.
"""

from typing import Any

Json = dict[str, Any]

_NULL = {"type": "null"}
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_SCHEMAS_BY_NAME = ("properties", "$defs")


def publish_input(schema: Json) -> Json:
    """The published schema of parameters. None is null: a parameter that may be null may be left out."""
    return _publish(schema, is_input=True)


def publish_answer(schema: Json) -> Json:
    """The published schema of an answer. What may be null is an ``anyOf`` with null."""
    return _publish(schema, is_input=False)


def _publish(schema: Json, is_input: bool) -> Json:
    published: Json = {}
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME:
            published[key] = {name: _publish(part, is_input) for name, part in value.items()}
        elif key == "items":
            published[key] = _publish(value, is_input)
        elif key == "anyOf":
            published = {**_publish_options(value, is_input), **published}
        elif key == "pattern":
            published[key] = _publish_pattern(value)
        elif key == "enum":
            published |= _publish_enum(value)
        elif key == "exclusiveMinimum":
            published["minimum"] = value
        elif key not in ("additionalProperties", "not") and not (key == "default" and value is None):
            published[key] = value
    return published


def _publish_options(options: list[Json], is_input: bool) -> Json:
    kept = [_publish(option, is_input) for option in options if not (is_input and option == _NULL)]
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _publish_pattern(pattern: str) -> str:
    """Python's pattern as ECMA-262 has it, where ``$`` is the end of the text alone."""
    return pattern.removesuffix("\\Z") + "$" if pattern.endswith("\\Z") else pattern


def _publish_enum(values: list[object]) -> Json:
    """Values with their one type. Booleans have no list: generators take texts and numbers alone."""
    (kind,) = {_TYPES[type(value)] for value in values}
    return {"type": kind} if kind == "boolean" else {"type": kind, "enum": values}
