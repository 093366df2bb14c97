"""What may be sent to, and how it is asked for. What may not: tests/channels."""

from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.channels.targets import MAX_CHARACTERS, BadTarget, Target, is_global, parse_target


@pytest.mark.parametrize(
    ("text", "url", "host", "port"),
    [
        ("https://hook.example", "https://hook.example/", "hook.example", 443),
        ("https://hook.example:443/a", "https://hook.example/a", "hook.example", 443),
        ("HTTPS://Hook.EXAMPLE/P?Q=%2F&x=a@b:c", "https://hook.example/P?Q=%2F&x=a@b:c", "hook.example", 443),
        ("https://hook.example?x=1", "https://hook.example/?x=1", "hook.example", 443),
        ("https://hook.example./x", "https://hook.example/x", "hook.example", 443),
        ("https://hook.example:8443/x", "https://hook.example:8443/x", "hook.example", 8443),
        ("https://hook.example:01443/x", "https://hook.example:1443/x", "hook.example", 1443),
        ("https://bücher.example/x", "https://xn--bcher-kva.example/x", "xn--bcher-kva.example", 443),
        ("https://BÜCHER.example/x", "https://xn--bcher-kva.example/x", "xn--bcher-kva.example", 443),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://hook。example/", "https://hook.example/", "hook.example", 443),
        ("https://r3---sn-x.hook.example/", "https://r3---sn-x.hook.example/", "r3---sn-x.hook.example", 443),
        ("https://1password.example/", "https://1password.example/", "1password.example", 443),
        ("https://1.1.1.1/", "https://1.1.1.1/", "1.1.1.1", 443),
        ("https://[2606:4700:47:0::11]/x", "https://[2606:4700:47::11]/x", "[2606:4700:47::11]", 443),
        ("https://[2606:4700::1]:8443", "https://[2606:4700::1]:8443/", "[2606:4700::1]", 8443),
    ],
)  # fmt: skip
def test_a_target_is_asked_for_in_one_form(text: str, url: str, host: str, port: int) -> None:
    found = parse_target(text)
    assert (found.url, found.host, found.port) == (url, host, port)
    assert parse_target(found.url) == found


def test_a_homograph_is_another_host() -> None:
    """With a Cyrillic letter it is that name's owner that is told, and shown to be so."""
    assert parse_target("https://dіscord.com/").host == "xn--dscord-pvf.com"


@pytest.mark.parametrize(
    "text",
    ["http://127.0.0.1:9000/x", "https://127.0.0.1:9000/x", "http://LOCALHOST:9000/x", "http://[::1]:9000/x"],
)
def test_what_is_named_may_be_here_and_without_tls(text: str) -> None:
    named = frozenset({"127.0.0.1:9000", "localhost:9000", "[::1]:9000"})
    assert parse_target(text, named).url == text.lower()
    with pytest.raises(BadTarget):
        parse_target(text)
    with pytest.raises(BadTarget):
        parse_target(text.replace("9000", "9001"), named)


def test_a_url_may_be_as_long_as_it_says() -> None:
    path = "a" * (MAX_CHARACTERS - len("https://hook.example/"))
    assert parse_target(f"https://hook.example/{path}").url.endswith(path)
    with pytest.raises(BadTarget, match="300"):
        parse_target(f"https://hook.example/{path}a")


def test_a_target_is_shown_without_its_path() -> None:
    assert "secret" not in repr(parse_target("https://hook.example/secret?key=secret"))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["", "https://", "https://hook.example", "https://127.0.0.1"]))
def test_any_text_is_a_target_or_is_refused_and_a_target_stays_one(rest: str, beginning: str) -> None:
    try:
        found = parse_target(beginning + rest)
    except BadTarget:
        return
    assert isinstance(found, Target)
    assert found.url.isascii()
    assert parse_target(found.url) == found


OF_THE_INTERNET = (
    "1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1",
    "192.0.1.1", "198.17.255.255", "223.255.255.255", "2606:4700::1", "2a00:1450::1", "2001:4860::8888",
)  # fmt: skip


@pytest.mark.parametrize("text", OF_THE_INTERNET)
def test_addresses_of_the_internet(text: str) -> None:
    assert is_global(ip_address(text))


def test_an_address_of_one_link_is_not_of_the_internet() -> None:
    assert not is_global(ip_address("2606:4700::1%lo"))


@settings(max_examples=500, deadline=None)
@given(st.ip_addresses())
def test_no_address_is_let_through_that_the_standard_library_knows_as_private(address: object) -> None:
    found = ip_address(str(address))
    if is_global(found):
        assert found.is_global
        assert not any((found.is_multicast, found.is_reserved, found.is_loopback, found.is_link_local))


@settings(max_examples=300, deadline=None)
@given(st.ip_addresses(v=4))
def test_no_address_that_holds_another_inside_is_let_through(address: object) -> None:
    inside = int(ip_address(str(address)))
    teredo = (0x20010000 << 96) | (inside ^ 0xFFFFFFFF)
    for held in (
        inside,
        0xFFFF << 32 | inside,
        (0x64FF9B << 96) | inside,
        (0x64FF9B0001 << 80) | inside,
        (0x2002 << 112) | inside << 80,
        teredo,
    ):
        assert not is_global(ip_address(held.to_bytes(16, "big")))
