"""Writes the generated part of both clients from docs/openapi.json.

``python -m clients.generate`` writes ``models.py`` (datamodel-code-generator) and ``schema.ts``
(openapi-typescript). ``python -m clients.generate FOLDER`` writes the two files there instead."""

import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).resolve().parent
MODELS = CLIENTS / "python" / "src" / "roundtrip_client" / "models.py"
SCHEMA = CLIENTS / "typescript" / "src" / "schema.ts"
DOCUMENT = CLIENTS.parent / "docs" / "openapi.json"
_REFERENCE = "#/components/schemas/"
_HEADER = '"""What the service takes and answers, by make write NAME=clients from docs/openapi.json."""'


def reduce_document(document: dict[str, Any]) -> dict[str, Any]:
    """The schemas that the HTTP operations use, without those of the tools alone. The service always sends
    every field of an answer; the document requires only those without a default."""
    reduced = copy.deepcopy(document)
    schemas = reduced["components"]["schemas"]
    schemas["Error"]["properties"]["error"]["title"] = "ErrorDetail"
    used: set[str] = set()
    _collect(reduced["paths"], schemas, used)
    reduced["components"]["schemas"] = {name: schemas[name] for name in schemas if name in used}
    for name, schema in reduced["components"]["schemas"].items():
        if not name.endswith("Params"):
            schema["required"] = list(schema["properties"])
    return reduced


def _collect(part: object, schemas: dict[str, Any], used: set[str]) -> None:
    """Adds to ``used`` the names of the schemas that a part of the document refers to."""
    if isinstance(part, list):
        for item in part:
            _collect(item, schemas, used)
    elif isinstance(part, dict):
        name = str(part.get("$ref", "")).removeprefix(_REFERENCE)
        if name in schemas and name not in used:
            used.add(name)
            _collect(schemas[name], schemas, used)
        for item in part.values():
            _collect(item, schemas, used)


def write_models(document: Path, into: Path) -> None:
    """The models of the Python client. Raises CalledProcessError where the generator fails."""
    command: list[str | Path] = [
        CLIENTS / "python" / ".venv" / "bin" / "datamodel-codegen",
        *("--input", document, "--output", into, "--input-file-type", "openapi"),
        *("--output-model-type", "msgspec.Struct", "--target-python-version", "3.11"),
        *(
            "--openapi-scopes",
            "schemas",
            "--strict-nullable",
            "--collapse-root-models",
            "--use-title-as-name",
        ),
        *("--collapse-root-models", "--use-title-as-name"),
        *("--keyword-only", "--snake-case-field", "--use-union-operator", "--use-standard-collections"),
        *("--use-schema-description", "--use-field-description", "--use-inline-field-description"),
        *("--use-single-line-docstring", "--no-use-annotated", "--formatters", "builtin"),
        *("--enum-field-as-literal", "all", "--custom-file-header", _HEADER),
        # Strict in type checkers, and open to values of a later service.
        *("--import-overrides", json.dumps({"Literal": "roundtrip_client.open_values"})),
    ]
    subprocess.run(command, check=True)


def write_schema(document: Path, into: Path) -> None:
    """The types of the TypeScript client. Raises CalledProcessError where the generator fails."""
    program = CLIENTS / "typescript" / "node_modules" / ".bin" / "openapi-typescript"
    options = ("--default-non-nullable=false",)
    subprocess.run([program, document, "--output", into, *options], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Writes both files, next to each other where a folder is named."""
    models, schema = MODELS, SCHEMA
    if len(sys.argv) > 1:
        models, schema = (Path(sys.argv[1]) / path.name for path in (MODELS, SCHEMA))
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "openapi.json"
        document.write_text(json.dumps(reduce_document(json.loads(DOCUMENT.read_text()))))
        write_models(document, models)
        write_schema(document, schema)
    return 0


if __name__ == "__main__":
    sys.exit(main())
