from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from harness.stores import Clock
from queue_depth.web.auth import TokenFile, presented_tokens

if TYPE_CHECKING:
    from pathlib import Path


def tokens_in(tmp_path: Path, content: str | bytes, clock: Clock | None = None) -> TokenFile:
    path = tmp_path / "tokens"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TokenFile(path, monotonic=clock or Clock())


def test_every_token_of_the_file_is_valid(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, "old-token\nnew-token\n")
    assert tokens.accepts([b"old-token"])
    assert tokens.accepts([b"new-token"])
    assert tokens.accepts([b"wrong", b"new-token"])


@pytest.mark.parametrize("presented", [b"", b"secret", b"secret-token ", b"SECRET-TOKEN", b"secret-token\nother", b"#"])
def test_anything_else_is_not(tmp_path: Path, presented: bytes) -> None:
    assert not tokens_in(tmp_path, "secret-token\nother\n").accepts([presented])


def test_a_request_without_a_token_is_refused(tmp_path: Path) -> None:
    assert not tokens_in(tmp_path, "secret-token").accepts([])


def test_blank_lines_comments_spaces_and_carriage_returns_are_no_part_of_a_token(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, "# for KEDA\r\n\r\n  secret-token \r\n   # old\r\n")
    assert tokens.accepts([b"secret-token"])
    for presented in (b"", b"# for KEDA", b"# old", b"old"):
        assert not tokens.accepts([presented])


def test_a_token_may_have_any_bytes(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path, "schlüssel-🔑\n".encode() + b"\xff\xfe\n")
    assert tokens.accepts(["schlüssel-🔑".encode()])
    assert tokens.accepts([b"\xff\xfe"])
    assert not tokens.accepts([b"schl\xfcssel"])


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing yet\n"])
def test_an_empty_file_lets_nobody_in_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    tokens = tokens_in(tmp_path, content)
    assert not tokens.accepts([b""])
    assert "holds no token: every request is refused" in caplog.text


def test_a_missing_file_lets_nobody_in_says_so_once_and_is_found_when_it_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    path = tmp_path / "tokens"
    tokens = TokenFile(path, monotonic=clock)
    for clock.now in (2.0, 4.0):
        assert not tokens.accepts([b"secret-token"])
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert f"tokens file {path} cannot be read (No such file or directory)" in caplog.text
    path.write_text("secret-token")
    clock.now = 6.0
    assert tokens.accepts([b"secret-token"])


def test_a_file_that_goes_takes_its_tokens_along(tmp_path: Path) -> None:
    clock = Clock()
    tokens = tokens_in(tmp_path, "secret-token", clock)
    assert tokens.accepts([b"secret-token"])
    (tmp_path / "tokens").unlink()
    clock.now = 1.0
    assert not tokens.accepts([b"secret-token"])


def test_a_directory_in_place_of_the_file_lets_nobody_in(tmp_path: Path) -> None:
    assert not TokenFile(tmp_path, monotonic=Clock()).accepts([b""])


def test_a_rewritten_file_counts_after_a_second_and_not_before(tmp_path: Path) -> None:
    clock = Clock()
    tokens = tokens_in(tmp_path, "old-token", clock)
    (tmp_path / "tokens").write_text("another-token")
    clock.now = 0.9
    assert tokens.accepts([b"old-token"])
    clock.now = 1.0
    assert not tokens.accepts([b"old-token"])
    assert tokens.accepts([b"another-token"])


def test_a_secret_that_kubernetes_swaps_is_noticed_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    for version, token in (("..v1", "old-token"), ("..v2", "new-token")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "tokens").write_text(token)
        os.utime(tmp_path / version / "tokens", ns=(10**18, 10**18))
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "tokens").symlink_to("..data/tokens")
    clock = Clock()
    tokens = TokenFile(tmp_path / "tokens", monotonic=clock)
    assert tokens.accepts([b"old-token"])
    (tmp_path / "..tmp").symlink_to("..v2")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    clock.now = 1.0
    assert tokens.accepts([b"new-token"])
    assert not tokens.accepts([b"old-token"])


def test_no_token_is_ever_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = tokens_in(tmp_path, "secret-token\n")
    assert not tokens.accepts([b"presented-token"])
    assert caplog.records
    assert "secret-token" not in caplog.text
    assert "presented-token" not in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "presented"),
    [
        (b"authorization", b"Bearer abc", [b"abc"]),
        (b"authorization", b"bearer abc", [b"abc"]),
        (b"authorization", b"BEARER   abc  ", [b"abc"]),
        (b"authorization", b"Basic abc", []),
        (b"authorization", b"Bearer", [b""]),
        (b"authorization", b"abc", []),
        (b"x-api-key", b"abc", [b"abc"]),
        (b"x-api-key", b"Bearer abc", [b"Bearer abc"]),
        (b"cookie", b"abc", []),
    ],
)
def test_a_token_comes_as_a_bearer_or_as_an_api_key(name: bytes, value: bytes, presented: list[bytes]) -> None:
    assert presented_tokens([(b"host", b"x"), (name, value)]) == presented
