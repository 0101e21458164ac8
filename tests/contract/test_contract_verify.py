"""`queue-depth contract verify` over real manifests, through the parser that the program uses."""

import io
import json
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_depth.contract import published
from queue_depth.contract.command import add_parser

HERE = Path(__file__).parent / "manifests"
GOOD = sorted((HERE / "good").iterdir())
BAD = sorted((HERE / "bad").iterdir())


def run(*arguments: str) -> int:
    parser = ArgumentParser()
    add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["contract", *arguments])
    code: int = parsed.handler(parsed)
    return code


def written(folder: Path, text: str, name: str = "m.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def scaled_object(
    url: str = "http://queue-depth/v1/queues/emails", location: str = "queue_length", name: str = "emails"
) -> str:
    metadata = {"url": url, "valueLocation": location, "targetValue": "4"}
    return json.dumps(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": name},
            "spec": {"triggers": [{"type": "metrics-api", "metadata": metadata}]},
        }
    )


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_manifest_passes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", str(path), "--service", "queue-depth", "--service", "exporter") == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_manifest_is_refused_at_the_field_with_the_reason_and_a_mend(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    field, _, words = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ").partition(": ")
    assert run("verify", str(path)) == 1
    *violations, summary = capsys.readouterr().out.splitlines()
    assert "1 violation" in summary
    (line,) = violations
    assert f": {field}: " in line
    assert words in line
    assert "Mend: " in line
    assert line.startswith(f"{path}:")
    assert "prod/emails: trigger 0" in line
    assert "not-shown" not in line


def test_the_message_names_file_line_object_trigger_field_and_mend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "kind: Service\n---\n" + scaled_object(location="queue_lenght")
    path = written(tmp_path, text)
    assert run("verify", path) == 1
    violation = (
        f"{path}:2: ScaledObject emails: trigger 0: metadata.valueLocation: 'queue_lenght' finds nothing in the example"
        " queue-depth/a-later-release-adds-a-field, which KEDA makes an error of: the HPA holds and nothing scales."
        " Mend: did you mean queue_length?"
    )
    assert capsys.readouterr().out.splitlines() == [violation, "1 trigger checked, 1 violation"]


def test_a_directory_is_searched_for_every_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", str(HERE / "good"), "--service", "queue-depth", "--service", "exporter") == 0
    summary = capsys.readouterr().out
    assert "0 violations" in summary
    assert "2 triggers of other services left alone" in summary


def test_manifests_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(scaled_object().encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("verify", "-") == 0


@pytest.mark.parametrize("text", ["", "kind: Service\n", scaled_object("http://other/depth")])
def test_nothing_to_check_is_a_failure(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", written(tmp_path, text)) == 1
    assert "nothing to check" in capsys.readouterr().out


def test_a_path_of_the_exporter_is_enough_whatever_the_host(tmp_path: Path) -> None:
    assert run("verify", written(tmp_path, scaled_object("http://10.0.0.1/v1/queues/emails"))) == 0


@pytest.mark.parametrize(
    "arguments", [(), ("no-such-file",), ("--url", "ftp://x", "."), ("--url", "http://u:p@x", ".")]
)
def test_wrong_usage_exits_with_two(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run("verify", *arguments)
    assert exit_.value.code == 2


@pytest.mark.parametrize(
    ("broken", "line"),
    [("a: [1\n", 3), ("a: b: c\n", 2), ("{{ if x }}\na: b\n", 3), ("\ta: b\n", 2), ("a: !!int x\n", 2)],
)
def test_a_broken_document_is_named_by_line_and_the_others_are_still_checked(
    broken: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"---\n{broken}---\n{scaled_object()}\n")
    assert run("verify", path) == 1
    told = capsys.readouterr().out
    assert f"{path}:{line}: is not YAML" in told
    assert "1 trigger checked, 0 violations, 1 part unreadable" in told
    assert ("render it first" in told) == ("{{" in broken)


def test_a_file_that_is_not_text_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    written(tmp_path, scaled_object())
    assert run("verify", str(tmp_path)) == 1
    assert "is not UTF-8" in capsys.readouterr().out


def test_a_file_that_is_too_large_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", written(tmp_path, "#" * (16 * 1024 * 1024 + 1))) == 1
    assert "is larger than 16 MiB" in capsys.readouterr().out


@pytest.mark.parametrize("item", ["{kind: List, items: [%s]}", "{<<: [%s]}"])
def test_aliases_of_aliases_cost_nothing(item: str, tmp_path: Path) -> None:
    layers = [f"a{n}: &a{n} {item % ', '.join([f'*a{n - 1}'] * 9)}\n" for n in range(1, 30)]
    bomb = "a0: &a0 {kind: List, items: []}\n" + "".join(layers) + "kind: List\nitems: [*a29]\n"
    assert run("verify", written(tmp_path, bomb)) == 1


@pytest.mark.parametrize("spec", [{}, {"triggers": None}, {"triggers": "x"}, {"triggers": [1]}])
def test_triggers_of_a_wrong_shape_are_told(spec: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "x"}, "spec": spec}
    assert run("verify", written(tmp_path, json.dumps(manifest))) == 1
    assert "unreadable" in capsys.readouterr().out


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["url", "valueLocation", "targetValue", "authMode", "format", "activationTargetValue", "timeout"]
)
LOCATIONS = st.text(alphabet='queue_lngth.|#()=="\\@*?![]{}0', max_size=24)
URLS = st.text(max_size=20).map("http://queue-depth/v1/queues/{}".format) | st.just("http://queue-depth/v1/queues")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(alphabet=st.characters(codec="utf-8")) | st.text(alphabet="{}[]:-?!&*<>|%@`'\"#,= \n\ta1", max_size=60)
)
def test_random_text_never_gives_a_traceback(text: str, tmp_path: Path) -> None:
    assert run("verify", written(tmp_path, text)) == 1


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.dictionaries(KEYS | st.text(max_size=5), JSONISH, max_size=5),
    url=URLS | JSONISH,
    location=LOCATIONS | JSONISH,
    rest=st.dictionaries(st.sampled_from(["name", "metricType", "authenticationRef", "x"]), JSONISH, max_size=3),
    about=JSONISH,
)
def test_random_triggers_never_give_a_traceback(
    metadata: dict[str, object], url: object, location: object, rest: dict[str, object], about: object, tmp_path: Path
) -> None:
    metadata |= {"url": url, "valueLocation": location}
    manifest = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": about,
        "spec": {"advanced": about, "triggers": [{**rest, "type": "metrics-api", "metadata": metadata}]},
    }
    assert run("verify", written(tmp_path, json.dumps(manifest), "m.json")) in (0, 1)


