"""What libraries that read published schemas accept, from their own documentation and source."""

from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]

_KINDS = {"array", "boolean", "integer", "number", "object", "string"}
_STRUCTURE = {"type", "properties", "required", "items", "anyOf", "enum", "description", "default"}
_LENGTHS = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"}
GEMINI = _STRUCTURE | _LENGTHS | {"title", "format", "nullable", "minProperties", "maxProperties"}
"""The fields of ``google.genai.types.Schema`` (3.6.1), which forbids every other. Its converter of a tool
loads ``JSONSchema``, which has references in addition, and raises on a boolean ``additionalProperties``."""
OPENAI_STRICT = _STRUCTURE | _LENGTHS | {"additionalProperties", "$ref", "$defs", "title", "format", "const"}
"""Keywords of OpenAI's structured outputs; ``not``, ``allOf`` and ``oneOf`` are refused, and so is a root
that is no plain object."""
OPENAI_DEPTH = 5
"""Levels of nesting that the oldest model with structured outputs takes."""
OPENAI_PROPERTIES = 100
LOOKAROUNDS = ("(?=", "(?!", "(?<")


def walk(schema: Json, path: str = "$") -> Iterator[tuple[str, Json]]:
    """The schema and every schema within, with their places."""
    yield path, schema
    for key in ("properties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from walk(part, f"{path}.{name}")
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], f"{path}.{key}")
    for key in ("anyOf", "oneOf", "allOf"):
        for number, part in enumerate(schema.get(key, ())):
            yield from walk(part, f"{path}.{key}[{number}]")


def gemini_errors(schema: Json) -> list[str]:
    """What Google's converter of tools refuses in the parameters of a tool."""
    return [error for path, part in walk(schema) for error in _part_errors(path, part, GEMINI)]


def openai_errors(schema: Json) -> list[str]:
    """What OpenAI's strict mode refuses in parameters, after its SDK has closed the objects and required all
    properties."""
    errors = [error for path, part in walk(schema) for error in _part_errors(path, part, OPENAI_STRICT)]
    if schema.get("type") != "object" or "anyOf" in schema:
        errors.append("$: not a plain object")
    for path, part in walk(schema):
        if part.get("additionalProperties", False) is not False:
            errors.append(f"{path}: open object")
        if any(mark in part.get("pattern", "") for mark in LOOKAROUNDS):
            errors.append(f"{path}: lookaround")
    if sum(len(part.get("properties", ())) for _, part in walk(schema)) > OPENAI_PROPERTIES:
        errors.append("$: too many properties")
    if _depth(schema) > OPENAI_DEPTH:
        errors.append("$: too deep")
    return errors


def _part_errors(path: str, part: Json, keywords: set[str]) -> Iterator[str]:
    yield from (f"{path}: {key}" for key in part.keys() - keywords)
    if str(part.get("type")) not in _KINDS:
        yield f"{path}: type {part.get('type')}"
    if not all(isinstance(value, str) for value in part.get("enum", ())):
        yield f"{path}: enum of other than texts"
    if part.get("default", "") is None:
        yield f"{path}: default null"
    if not set(part.get("required", ())) <= part.get("properties", {}).keys():
        yield f"{path}: required without a property"


def _depth(schema: Json) -> int:
    within = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return 1 + max(map(_depth, within), default=0)


READERS: dict[str, Callable[[Json], list[str]]] = {"gemini": gemini_errors, "openai": openai_errors}
