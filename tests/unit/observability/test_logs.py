"""What is cut from a line of the log before it is written, and what stays."""

import json
import logging
import string
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.contextvars import bound_contextvars

from roundtrip.domain.accounts import keys
from roundtrip.observability import logs

KEY, SESSION = keys.format_key(b"\x01" * 32), keys.format_key(b"\x02" * 32, keys.SESSION_PREFIX)

SECRETS = {
    "key": (f"showed {KEY} twice", KEY[9:]),
    "session": (f"cookie {SESSION};", SESSION[9:]),
    "node's url": ("asked https://node.example/v2/s3cr3t-path", "s3cr3t"),
    "node's query": ("asked wss://node.example:8546?apikey=s3cr3t", "s3cr3t"),
    "database": ("connect postgresql://role:s3cr3t@db.example:5432/main failed", "s3cr3t"),
    "database with a slash": ("postgresql://role:s3c/r3t@db.example/main", "r3t"),
    "database with a bracket": ("postgresql://role:s3c)'<r3t@db.example/main", "r3t"),
    "database with a quote": ('postgresql://role:s3c"r3t@db.example/main', "r3t"),
    "valkey": ("rediss://:s3cr3t@cache.example:6380/0", "s3cr3t"),
    "bot": ("POST https://api.telegram.org/bot123456:AAF-s3cr3t_s3cr3t_s3cr3t_0123/send", "s3cr3t"),
    "bot alone": ("token 123456:AAF-s3cr3t_s3cr3t_s3cr3t_0123 is wrong", "s3cr3t"),
    "bot's path": ("POST /bot123456789:AAF-s3cr3t_s3cr3t_s3cr3t_0123/send", "s3cr3t"),
    "webhook's path": ("POST /api/webhooks/1234567890/AAF-s3cr3t_s3cr3t?wait=true", "s3cr3t"),
    "webhook's secret": ("made whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8"),
    "webhook's signature": ("x-service-sig: sha256=" + "5c" * 32, "5c5c5c"),
    "standard signature": ("webhook-signature v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", "K5oZ"),
    "signed text": ("signature 0x" + "ab" * 65, "abab"),
    "compact signature": ("signature 0x" + "ab" * 64 + " of", "abab"),
    "bearer": ("'authorization': 'Bearer s3cr3t-of-some-kind'", "s3cr3t"),
    "basic": ("Authorization: Basic czNjcjN0", "czNj"),
    "dsn": ("host=db user=role password=s3cr3t sslmode=require", "s3cr3t"),
    "argument": ("connect(user='role', password='s3 cr3t', ssl=None)", "cr3t"),
    "field": ('{"user": "role", "db_password": "s3 cr\\"3t"}', "3t"),
    "field of Python's": ("{'user': 'role', 'api_key': 's3cr3t'}", "s3cr3t"),
    "field cut off": ('{"user": "role", "secret_key": "s3cr3t', "s3cr3t"),
    "key of secrets": ("ROUNDTRIP_SECRET_KEY q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k= is set", "q83v"),
}

KEPT = (
    "transaction 0x" + "5c" * 32 + " of 0x" + "1a" * 20,
    "2026-11-23T07:12:21.562746Z worker.py:209 took 0.25 s",
    'File "/srv/roundtrip/api/dispatch.py", line 120, in _run',
    "a job failed token:0x1a tries=3 12345:retry",
    "the websocket of node.example:8546 is away",
    "checked token=0x" + "1a" * 20 + " and 'token': '0x" + "1a" * 20 + "'",
    '{"event": "password=", "level": "info"}',
)


@pytest.mark.parametrize("what", SECRETS)
def test_a_secret_is_cut(what: str) -> None:
    text, secret = SECRETS[what]
    assert secret in text
    assert secret not in logs.without_secrets(text)
    # Also as JSON has it, in the middle of a trace.
    line = json.dumps({"exception": f"Traceback:\n  {text}\n  more"})
    cut = logs.without_secrets(line)
    assert secret not in cut
    assert json.loads(cut)["exception"].endswith("\n  more")


_PART = "facade15"
_ANY = st.text(string.ascii_letters + string.digits + string.punctuation + " \n\té", max_size=30)
_ODD = st.lists(st.sampled_from(string.punctuation), min_size=1, max_size=4).map(
    lambda between: _PART + "".join(one + _PART for one in between)
)
_LEAKS = st.one_of(
    st.builds(
        "{}://{}:{}@db.example/main".format, st.sampled_from(["postgresql", "rediss"]), st.just("role"), _ODD
    ),
    st.just(f"https://node.example/v2/{_PART}"),
    st.just(f"/bot123456789:{_PART * 3}/send"),
    st.just(f"/api/webhooks/123456/{_PART}"),
    st.builds(json.dumps, st.fixed_dictionaries({"password": _ODD})),
    st.builds(repr, st.fixed_dictionaries({"secret": _ODD.filter(lambda text: "'" not in text)})),
    st.just(f"password={_PART}"),
    st.just(f"Bearer {_PART}"),
    st.just(f"whsec_{_PART}"),
    st.just("sha256=" + _PART * 8),
    st.just(_PART * 16),
    st.just("0x" + _PART * 16),
    st.just(_PART * 5 + "abc="),
    st.just(KEY[:8] + _PART),
)


@given(before=_ANY, edge=st.sampled_from(" (,;=\n"), leak=_LEAKS, after=_ANY)
def test_wherever_it_stands_it_is_cut(before: str, edge: str, leak: str, after: str) -> None:
    text = f"{before}{edge}{leak} {after}"
    assert _PART not in logs.without_secrets(text)
    line = logs.without_secrets(json.dumps({"event": text, "level": "info"}))
    assert _PART not in line
    assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert logs.without_secrets(text) == text


def test_of_a_url_the_host_stays() -> None:
    text = logs.without_secrets("no answer of https://user:pass@node.example:8545/v2/key?x=1, again")
    assert text == "no answer of https://node.example:8545 again"


@pytest.fixture
def restored() -> Iterator[None]:
    """Everything as before afterwards."""
    root = logging.getLogger()
    before = root.handlers
    yield
    root.handlers = before
    structlog.reset_defaults()


@pytest.mark.usefixtures("restored")
def test_lines_of_libraries_are_like_ours(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        logs.configure(is_readable=False)
    with bound_contextvars(request="5bf5b80fb0e5"):
        structlog.get_logger("ours").warning("something", url="https://a.example/s3cr3t")
        try:
            raise RuntimeError("postgresql://role:s3cr3t@db.example/main")
        except RuntimeError:
            logging.getLogger("theirs").exception("it failed for %s", "Bearer s3cr3t")
    written = capfd.readouterr().err
    ours, theirs = (json.loads(line) for line in written.splitlines())
    assert (ours["event"], ours["level"], ours["request"]) == ("something", "warning", "5bf5b80fb0e5")
    assert ours["url"] == "https://a.example"
    assert (theirs["event"], theirs["level"], theirs["request"]) == (
        "it failed for Bearer ...", "error", "5bf5b80fb0e5",
    )  # fmt: skip
    assert theirs["logger"] == "theirs"
    assert "RuntimeError: postgresql://db.example" in theirs["exception"]
    assert "s3cr3t" not in written
