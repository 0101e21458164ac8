"""OpenAPI 3.1 of the exporter, made from the published JSON Schemas.

`python -m queue_depth.contract.openapi > contract/openapi.json` writes the file; a test says when it is out of date.
"""

import json
from typing import Any

from queue_depth.contract import published
from queue_depth.contract.routes import ROUTES, Route

_PROBLEMS = {
    "400": "The request cannot be understood.",
    "401": "A token is needed, or the one sent is not valid.",
    "404": "No such queue or pool, or no such path.",
    "405": "Only GET and HEAD are answered.",
    "503": "There is no number that is certain. KEDA holds; ask again later.",
}


def document() -> dict[str, Any]:
    """The OpenAPI document, as it is to stand in `contract/openapi.json`."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "queue-depth",
            "version": "1",
            "description": "Numbers of DBOS queues for autoscalers. Version 1 only ever gains fields and paths.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"apiKey": []}],
        "tags": [{"name": "numbers"}, {"name": "operation"}],
        "paths": {route.template: {"get": _operation(route)} for route in ROUTES} | _operation_paths(),
        "components": {
            "schemas": {_title(name): _schema(name) for name in published.SCHEMA_NAMES},
            "examples": {
                f"{name}.{example.name}": {"value": json.loads(example.text)}
                for name in published.SCHEMA_NAMES
                for example in published.examples(name)
            },
            "responses": {f"Problem{status}": _problem(status) for status in _PROBLEMS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-KEY"},
            },
        },
    }


def rendered() -> str:
    """The document as text, with a final newline."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _title(name: published.SchemaName) -> str:
    title: str = published.schema(name)["title"]
    return title


def _schema(name: published.SchemaName) -> dict[str, Any]:
    """A schema as a component: without its own identity, with references inside the document."""
    kept = {key: value for key, value in published.schema(name).items() if key not in ("$schema", "$id")}
    text = json.dumps(kept)
    for other in published.SCHEMA_NAMES:
        text = text.replace(
            json.dumps(published.schema(other)["$id"]), json.dumps(f"#/components/schemas/{_title(other)}")
        )
    component: dict[str, Any] = json.loads(text)
    return component


def _operation(route: Route) -> dict[str, Any]:
    listed = "{" not in route.template
    statuses = ["400", "401", "405", "503"] + ([] if listed else ["404"])
    return {
        "operationId": route.template.strip("/").replace("/", "-").replace("{", "").replace("}", ""),
        "tags": ["numbers"],
        "summary": route.summary,
        "parameters": _page() if listed else [_name(route)],
        "responses": {
            "200": {
                "description": "The numbers of the last read.",
                "content": {
                    "application/json": {
                        "schema": {"$ref": f"#/components/schemas/{_title(route.schema)}"},
                        "examples": {
                            example.name: {"$ref": f"#/components/examples/{route.schema}.{example.name}"}
                            for example in published.examples(route.schema)
                        },
                    }
                },
            }
        }
        | {status: {"$ref": f"#/components/responses/Problem{status}"} for status in sorted(statuses)},
    }


def _name(route: Route) -> dict[str, Any]:
    kind = route.template.partition("{")[2].rstrip("}")
    return {
        "name": kind,
        "in": "path",
        "required": True,
        "description": f"The {kind}'s name, percent-encoded as one path segment: a slash is %2F, a space %20.",
        "schema": {"type": "string", "minLength": 1},
    }


def _page() -> list[dict[str, Any]]:
    return [
        {
            "name": "after",
            "in": "query",
            "description": "The `next` of the page before; the page begins with the name that follows it.",
            "schema": {"type": "string"},
        },
        {
            "name": "limit",
            "in": "query",
            "description": "How many to give at most.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000},
        },
    ]


def _problem(status: str) -> dict[str, Any]:
    examples = {
        example.name: {"$ref": f"#/components/examples/problem.{example.name}"}
        for example in published.examples("problem")
        if str(json.loads(example.text)["status"]) == status
    }
    return {
        "description": _PROBLEMS[status],
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}
        },
    }


def _operation_paths() -> dict[str, Any]:
    text = {"text/plain": {"schema": {"type": "string"}}}
    metrics = text | {"application/openmetrics-text": {"schema": {"type": "string"}}}
    verbose = {
        "name": "verbose",
        "in": "query",
        "description": "Say what is known of the database, the schema and the last read. Needs a token if any is set.",
        "allowEmptyValue": True,
        "schema": {"type": "string"},
    }

    refused = {"$ref": "#/components/responses/Problem401"}

    def get(name: str, summary: str, content: dict[str, Any], *, ready: bool = False) -> dict[str, Any]:
        answers: dict[str, Any] = {
            "200": {"description": "Yes." if name != "metrics" else "Samples.", "content": content}
        }
        if ready:
            answers |= {"401": refused, "503": {"description": "Not yet."}}
        operation: dict[str, Any] = {"operationId": name, "tags": ["operation"], "summary": summary}
        if name == "metrics":
            answers["401"] = refused
        elif not ready:
            operation["security"] = [{}]
        return {"get": operation | ({"parameters": [verbose]} if ready else {}) | {"responses": answers}}

    return {
        "/metrics": get("metrics", "The numbers and the exporter's own health, for Prometheus.", metrics),
        "/livez": get("livez", "Whether the process turns. Says nothing of the database.", text),
        "/readyz": get("readyz", "Whether numbers have been read.", text, ready=True),
        "/healthz": get("healthz", "The same as /livez.", text),
    }


if __name__ == "__main__":
    print(rendered(), end="")  # noqa: T201 - its purpose
