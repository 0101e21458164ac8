"""What the process says on standard error: one JSON object or one line of text for each event."""

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

LogFormat = Literal["json", "text"]

# Greedy up to the last @: a password that was not percent-encoded may hold any character but a blank.
_USER_INFO = re.compile(r"(://[^\s:/@]*):\S*@")
# As libpq reads it: blanks around the sign, quotes, backslashes. A quote may itself be quoted, as in a repr, and one
# that never ends hides all that follows. A value without quotes leaves the marks that end the text around it.
_PARAMETER = re.compile(
    r"""(password\s*=\s*)(?:
        \\?'(?:\\.|[^'\\])*(?:'|\\?$)
        | \\?"(?:\\.|[^"\\])*(?:"|\\?$)
        | (?:\\.|[^\s&\\])+?(?=['"]?[,;)\]}]*(?:[\s&]|$))
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def redact(text: str) -> str:
    """The text without passwords in connection URLs (`://user:***@host`) and connection strings."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub(r"\1:***@", text))


def configure(log_format: LogFormat, level: str) -> None:
    """Send every logger's records, uvicorn's and Python's warnings included, to standard error.

    Args:
        log_format: How a record is written.
        level: The least level that is written: `debug`, `info`, `warning` or `error`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(capture=True)
    # Uvicorn tells each step of starting and stopping, of which the process itself says the two that matter, and warns
    # of every malformed request and every refused upgrade: whoever scans the port would fill the log.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


class JsonFormatter(logging.Formatter):
    """One object a line: ts (RFC 3339, UTC), level, logger, message, what `extra` gave, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        fields: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_extras(record),
        }
        if record.exc_info:
            fields["exception"] = _traceback(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line a record, for people; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        message = redact(record.getMessage()).replace("\r", "\\r").replace("\n", "\\n")
        extras = "".join(f" {name}={json.dumps(value)}" for name, value in _extras(record).items())
        line = f"{_timestamp(record)} {record.levelname:<7} {record.name}: {message}{extras}"
        return f"{line}\n{_traceback(record.exc_info)}" if record.exc_info else line


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {
        name: value if value is None or isinstance(value, bool | int) else redact(str(value))
        for name, value in extras.items()
    }


def _traceback(exc_info: ExceptionInfo) -> str:
    return redact("".join(traceback.format_exception(*exc_info)).rstrip())
