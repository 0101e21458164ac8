"""The commands of the documentation, run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.ports import claim_port
from harness.postgres import PostgresServer
from harness.postgres_binaries import client_programs
from harness.rows import insert_queue
from harness.schemas import DatabaseFactory
from queue_depth.settings.load import load

ROOT = Path(__file__).parents[2]
DEADLINE = 60
"""Seconds that all commands of a page may take."""


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_every_command_of_getting_started_does_what_the_page_says(tmp_path: Path) -> None:
    (scaled_object,) = [block for block in blocks("README.md", "yaml") if block.startswith("apiVersion: keda.sh/")]
    (tmp_path / "scaledobject.yaml").write_text(scaled_object, encoding="utf-8")
    port = claim_port()
    port.release()
    script = "\n".join(["set -eux", "trap 'kill $(jobs -p)' EXIT", *blocks("docs/getting-started.md", "sh")])
    with PostgresServer(18) as server:
        owner_url = DatabaseFactory(server).make("3.4.0")
        insert_queue(owner_url, "emails", worker_concurrency=4)
        ran = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script.replace("8080", str(port.number))],
            cwd=tmp_path,
            env={
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(client_programs()), os.environ["PATH"]]),
                "OWNER_URL": owner_url,
                "DATABASE_HOST": f"127.0.0.1:{server.port}",
                "DATABASE_NAME": owner_url.rpartition("/")[2],
            },
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert '"name":"emails","queue_length":0' in ran.stdout
    assert "ok      role:" in ran.stdout


def test_the_configuration_in_the_readme_is_one(tmp_path: Path) -> None:
    (pools,) = [block for block in blocks("README.md", "yaml") if block.startswith("pools:")]
    file = tmp_path / "queue-depth.yaml"
    file.write_text(pools, encoding="utf-8")
    settings = load({}, {"PGHOST": "db.example"}, config=str(file))
    assert settings.pools["emails"].pool("emails").queues == frozenset({"emails"})


def test_the_documented_grants_fail_loudly(postgres: PostgresServer) -> None:
    (command,) = [line for line in "".join(blocks("docs/getting-started.md", "sh")).splitlines() if "grants" in line]
    ran = subprocess.run(
        ["bash", "-c", command],
        env={
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(client_programs()), os.environ["PATH"]]),
            "OWNER_URL": f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres",
        },
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert ran.returncode != 0
    assert 'no table workflow_status in schema "dbos" of database "postgres"' in ran.stderr


def test_every_page_that_the_documentation_links_to_is_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "contract" / "README.md", *ROOT.glob("docs/**/*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []
