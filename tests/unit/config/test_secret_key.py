"""The key that secrets are encrypted with: as it is set, or a file that is made once."""

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from roundtrip.app.notifiers import secret_key
from roundtrip.config.settings import Settings

KEY = base64.b64encode(b"k" * 32).decode()


def test_the_key_that_is_set_is_used_and_no_file_made(tmp_path: Path) -> None:
    assert secret_key(Settings(secret_key=KEY, var=tmp_path)) == b"k" * 32
    assert list(tmp_path.iterdir()) == []


def test_of_many_that_make_the_file_at_once_all_have_the_same_key(tmp_path: Path) -> None:
    settings = Settings(var=tmp_path / "new")
    with ThreadPoolExecutor(16) as threads:
        found = set(threads.map(lambda _: secret_key(settings), range(64)))
    (key,) = found
    assert len(key) == 32
    assert secret_key(settings) == key
    (file,) = (tmp_path / "new").iterdir()
    assert file.name == "secret.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_two_services_have_two_keys(tmp_path: Path) -> None:
    assert secret_key(Settings(var=tmp_path / "a")) != secret_key(Settings(var=tmp_path / "b"))


@pytest.mark.parametrize("held", [b"", b"x", base64.b64encode(b"k" * 31), b"k" * 32])
def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path: Path, held: bytes) -> None:
    (tmp_path / "secret.key").write_bytes(held)
    with pytest.raises(ValueError, match="must contain"):
        secret_key(Settings(var=tmp_path))
    assert (tmp_path / "secret.key").read_bytes() == held


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret_key": "s3cr3t"},
        {"secret_key": base64.b64encode(b"s3cr3t" * 5).decode()},
        {"telegram_token": "s3cr3t"},
        {"telegram_url": "ftp://s3cr3t"},
        {"webhook_loopback": ("10.0.0.1:80",)},
        {"webhook_loopback": ("s3cr3t.example:443",)},
        {"webhook_loopback": ("127.0.0.1",)},
    ],
)
def test_what_is_wrong_is_refused_and_not_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(**wrong)
    assert "s3cr3t" not in str(caught.value)


def test_loopback_targets_are_named_with_their_ports() -> None:
    given = ("127.0.0.1:9000", "localhost:9000", "[::1]:9000")
    assert Settings(webhook_loopback=given).webhook_loopback == given
