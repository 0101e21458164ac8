"""Errors as `application/problem+json` (RFC 9457). None carries a number that KEDA could take for a metric."""

import json
from collections.abc import Mapping

from starlette.responses import Response

_KINDS: Mapping[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be understood"),
    "unauthorized": (401, "A token is needed"),
    "not_found": (404, "No such page"),
    "unknown_queue": (404, "No such queue"),
    "unknown_pool": (404, "No such pool"),
    "method_not_allowed": (405, "Only GET and HEAD are answered"),
    "internal_error": (500, "The exporter failed"),
    "not_ready": (503, "Nothing has been read yet"),
    "stale": (503, "The numbers are too old"),
    "database_unreachable": (503, "The database cannot be reached"),
    "authentication_failed": (503, "The database refused the login"),
    "permission_denied": (503, "The role may not read what the numbers need"),
    "timeout": (503, "The database is too slow"),
    "schema_unreadable": (503, "The workflow table cannot be read"),
    "database_error": (503, "The database failed"),
}


class ProblemError(Exception):
    """An answer that is an error.

    Args:
        reason: A key of the table above; it decides status and title.
        detail: What happened this time and how to mend it.
        headers: Headers that belong to this status.
    """

    def __init__(self, reason: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The answer."""
        status, title = _KINDS[self.reason]
        body = {
            "type": f"urn:queue-depth:problem:{self.reason}",
            "title": title,
            "status": status,
            "detail": self.detail,
            "reason": self.reason,
        }
        return Response(
            json.dumps(body, ensure_ascii=False),
            status_code=status,
            media_type="application/problem+json",
            headers={"Cache-Control": "no-store", **self.headers},
        )
