"""Flags over environment over file, and everything that is wrong with them, at once."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from queue_depth.log import redact
from queue_depth.settings.model import NESTED, SECRET, Settings, settings_of
from queue_depth.settings.sources import (
    CONFIG_VARIABLE,
    PREFIX,
    Given,
    SourceError,
    from_file,
    from_flags,
    from_variable,
    unknown_variables,
    variable,
)

LIBPQ_VARIABLES = ("PGHOST", "PGUSER", "PGDATABASE", "PGSERVICE")
"""Any of these says that the connection is described by libpq's variables."""

LONGEST_VALUE = 80
"""Characters of a wrong value that are shown."""

_IS_PLAIN = re.compile(r"[\w-]+")

_EXPECTED = {
    ("greater_than",): "a number above {gt}",
    ("greater_than_equal",): "a number of at least {ge}",
    ("less_than_equal",): "a number of at most {le}",
    ("float_parsing", "float_type", "finite_number"): "a number",
    ("int_parsing", "int_type", "int_from_float", "int_parsing_size"): "a whole number",
    ("literal_error",): "{expected}",
    ("string_type",): "text; put it in quotes",
    ("dict_type", "model_type", "model_attributes_type"): "a mapping",
    ("tuple_type", "frozen_set_type"): "a list",
    ("too_short",): "at least one entry; leave it out for all",
}
"""Pydantic's kinds of errors, in words that fit behind a value."""


class SettingsError(Exception):
    """The settings are wrong.

    Attributes:
        problems: One line for each: where, which, the value unless secret, what was expected, the mend.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        count = "1 setting is wrong" if len(self.problems) == 1 else f"{len(self.problems)} settings are wrong"
        super().__init__("\n".join([f"{count}:", *(f"  {problem}" for problem in self.problems)]))


def load(flags: Mapping[str, str], environ: Mapping[str, str] = os.environ, *, config: str | None = None) -> Settings:
    """Read the settings from all three places.

    Args:
        flags: The flags' values as they were written, by setting.
        environ: The environment.
        config: The YAML file's path; None: as `QUEUE_DEPTH_CONFIG` says, if it says any.

    Raises:
        SettingsError: Something is wrong; holds everything that is.
    """
    problems: list[str] = []
    given: dict[str, Given] = {}

    def add(read: Callable[[], dict[str, Given]]) -> None:
        try:
            given.update(read())
        except SourceError as error:
            problems.append(str(error))

    add(lambda: _of_file(config, environ))
    file_was_read = not problems
    for setting in settings_of(Settings):
        add(lambda setting=setting: from_variable(setting, environ))  # type: ignore[misc]  # mypy cannot infer it
    given.update(from_flags(flags))

    try:
        settings = _validated(given)
    except SettingsError as error:
        problems += error.problems
    database = SECRET | {"database_url_file"}
    if file_was_read and given.keys().isdisjoint(database) and not any(environ.get(name) for name in LIBPQ_VARIABLES):
        problems.append(
            f"no database is named: set {variable('database_url')}, {variable('database_url_file')}, "
            "or libpq's variables (PGHOST, …)"
        )
    if problems:
        raise SettingsError(problems)
    return settings


def load_schema(flags: Mapping[str, str], environ: Mapping[str, str] = os.environ, *, config: str | None = None) -> str:
    """Read `schema` as `load` does, for what needs no other setting; the others may be wrong or missing.

    Raises:
        SettingsError: It is wrong, or the file cannot be read.
    """
    try:
        given = _of_file(config, environ) | from_variable("schema", environ) | from_flags(flags)
    except SourceError as error:
        raise SettingsError([str(error)]) from None
    return _validated({name: entry for name, entry in given.items() if name == "schema"}).dbos_schema


def warnings(environ: Mapping[str, str] = os.environ) -> list[str]:
    """One line for each environment variable that looks like a setting and is none."""
    known = [name.removeprefix(PREFIX) for name in (CONFIG_VARIABLE, *map(variable, settings_of(Settings)))]
    return [
        f"environment variable {name}: no such setting, ignored{_meant(name.removeprefix(PREFIX), known, PREFIX)}"
        for name in unknown_variables(environ.items())
    ]


def _of_file(config: str | None, environ: Mapping[str, str]) -> dict[str, Given]:
    path = config if config is not None else environ.get(CONFIG_VARIABLE)
    return {} if path is None else from_file(path)


def _validated(given: Mapping[str, Given]) -> Settings:
    try:
        return Settings.model_validate({setting: entry.value for setting, entry in given.items()})
    except ValidationError as error:
        details = error.errors(include_url=False)
    wrong_keys = [detail["loc"][:-1] for detail in details if _is_of_key(detail)]
    raise SettingsError(
        _problem(detail, given)
        for detail in details
        if _is_of_key(detail) or not any(detail["loc"][: len(key)] == key for key in wrong_keys)
    )


def _is_of_key(error: ErrorDetails) -> bool:
    """Whether it is a key of a mapping that is wrong; the key then stands before this mark of pydantic's."""
    return len(error["loc"]) > 2 and error["loc"][-1] == "[key]"  # noqa: PLR2004 - setting, key, mark


def _problem(error: ErrorDetails, given: Mapping[str, Given]) -> str:
    setting, *inner = (str(part) for part in error["loc"])
    entry = given.get(setting, Given("default of", setting, None))
    model, field = _place(setting, inner)
    if _is_of_key(error):
        # Its place in the location is not what was written: YAML's `on` is True, and 1 there.
        return f"{entry.where} {entry.name} has the key {_shown(error['input'])}: {_expected(error)}"
    name = entry.name + "".join(f".{part}" if _IS_PLAIN.fullmatch(part) else f"[{part!r}]" for part in inner)
    if error["type"] == "extra_forbidden":
        return f"{entry.where} {name}: no such setting{_meant((inner or [setting])[-1], settings_of(model))}"
    example = f", for example {field.examples[0]}" if field is not None and field.examples else ""
    if error["type"] == "missing":
        return f"{entry.where} {name} is missing{example}"
    value = "" if setting in SECRET else f" is {_shown(error['input'])}"
    # Our own texts say it all.
    return f"{entry.where} {name}{value}: {_expected(error)}{'' if error['type'] == 'value_error' else example}"


def _place(setting: str, inner: list[str]) -> tuple[type[BaseModel], FieldInfo | None]:
    """The innermost model and field that an error's location names."""
    model: type[BaseModel] = Settings
    field = settings_of(model).get(setting)
    if setting in NESTED and len(inner) > 1:
        model = NESTED[setting]
        for part in inner[1:]:
            field = settings_of(model).get(part, field)
            model = NESTED.get(part, model)
    return model, field


def _expected(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context["error"])
    for kinds, text in _EXPECTED.items():
        if error["type"] in kinds:
            return "expected " + text.format(**context)
    return error["msg"].replace("Input should be", "expected")


def _shown(value: object) -> str:
    text = redact(repr(str(value) if isinstance(value, Path) else value))
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _meant(name: str, known: Iterable[str], prefix: str = "") -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {prefix}{close[0]}?" if close else ""
