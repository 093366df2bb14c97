"""Nodes as they are set: one url, several, limits; and that nothing of a url is told."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from roundtrip.app import notifiers
from roundtrip.app.build import node_urls
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.cli.demo import relax_limits
from roundtrip.config.networks import ROBINHOOD
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun

SECRET = "s3cr3t"
ONE, OTHER = f"https://one.test/{SECRET}", f"https://other.test/{SECRET}"


def read(monkeypatch: pytest.MonkeyPatch, **given: Any) -> Settings:
    for name, value in given.items():
        answer = value if isinstance(value, str) else json.dumps(value)
        monkeypatch.setenv(f"ROUNDTRIP_{name.upper()}", answer)
    return Settings()


def test_urls_may_stand_plainly_or_with_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = {"url": OTHER, "callsPerSecond": 2.5, "callsPerDay": 1000, "callsARequest": 20}
    settings = read(monkeypatch, rpc_urls=[ONE, limited])
    assert node_urls(settings, ROBINHOOD) == (NodeUrl(ONE), NodeUrl(OTHER, 2.5, 1000, 20))


def test_one_url_is_one_node_without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = node_urls(read(monkeypatch, rpc_url=ONE), ROBINHOOD)
    assert (one.url, one.is_limited()) == (ONE, False)


def test_a_websocket_may_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().ws_url is None
    for url in (f"ws://one.test/{SECRET}", f"wss://one.test/{SECRET}"):
        assert read(monkeypatch, ws_url=url).ws_url == url


def test_reading_holders_has_a_budget_of_its_own_where_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().holders_calls_per_day == 0
    assert read(monkeypatch, holders_calls_per_day=5000).holders_calls_per_day == 5000


def test_where_none_is_set_the_networks_own_are_asked_modestly() -> None:
    found = node_urls(Settings(), ROBINHOOD)
    assert [one.url for one in found] == [ROBINHOOD.rpc_url, *ROBINHOOD.more_rpc_urls]
    assert all(0 < one.calls_per_second <= 50 for one in found)
    assert len({one.url for one in found}) == len(found) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"rpc_url": ONE, "rpc_urls": [OTHER]},
        {"rpc_urls": [{"url": ONE, "callsPerSecond": -1}]},
        {"rpc_urls": [{"url": ONE, "callsPerMinute": 1}]},
        {"rpc_urls": [{"callsPerDay": 1, "key": SECRET}]},
        {"rpc_urls": [f"ws://one.test/{SECRET}"]},
        {"rpc_urls": [7, SECRET]},
        {"rpc_urls": {"url": ONE}},
        {"rpc_urls": ONE},
        {"rpc_urls": f"{ONE},{OTHER}"},
        {"ws_url": ONE},
        {"holders_calls_per_day": f"-1 {SECRET}"},
        {"holders_calls_per_day": -1},
        {"ws_url": SECRET},
    ],
)
def test_what_is_wrong_is_refused_and_no_url_is_told(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    with pytest.raises((ValidationError, SettingsError)) as caught:
        read(monkeypatch, **wrong)
    assert SECRET not in str(caught.value)


_BAD_PORT = "its port must be a number from 1 to 65535"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"telegram_url": f"http://{SECRET}.test"}, "it must begin with https://"),
        ({"telegram_url": f"https://[{SECRET}"}, "its brackets must contain an IPv6 address"),
        ({"telegram_url": f"https://{SECRET}.test:99999"}, _BAD_PORT),
        ({"telegram_url": f"https://{SECRET}@one.test"}, "it must not contain a user or password"),
        ({"telegram_url": "https://localhost"}, "its host exists only within a local network"),
        ({"webhook_loopback": ["127.0.0.999:9000"]}, "an IPv4 address must be four decimal numbers"),
        ({"webhook_loopback": ["127.0.0.1:9000", "127.0.0.1:0"]}, _BAD_PORT),
        ({"webhook_loopback": ["127.0.0.1:99999"]}, _BAD_PORT),
    ],
)  # fmt: skip
async def test_where_nothing_can_be_sent_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], expected: str
) -> None:
    with pytest.raises(CannotRun) as refused:
        async with notifiers.open_notifiers(read(monkeypatch, **given)):
            raise AssertionError("it was taken")
    (name,) = given
    assert str(refused.value) == f"ROUNDTRIP_{name.upper()} is not allowed: {expected}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"telegram_token": f"{'1' * 30}:{SECRET}"},
        {"telegram_token": f"1:{SECRET * 20}"},
        {"telegram_url": f"ftp://{SECRET}.test"},
        {"webhook_loopback": [f"127.0.0.1:{'9' * 5000}"]},
        {"webhook_loopback": [f"http://{SECRET}.test"]},
        {"webhook_loopback": f"http://{SECRET}.test"},
    ],
)
def test_a_token_or_a_place_that_is_none_is_refused_and_not_told(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    with pytest.raises((ValidationError, SettingsError)) as caught:
        read(monkeypatch, **wrong)
    assert SECRET not in str(caught.value)


async def test_places_to_send_to_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    given = read(
        monkeypatch,
        telegram_token=f"1:{SECRET}",
        telegram_url="http://127.0.0.1:9001",
        webhook_loopback=["127.0.0.1:9001", "localhost:80", "[::1]:9002"],
    )
    async with notifiers.open_notifiers(given) as outward:
        assert outward.bot is not None


@pytest.mark.parametrize(
    ("given", "a_minute"),
    [
        ({}, 60),
        ({"host": "127.0.0.2"}, 60),
        ({"host": "::1"}, 60),
        ({"host": "localhost"}, 60),
        ({"anon_per_minute": "10"}, 10),
        ({"host": "::"}, 10),
        ({"host": "192.168.1.7"}, 10),
        ({"host": "demo.test"}, 10),
        ({"trusted_proxies": ["127.0.0.1/32"]}, 10),
    ],
)
def test_a_demo_lets_who_is_alone_there_ask_more(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], a_minute: int
) -> None:
    settings = read(monkeypatch, **given)
    assert settings.anon_per_minute == 10
    assert relax_limits(settings).anon_per_minute == a_minute
