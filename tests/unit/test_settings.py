"""What the user gives, in which order it counts, and what is said when it is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.core.pool import Pool
from queue_depth.settings.load import SettingsError, load, warnings
from queue_depth.settings.model import NESTED, SECRET, Listen, Settings, settings_of
from queue_depth.settings.sources import unknown_variables, variable

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

PASSWORD = "hunter2"
URL = f"postgresql://reader:{PASSWORD}@db.example/app"
DATABASE = {"QUEUE_DEPTH_DATABASE_URL": URL}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def problems(
    flags: dict[str, str] | None = None, environ: dict[str, str] | None = None, config: Path | None = None
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(flags or {}, {**DATABASE, **(environ or {})}, config=None if config is None else str(config))
    return caught.value.problems


def only_problem(
    flags: dict[str, str] | None = None, environ: dict[str, str] | None = None, config: Path | None = None
) -> str:
    found = problems(flags, environ, config)
    assert len(found) == 1, found
    return found[0]


def of_file(config: Path, text: str, **environ: str) -> Settings:
    config.write_text(text)
    return load({}, {**DATABASE, **environ}, config=str(config))


def test_the_defaults_are_these() -> None:
    settings = load({}, DATABASE)
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == URL
    assert settings.model_dump(by_alias=True, exclude={"database_url"}) == {
        "database_url_file": None,
        "schema": "dbos",
        "refresh_seconds": 5,
        "max_age_seconds": 30,
        "statement_timeout_seconds": 5,
        "in_flight_window_seconds": 1800,
        "listen": Listen("0.0.0.0", 8080),  # noqa: S104 - the default
        "tokens_file": None,
        "log_format": "json",
        "log_level": "info",
        "metrics_label_limit": 200,
        "queues": {},
        "pools": {},
    }


def test_every_setting_tells_its_meaning_and_has_an_example() -> None:
    models: list[type[BaseModel]] = [Settings, *NESTED.values()]
    for model in models:
        for name, field in settings_of(model).items():
            assert field.description, name
            assert field.examples, name


@pytest.mark.parametrize(
    ("in_file", "in_environment", "as_flag", "expected"),
    [
        (None, None, None, 5),
        ("6", None, None, 6),
        (None, "7", None, 7),
        (None, None, "8", 8),
        ("6", "7", None, 7),
        ("6", None, "8", 8),
        (None, "7", "8", 8),
        ("6", "7", "8", 8),
    ],
)
def test_a_flag_wins_over_the_environment_and_the_environment_over_the_file(
    config: Path, in_file: str | None, in_environment: str | None, as_flag: str | None, expected: float
) -> None:
    config.write_text(f"refresh_seconds: {in_file}" if in_file else "")
    environ = {"QUEUE_DEPTH_REFRESH_SECONDS": in_environment} if in_environment else {}
    flags = {"refresh_seconds": as_flag} if as_flag else {}
    assert load(flags, {**DATABASE, **environ}, config=str(config)).refresh_seconds == expected


def test_a_mapping_in_the_environment_replaces_the_one_in_the_file(config: Path) -> None:
    settings = of_file(config, "queues: {a: {concurrency: 1}}", QUEUE_DEPTH_QUEUES='{"b": {"concurrency": 2}}')
    assert {name: queue.concurrency for name, queue in settings.queues.items()} == {"b": 2}


def test_the_config_flag_wins_over_its_variable(config: Path, tmp_path: Path) -> None:
    config.write_text("schema: named_by_flag")
    other = tmp_path / "other.yaml"
    other.write_text("schema: named_by_variable")
    environ = {**DATABASE, "QUEUE_DEPTH_CONFIG": str(other)}
    assert load({}, environ).dbos_schema == "named_by_variable"
    assert load({}, environ, config=str(config)).dbos_schema == "named_by_flag"


def test_everything_that_is_wrong_is_reported_at_once(config: Path) -> None:
    config.write_text("refresh_second: 3\nschema: 12\nqueues: {orders: {concurrency: 0}}\n")
    found = problems(
        {"listen": "8080", "refresh_seconds": "20"},
        {
            "QUEUE_DEPTH_POOLS": "{",
            "QUEUE_DEPTH_METRICS_LABEL_LIMIT": "many",
            "QUEUE_DEPTH_TOKENS_FILE": "/nowhere",
            "QUEUE_DEPTH_DATABASE_URL": "mysql://db",
        },
        config,
    )
    assert sorted(found) == sorted(
        [
            f"file {config} refresh_second: no such setting; did you mean refresh_seconds?",
            f"file {config} schema is 12: expected text; put it in quotes, for example dbos",
            f"file {config} queues.orders.concurrency is 0: expected a number above 0, for example 100",
            "flag --listen is '8080': expected HOST:PORT, such as 0.0.0.0:8080 or [::]:8080",
            "default of max_age_seconds is 30: expected at least twice refresh_seconds, that is 40",
            (
                "environment variable QUEUE_DEPTH_POOLS: "
                "expected JSON (Expecting property name enclosed in double quotes, line 1, column 2)"
            ),
            "environment variable QUEUE_DEPTH_METRICS_LABEL_LIMIT is 'many': expected a whole number, for example 200",
            (
                "environment variable QUEUE_DEPTH_TOKENS_FILE is '/nowhere': expected a file that can be read "
                "(No such file or directory)"
            ),
            "environment variable QUEUE_DEPTH_DATABASE_URL: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        ]
    )


def test_the_error_counts_the_problems_and_gives_each_a_line() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"listen": "x", "log_format": "xml"}, DATABASE)
    heading, *lines = str(caught.value).splitlines()
    assert heading == "2 settings are wrong:"
    assert len(lines) == 2


@pytest.mark.parametrize("name", ["refresh_seconds", "max_age_seconds", "in_flight_window_seconds"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "-inf", "1e99", "five", ""])
def test_a_number_of_seconds_is_positive_and_finite(name: str, value: str) -> None:
    assert any(
        f"{variable(name)} is {value!r}: expected a number" in line
        for line in problems(environ={variable(name): value})
    )


@pytest.mark.parametrize("value", ["true", "1.5", "0", "-3", ".inf", "'x'", "[1]", "99999999999"])
def test_a_count_is_a_whole_positive_number(config: Path, value: str) -> None:
    config.write_text(f"queues: {{q: {{worker_concurrency: {value}}}}}")
    assert "queues.q.worker_concurrency is" in only_problem(config=config)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("0.0.0.0:8080", "0.0.0.0", 8080),  # noqa: S104 - an address like any other
        ("[::]:8080", "::", 8080),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ("localhost:0", "localhost", 0),
        ("my-host.example:65535", "my-host.example", 65535),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    listen = load({"listen": text}, DATABASE).listen
    assert listen == Listen(host, port)
    assert str(listen) == text


@pytest.mark.parametrize(
    "text", ["", "8080", ":8080", "::1:8080", "host", "host:", "host:65536", "http://h:1", "h:\uff11"]
)
def test_anything_else_is_no_address(text: str) -> None:
    assert "expected HOST:PORT" in only_problem({"listen": text})


def test_max_age_is_at_least_twice_the_refresh() -> None:
    assert load({"refresh_seconds": "15"}, DATABASE).max_age_seconds == 30
    assert "QUEUE_DEPTH_MAX_AGE_SECONDS is '29': expected at least twice refresh_seconds, that is 30" in only_problem(
        {"refresh_seconds": "15"}, {"QUEUE_DEPTH_MAX_AGE_SECONDS": "29"}
    )


def test_a_statement_ends_before_its_result_is_too_old() -> None:
    assert only_problem({"statement_timeout_seconds": "12", "max_age_seconds": "12"}) == (
        "flag --statement-timeout-seconds is '12': expected less than max_age_seconds, which is 12"
    )


def test_a_read_ends_before_liveness_takes_it_for_a_hang() -> None:
    assert load({"statement_timeout_seconds": "20"}, DATABASE).statement_timeout_seconds == 20
    assert "expected a number of at most 20" in only_problem({"statement_timeout_seconds": "20.1"})


@pytest.mark.parametrize(
    "name", ["a", "with space", "a.b/c", "größe", "日本", "'; DROP TABLE x; --", '{a="b"}', "a" * 1000]
)
def test_a_queue_may_have_any_printable_name(name: str) -> None:
    settings = load({}, {**DATABASE, "QUEUE_DEPTH_QUEUES": json.dumps({name: {}})})
    assert list(settings.queues) == [name]


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "\x1b[31m", "\u202e"])
def test_a_name_is_printable_and_not_empty(name: str) -> None:
    line = only_problem(environ={"QUEUE_DEPTH_QUEUES": json.dumps({name: {}})})
    assert line.endswith("expected a name of printable characters, not empty")
    assert line.isprintable()


@pytest.mark.parametrize("schema", ["dbos", "My Schema", 'a"b', "sch.ema", "x" * 63])
def test_a_schema_is_any_identifier(schema: str) -> None:
    assert load({"schema": schema}, DATABASE).dbos_schema == schema


@pytest.mark.parametrize("schema", ["", "x" * 64, "ä" * 32, "a\nb"])
def test_a_schema_that_postgresql_would_cut_or_refuse_is_wrong(schema: str) -> None:
    assert only_problem({"schema": schema}).startswith("flag --schema is ")


def test_an_override_knows_which_fields_were_given(config: Path) -> None:
    settings = of_file(
        config,
        """
        queues:
          none: {}
          empty:
          some: {concurrency: null, worker_concurrency: 4, rate_limit: {limit: 5, period_seconds: 1.5}}
          parts: {partitioned: true, partition_rate_limit: {limit: 1, period_seconds: 60}}
        """,
    )
    assert {name: queue.override() for name, queue in settings.queues.items()} == {
        "none": QueueOverride(),
        "empty": QueueOverride(),
        "some": QueueOverride(
            given=frozenset({"concurrency", "worker_concurrency", "rate_limit"}),
            worker_concurrency=4,
            rate_limit=RateLimit(5, 1.5),
        ),
        "parts": QueueOverride(
            given=frozenset({"partitioned", "partition_rate_limit"}),
            partitioned=True,
            partition_rate_limit=RateLimit(1, 60),
        ),
    }


def test_a_pool_leaves_out_what_it_does_not_care_for(config: Path) -> None:
    settings = of_file(
        config,
        """
        pools:
          all:
          some: {queues: [a, b], application: shop, version: "1.10", executors: ["shop-worker-*"]}
        """,
    )
    assert {name: pool.pool(name) for name, pool in settings.pools.items()} == {
        "all": Pool("all"),
        "some": Pool("some", frozenset({"a", "b"}), "shop", "1.10", ("shop-worker-*",)),
    }


def test_a_pool_without_any_queue_is_a_mistake(config: Path) -> None:
    config.write_text("pools: {p: {queues: []}}")
    assert "pools.p.queues is []: expected at least one entry; leave it out for all" in only_problem(config=config)


def test_partition_limits_contradict_a_queue_that_has_no_partitions(config: Path) -> None:
    config.write_text("queues: {q: {partitioned: false, partition_concurrency: 1}}")
    assert "expected no partition_concurrency beside partitioned: false" in only_problem(config=config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pools: {p: {version: 1.10}}", "pools.p.version is 1.1: expected text; put it in quotes"),
        ("queues: {on: {}}", "queues has the key True: expected text; put it in quotes"),
        ("queues: {on: 5}", "queues has the key True: expected text; put it in quotes"),
        ("pools: {1: {x: 1, y: 2}}", "pools has the key 1: expected text; put it in quotes"),
        ("queues: {q: {concurency: 1}}", "queues.q.concurency: no such setting; did you mean concurrency?"),
        ("queues: {q: {rate_limit: {limit: 1}}}", "queues.q.rate_limit.period_seconds is missing"),
        ("queues: {'a b.c': {concurrency: 0}}", "queues['a b.c'].concurrency is 0"),
        ("queues: {q: {}, q: {}}", "the key 'q' is given twice (line 1, column 17)"),
        ("queues: [a]", "queues is ['a']: expected a mapping"),
        ("pools: {p: {executors: a}}", "pools.p.executors is 'a': expected a list"),
        ("refresh_seconds:", "refresh_seconds is None: expected a number"),
        ("listen: [::]:8080", "expected YAML"),
        ("a: b: c", "expected YAML"),
        ("- a", "expected a mapping from setting to value"),
        ("just text", "expected a mapping from setting to value"),
        ("\x00", "expected YAML of printable characters"),
        ("[" * 5000, "expected YAML"),
        ("? [a]\n: b", "expected YAML"),
        ('"a\\nb": 1', r"'a\nb': no such setting"),
        ("1: 2", "1: no such setting"),
        ("x: !!python/object:os.system {}", "expected YAML"),
    ],
)
def test_a_mistake_in_the_file_is_named_by_its_place(config: Path, text: str, expected: str) -> None:
    config.write_text(text)
    line = only_problem(config=config)
    assert line.startswith(f"file {config}")
    assert expected in line


def test_a_wrong_key_hides_no_mistake_under_another(config: Path) -> None:
    config.write_text("queues: {on: 5, '1': 5}")
    assert [line.partition("queues")[2] for line in problems(config=config)] == [
        " has the key True: expected text; put it in quotes",
        (
            ".1 is 5: expected a mapping, for example "
            "{'orders': {'worker_concurrency': 4, 'rate_limit': {'limit': 100, 'period_seconds': 60}}}"
        ),
    ]


def test_an_empty_file_sets_nothing(config: Path) -> None:
    assert of_file(config, "# nothing\n").refresh_seconds == 5


def test_a_file_that_is_not_there_is_an_error(config: Path) -> None:
    assert only_problem(config=config) == f"file {config}: cannot be read (No such file or directory)"


def test_a_file_in_another_encoding_is_an_error(config: Path) -> None:
    config.write_bytes("schema: größe".encode("latin-1"))
    assert only_problem(config=config) == f"file {config}: expected text in UTF-8"


@pytest.mark.parametrize("text", ["", "[]", "null", "1", '{"q": {}, "q": {}}', '{"q": {"concurrency": NaN}}'])
def test_a_mapping_in_the_environment_is_a_json_object(text: str) -> None:
    assert only_problem(environ={"QUEUE_DEPTH_QUEUES": text}).startswith("environment variable QUEUE_DEPTH_QUEUES")


def test_the_log_level_may_be_written_in_capitals() -> None:
    assert load({}, {**DATABASE, "QUEUE_DEPTH_LOG_LEVEL": "WARNING"}).log_level == "warning"


# The database's address


@pytest.mark.parametrize(
    "url",
    [
        "postgres://h/db",
        "postgresql://u:p@h:5432/db?sslmode=verify-full",
        "postgresql+psycopg://u:p@h/db",
        "postgresql://u:p@[::1]:5432/db",
        "postgresql://u:p@h1:1,h2:2/db",
        "postgresql:///db?host=/var/run/postgresql",
        " postgresql://h/db\n",
    ],
)
def test_a_database_url_may_look_like_this(url: str, tmp_path: Path) -> None:
    given = load({}, {"QUEUE_DEPTH_DATABASE_URL": url}).database_url
    assert given is not None
    assert given.get_secret_value() == url.strip()
    file = tmp_path / "url"
    file.write_text(url)
    assert load({"database_url_file": str(file)}, {}).database_url_file == file


@pytest.mark.parametrize("environ", [{"PGHOST": "db"}, {"PGUSER": "u"}, {"PGDATABASE": "d"}, {"PGSERVICE": "s"}])
def test_libpq_variables_are_enough(environ: dict[str, str]) -> None:
    assert load({}, environ).database_url is None


def test_a_database_must_be_named() -> None:
    with pytest.raises(SettingsError, match="no database is named: set QUEUE_DEPTH_DATABASE_URL"):
        load({}, {})


def test_an_unreadable_file_is_not_blamed_for_the_missing_database_too(config: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, {}, config=str(config))
    assert len(caught.value.problems) == 1


def test_the_url_and_its_file_are_not_both_given(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(URL)
    assert "expected only one of database_url and database_url_file" in only_problem({"database_url_file": str(file)})


SECRETS_IN_WRONG_PLACES: list[tuple[str, dict[str, str], str | None]] = [
    ("a wrong scheme", {"QUEUE_DEPTH_DATABASE_URL": f"mysql://u:{PASSWORD}@h/db"}, None),
    ("no URL", {"QUEUE_DEPTH_DATABASE_URL": f"host=h password={PASSWORD}"}, None),
    ("not encoded #", {"QUEUE_DEPTH_DATABASE_URL": f"postgresql://u:{PASSWORD}#x@h/db"}, None),
    ("not encoded /", {"QUEUE_DEPTH_DATABASE_URL": f"postgresql://u:{PASSWORD}/x@h/db"}, None),
    ("not encoded [", {"QUEUE_DEPTH_DATABASE_URL": f"postgresql://u:[{PASSWORD}@h/db"}, None),
    ("not normalized", {"QUEUE_DEPTH_DATABASE_URL": f"postgresql://u:{PASSWORD}\u2100@h/db"}, None),
    ("the URL as a file", {"PGHOST": "h", "QUEUE_DEPTH_DATABASE_URL_FILE": URL}, None),
    ("a DSN as a file", {"PGHOST": "h", "QUEUE_DEPTH_DATABASE_URL_FILE": f"host=h password={PASSWORD}"}, None),
    ("the URL as another setting", {**DATABASE, "QUEUE_DEPTH_SCHEMA": URL * 3}, None),
    ("the URL in a list", {}, f"database_url: ['{URL}']"),
    ("the URL in a mapping", {}, f"database_url: {{'{URL}': 1}}"),
    ("the URL under a wrong key", {}, f"databse_url: {URL}"),
    ("a password under a wrong key", {}, f"password: {PASSWORD}"),
    ("broken YAML on its line", {}, f"database_url: '{URL}' x"),
    ("broken YAML before it", {}, f"a: [\ndatabase_url: {URL}"),
    ("a tag for it", {}, f"database_url: !{URL}"),
    ("a file of it alone", {}, URL),
    ("no number in its place", {**DATABASE, "QUEUE_DEPTH_REFRESH_SECONDS": URL}, None),
    ("an error beside it", {**DATABASE, "QUEUE_DEPTH_REFRESH_SECONDS": "x"}, None),
]


@pytest.mark.parametrize(
    ("environ", "text"),
    [case[1:] for case in SECRETS_IN_WRONG_PLACES],
    ids=[case[0] for case in SECRETS_IN_WRONG_PLACES],
)
def test_no_error_repeats_the_password(config: Path, environ: dict[str, str], text: str | None) -> None:
    config.write_text(text or "")
    with pytest.raises(SettingsError) as caught:
        load({}, environ, config=str(config))
    error: BaseException | None = caught.value
    assert PASSWORD not in str(error)
    assert PASSWORD not in repr(error)


def test_no_error_repeats_what_the_url_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"mysql://u:{PASSWORD}@h")
    with pytest.raises(SettingsError) as caught:
        load({"database_url_file": str(file)}, {})
    assert "what the file holds is wrong: expected postgresql://" in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_settings_do_not_show_the_password() -> None:
    settings = load({}, DATABASE)
    for shown in (repr(settings), str(settings), str(settings.model_dump())):
        assert PASSWORD not in shown


# What Kubernetes puts into the environment of every pod


def service_links(service: str, *ports: tuple[str, int, str]) -> dict[str, str]:
    """The variables that the kubelet sets for a Service, its ports being (name, number, protocol)."""
    prefix = service.upper().replace("-", "_")
    address = "10.96.12.7"
    links = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(ports[0][1])}
    for name, number, protocol in ports:
        if name:
            links[f"{prefix}_SERVICE_PORT_{name.upper().replace('-', '_')}"] = str(number)
        url = f"{protocol.lower()}://{address}:{number}"
        links.setdefault(f"{prefix}_PORT", url)
        base = f"{prefix}_PORT_{number}_{protocol}"
        links |= {
            base: url,
            f"{base}_PROTO": protocol.lower(),
            f"{base}_PORT": str(number),
            f"{base}_ADDR": address,
        }
    return links


SUFFIXES = ["", "-metrics", "-config", "-2", *(f"-{name.replace('_', '-')}" for name in settings_of(Settings))]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_service_of_our_name_does_no_harm(suffix: str) -> None:
    links = service_links(
        f"queue-depth{suffix}", ("http", 8080, "TCP"), ("web-ui", 80, "TCP"), ("", 53, "UDP"), ("x", 9, "SCTP")
    )
    environ = {**DATABASE, **links}
    assert load({}, environ) == load({}, DATABASE)
    assert warnings(environ) == []


def test_the_variables_of_kubernetes_are_these() -> None:
    assert service_links("queue-depth", ("http", 8080, "TCP")) == {
        "QUEUE_DEPTH_SERVICE_HOST": "10.96.12.7",
        "QUEUE_DEPTH_SERVICE_PORT": "8080",
        "QUEUE_DEPTH_SERVICE_PORT_HTTP": "8080",
        "QUEUE_DEPTH_PORT": "tcp://10.96.12.7:8080",
        "QUEUE_DEPTH_PORT_8080_TCP": "tcp://10.96.12.7:8080",
        "QUEUE_DEPTH_PORT_8080_TCP_PROTO": "tcp",
        "QUEUE_DEPTH_PORT_8080_TCP_PORT": "8080",
        "QUEUE_DEPTH_PORT_8080_TCP_ADDR": "10.96.12.7",
    }


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("QUEUE_DEPTH_TOKEN_FILE", "/x", "QUEUE_DEPTH_TOKENS_FILE"),
        ("QUEUE_DEPTH_REFRESH_SECOND", "3", "QUEUE_DEPTH_REFRESH_SECONDS"),
        ("QUEUE_DEPTH_DATABASE_URI", URL, "QUEUE_DEPTH_DATABASE_URL"),
        ("QUEUE_DEPTH_CONFIGURATION", "/x", "QUEUE_DEPTH_CONFIG"),
        ("QUEUE_DEPTH_PORT", "9090", None),
        ("QUEUE_DEPTH_XYZZY", "1", None),
    ],
)
def test_a_variable_that_is_no_setting_is_warned_of(name: str, value: str, meant: str | None) -> None:
    (line,) = warnings({name: value, "PATH": "/bin"})
    assert line == f"environment variable {name}: no such setting, ignored" + (
        f"; did you mean {meant}?" if meant else ""
    )


def test_no_setting_is_taken_for_a_variable_of_kubernetes() -> None:
    for name in settings_of(Settings):
        links = {f"{variable(name)}{end}": value for end, value in [("", "tcp://x"), ("", "1")]}
        assert unknown_variables(links.items()) == []
        assert not variable(name).endswith(("_PORT", "_SERVICE_HOST"))
        assert "_SERVICE_PORT" not in variable(name)


def test_what_is_kept_secret_is_what_the_model_hides() -> None:
    hidden = {name for name, field in settings_of(Settings).items() if "SecretStr" in str(field.annotation)}
    assert hidden == SECRET
