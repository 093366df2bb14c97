"""What is wrong with a setting, in one line that names it and repeats nothing of it."""

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from roundtrip.cli.main import describe_error, run
from roundtrip.config.settings import Settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"RPC_URLS": "[secret"}, "ROUNDTRIP_RPC_URLS must be valid JSON"),
        ({"RPC_URLS": '["ftp://secret"]'}, "rpc_urls (ROUNDTRIP_RPC_URLS): String should match pattern"),
        ({"NETWORK": "secret"}, "network (ROUNDTRIP_NETWORK): Input should be 'devnet' or 'robinhood'"),
        ({"PORT": "secret"}, "port (ROUNDTRIP_PORT): Input should be a valid integer"),
        (
            {"RPC_URL": "http://secret", "RPC_URLS": '["http://secret"]'},
            "set ROUNDTRIP_RPC_URL or ROUNDTRIP_RPC_URLS, not both",
        ),
        ({"SECRET_KEY": ""}, "secret_key (ROUNDTRIP_SECRET_KEY): it must be 32 bytes in base64"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"ROUNDTRIP_{name}", value)
    with pytest.raises((ValidationError, SettingsError)) as wrong:
        Settings()
    line = describe_error(wrong.value)
    assert line is not None
    assert line.startswith(expected)
    assert "secret" not in line.removeprefix(expected)
    assert "\n" not in line


def test_other_failures_speak_for_themselves() -> None:
    assert describe_error(OSError("no such file")) == "no such file"
    assert describe_error(OSError(30, "Read-only file system", "/var/x")) == "/var/x: Read-only file system"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["chek", "0x"], "roundtrip: There is no command 'chek'. Did you mean check?"),
        (["frobnicate"], "roundtrip: There is no command 'frobnicate'. roundtrip --help lists them."),
        (["serve", "--nope"], "roundtrip: No such option: --nope"),
        (["keys", "revoke"], "roundtrip: Missing argument 'START_OR_ID'."),
        (["--nope"], "roundtrip: No such option: --nope"),
    ],
)
def test_wrong_arguments_are_no_verdict(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    """Exit 2 is the verdict danger."""
    assert run(arguments) == 64
    assert capsys.readouterr().err.strip() == expected


@pytest.mark.parametrize(("arguments", "code"), [([], 64), (["-h"], 0), (["keys", "-h"], 0)])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    assert run(arguments) == code
    assert "Usage: roundtrip" in "".join(capsys.readouterr())