class Exporter(BaseHTTPRequestHandler):
    """Answers like the exporter, for a queue named after the answer that is wanted."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        asked.append((self.path, self.headers.get("Authorization", "")))
        code, reason = {"lost": (404, "unknown_queue"), "old": (503, "stale"), "closed": (401, "unauthorized")}.get(
            name, (200, "")
        )
        body: object = {"queue_length": 3, "a_new_number": 4, "scalable": True}
        if name == "queues?limit=1":
            body = {"queues": [body], "next": "emails"}
        elif name == "moved":
            code = 302
        elif name == "nowhere":
            code, body = 404, "not found"
        elif code != 200:
            body = {"reason": reason, "detail": "So it is."}
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "/v1/queues/emails")
        self.end_headers()
        self.wfile.write(b"<html>" if name == "page" else json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


asked: list[tuple[str, str]] = []


@contextmanager
def exporter() -> Iterator[str]:
    asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("name", "location", "code", "words"),
    [
        ("emails", "queue_length", 0, "0 violations"),
        ("emails", "a_new_number", 0, "0 violations"),
        ("emails", "in_flight", 1, "finds nothing in the answer of"),
        ("emails", "scalable", 1, "scalable is a boolean"),
        ("lost", "queue_length", 1, "the exporter knows no queue 'lost' (So it is.)"),
        ("nowhere", "queue_length", 1, "nothing answers at"),
        ("old", "queue_length", 1, "no number to give now: stale (So it is.)"),
        ("closed", "queue_length", 1, "set QUEUE_DEPTH_TOKEN"),
        ("moved", "queue_length", 1, "answers 302, a redirect"),
        ("page", "queue_length", 1, "the answer is not JSON"),
    ],
)
def test_a_running_exporter_is_asked_in_the_place_of_the_examples(
    name: str,
    location: str,
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QUEUE_DEPTH_TOKEN", "a-secret")
    path = written(tmp_path, scaled_object(f"http://queue-depth.prod:8080/v1/queues/{name}", location))
    with exporter() as url:
        assert run("verify", path, "--url", url) == code
    told = capsys.readouterr()
    assert words in told.out
    assert "a-secret" not in told.out + told.err
    assert asked in ([], [(f"/v1/queues/{name}", "Bearer a-secret")])


def test_an_exporter_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with exporter() as url:
        pass
    assert run("verify", written(tmp_path, scaled_object()), "--url", url) == 1
    assert "gives no answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shown", "file"),
    [
        ("schema", "queue-depth.schema.json"),
        ("openapi", "openapi.json"),
        ("example", "examples/valid/queue-depth/backlog-beside-full-workers.json"),
    ],
)
def test_show_prints_what_is_published(shown: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "--format", shown) == 0
    assert capsys.readouterr().out == published.text(file)


@pytest.mark.parametrize(
    ("location", "options", "code", "words"),
    [
        ("queue_length", [], 1, "the exporter knows no queue 'lost'"),
        ("queue_length", ["--allow-unknown"], 0, "1 trigger checked, 0 violations"),
        ("in_flight", ["--allow-unknown"], 1, "as 'lost' is not known yet, which KEDA makes an error of"),
    ],
)
def test_a_name_that_is_about_to_be_configured_is_held_against_anothers_answer(
    location: str, options: list[str], code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, scaled_object("http://queue-depth/v1/queues/lost", location))
    with exporter() as url:
        assert run("verify", path, "--url", url, *options) == code
    assert words in capsys.readouterr().out
