"""Log lines: their shape, and what never stands in them."""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

from queue_depth import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Configure = Callable[..., Callable[[], list[str]]]


@pytest.fixture
def configured(capsys: pytest.CaptureFixture[str]) -> Iterator[Configure]:
    """Configure logging; gives a function for the lines written since. All is put back afterwards."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn")
    before = root.handlers[:], root.level, uvicorn.level

    def configure(log_format: log.LogFormat = "json", level: str = "info") -> Callable[[], list[str]]:
        for handler in root.handlers[:]:
            root.removeHandler(handler)  # pytest's own, which would be closed otherwise
        log.configure(log_format, level)

        def lines() -> list[str]:
            return capsys.readouterr().err.splitlines()

        return lines

    yield configure
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = before[0], before[1]
    uvicorn.setLevel(before[2])


def test_a_json_line_has_time_level_logger_message_and_extras(configured: Configure) -> None:
    lines = configured()
    logging.getLogger("a.b").warning("%d queues", 3, extra={"state": "success", "count": 3, "none": None})
    (line,) = lines()
    fields = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", fields.pop("ts"))
    assert fields == {
        "level": "warning",
        "logger": "a.b",
        "message": "3 queues",
        "state": "success",
        "count": 3,
        "none": None,
    }


def test_an_exception_is_one_field_of_one_line(configured: Configure) -> None:
    lines = configured()
    logging.getLogger("a").error("failed\nbadly", exc_info=ValueError("first\nsecond"))
    (line,) = lines()
    assert json.loads(line)["message"] == "failed\nbadly"
    assert json.loads(line)["exception"].endswith("ValueError: first\nsecond")


def test_a_text_line_is_for_people(configured: Configure) -> None:
    lines = configured("text")
    logging.getLogger("a.b").info("one\ntwo", extra={"state": "success"})
    (line,) = lines()
    assert re.fullmatch(r'\S+Z INFO    a\.b: one\\ntwo state="success"', line)


def test_a_text_line_is_followed_by_its_traceback(configured: Configure) -> None:
    lines = configured("text")
    logging.getLogger("a").error("failed", exc_info=ValueError("why"))
    assert lines()[-1] == "ValueError: why"


@pytest.mark.parametrize(
    ("level", "written"),
    [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)],
)
def test_the_level_is_the_least_that_is_written(configured: Configure, level: str, written: int) -> None:
    lines = configured(level=level)
    for method in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger("a"), method)("said")
    assert len(lines()) == written


def test_uvicorn_and_warnings_speak_through_the_same_log(configured: Configure) -> None:
    lines = configured()
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").error("Exception in ASGI application")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    assert [json.loads(line)["logger"] for line in lines()] == ["uvicorn.error", "py.warnings"]


def test_what_any_stranger_can_make_uvicorn_say_is_not_logged(configured: Configure) -> None:
    lines = configured()
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert lines() == []


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("postgresql://u:hunter2@h/db", "postgresql://u:***@h/db"),
        ("to postgres://u:hun%40ter2@h:1/db failed", "to postgres://u:***@h:1/db failed"),
        ("postgres://u:hun@ter2@h", "postgres://u:***@h"),
        ("postgres://u:hun/ter2@h", "postgres://u:***@h"),
        ("postgres://:hunter2@h", "postgres://:***@h"),
        ("postgres://h/db?user=u&password=hunter2&x=1", "postgres://h/db?user=u&password=***&x=1"),
        ("host=h PASSWORD=hunter2 user=u", "host=h PASSWORD=*** user=u"),
        ("password='hunter2 hunter2'", "password=***"),
        ("host=h password = hunter2 user=u", "host=h password = *** user=u"),
        ("password ='hunter2 hunter2' user=u", "password =*** user=u"),
        (r"password='hun\'ter2 hunter2' user=u", "password=*** user=u"),
        (r"password='hunter2 \\' user=u", "password=*** user=u"),
        (r"'host=h password=\'hunter2 hunter2\''", "'host=h password=***"),
        ("password='hunter2 hunter2", "password=***"),
        (r"password=hunter2\ hunter2 user=u", "password=*** user=u"),
        ("password=hun'ter2 user=u", "password=*** user=u"),
        ("'host=h password=hunter2'", "'host=h password=***'"),
        ("['password=hunter2', 'user=u']", "['password=***', 'user=u']"),
        ("http://h:8080/metrics", "http://h:8080/metrics"),
        ("postgres://u@h/db", "postgres://u@h/db"),
        ("mail to a@b: 12", "mail to a@b: 12"),
    ],
)
def test_a_password_in_an_address_is_replaced(text: str, redacted: str) -> None:
    assert log.redact(text) == redacted


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_part_of_a_line_shows_a_password(configured: Configure, log_format: str) -> None:
    lines = configured(log_format)
    url = "postgresql://u:hunter2@h/db"
    logging.getLogger("a").error(
        f"{url} %s",  # noqa: G004
        [url],
        exc_info=ValueError(url),
        extra={"where": url, "all": {"url": url}},
    )
    text = "\n".join(lines())
    assert "hunter2" not in text
    assert text.count("postgresql://u:***@h/db") >= 4


def test_a_line_of_json_stays_json_after_redaction(configured: Configure) -> None:
    lines = configured()
    logging.getLogger("a").info("postgres://u:p@h", extra={"other": "a@b"})
    (line,) = lines()
    assert json.loads(line)["other"] == "a@b"


def test_the_log_goes_to_standard_error(configured: Configure) -> None:
    configured()
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is sys.stderr
