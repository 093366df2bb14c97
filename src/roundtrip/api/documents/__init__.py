"""Documents made from the table of operations: OpenAPI, tools.json, llms.txt, api.md."""
