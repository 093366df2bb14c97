"""Who asks: addresses, proxies that may speak for others, and keys."""

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.api.request.callers import Callers, anonymous

PROXIES: tuple[IPv4Network | IPv6Network, ...] = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
CALLERS = Callers(PROXIES)


def name(client: str | None, *forwarded: str, callers: Callers = CALLERS) -> str:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    return callers.identify(headers, None if client is None else (client, 5000)).name


def test_a_caller_without_a_key_is_its_address() -> None:
    asking = CALLERS.identify([(b"accept", b"*/*")], ("203.0.113.7", 5000))
    assert (asking.name, asking.key) == ("address:203.0.113.7", None)


def test_a_request_without_an_address_is_somebody() -> None:
    assert name(None) == "address:unknown"
    assert name(None, "203.0.113.7") == "address:unknown"


@pytest.mark.parametrize("client", ["203.0.113.7", "11.0.0.1", "fe00::1", "testclient", ""])
def test_a_stranger_speaks_for_nobody_else(client: str) -> None:
    assert name(client, "198.51.100.1") == name(client)


def test_nobody_is_believed_where_no_proxy_is_named() -> None:
    assert name("10.0.0.1", "198.51.100.1", callers=Callers()) == "address:10.0.0.1"


@pytest.mark.parametrize(
    ("client", "forwarded", "found"),
    [
        ("10.0.0.1", "198.51.100.1", "address:198.51.100.1"),
        ("10.255.255.255", "  198.51.100.1 ", "address:198.51.100.1"),
        ("fd00::7", "198.51.100.1", "address:198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "address:198.51.100.1"),
        ("10.0.0.1", "198.51.100.1,10.0.0.2,fd00::9", "address:198.51.100.1"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.1", "address:198.51.100.1"),
        ("10.0.0.1", "1.2.3.4, 10.0.0.9, 198.51.100.1, 10.0.0.2", "address:198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "address:10.0.0.3"),
        ("10.0.0.1", "2001:db8:1:2::1", "address:20010db800010002/64"),
        ("10.0.0.1", "nonsense", "address:nonsense"),
        ("10.0.0.1", "1.2.3.4, \xff", "address:\xff"),
        ("10.0.0.1", "", "address:10.0.0.1"),
    ],
    ids=[
        "one hop", "blanks", "a proxy of six", "two hops", "three hops", "one written by the sender",
        "proxies' names written by the sender", "only proxies", "an address of six", "no address",
        "no text", "nothing",
    ],
)  # fmt: skip
def test_a_proxy_speaks_for_the_nearest_hop_that_is_none(client: str, forwarded: str, found: str) -> None:
    assert name(client, forwarded) == found


def test_of_several_such_headers_the_senders_own_is_not_believed() -> None:
    assert name("10.0.0.1", "1.2.3.4", "198.51.100.1") == "address:198.51.100.1"


def test_a_proxy_that_is_written_as_mapped_ipv6_is_the_proxy() -> None:
    assert name("::ffff:10.0.0.1", "198.51.100.1") == "address:198.51.100.1"


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ((b"x-api-key", b"rt_x"), "rt_x"),
        ((b"x-api-key", b" rt_x "), "rt_x"),
        ((b"x-api-key", b""), ""),
        ((b"authorization", b"Bearer rt_x"), "rt_x"),
        ((b"authorization", b"bearer  rt_x"), "rt_x"),
        ((b"authorization", b"Bearer\trt_x"), "rt_x"),
        ((b"authorization", b"BEARER "), ""),
        ((b"authorization", b"Bearer"), ""),
        ((b"authorization", b"rt_x"), "rt_x"),
        ((b"x-api-key", b"\xff"), "\xff"),
    ],
)
@pytest.mark.parametrize("client", ["203.0.113.7", "10.0.0.1"])
def test_a_key_is_what_was_shown_as_one(header: tuple[bytes, bytes], key: str, client: str) -> None:
    asking = CALLERS.identify([(b"accept", b"*/*"), header, (b"host", b"x")], (client, 1))
    assert (asking.name, asking.key) == (f"address:{client}", key)
    assert "rt_x" not in repr(asking)


SAME = [(b"x-api-key", b"rt_x"), (b"authorization", b"Bearer rt_x"), (b"x-api-key", b"rt_x")]


def test_the_same_key_may_be_shown_in_every_way() -> None:
    assert CALLERS.identify(SAME, ("203.0.113.7", 1), "rt_x").key == "rt_x"


@pytest.mark.parametrize(
    ("headers", "path_key"),
    [
        ([*SAME, (b"x-api-key", b"rt_y")], None),
        ([*SAME, (b"authorization", b"Bearer rt_y")], None),
        (SAME, "rt_y"),
        ([(b"x-api-key", b"")], "rt_y"),
    ],
)
def test_two_different_keys_are_none(headers: list[tuple[bytes, bytes]], path_key: str | None) -> None:
    """The gate says so, and counts it."""
    asking = CALLERS.identify(headers, ("203.0.113.7", 1), path_key)
    assert (asking.name, asking.key, asking.two_keys) == ("address:203.0.113.7", None, True)


@pytest.mark.parametrize("value", [b"Basic dXNlcjpwYXNz", b"", b"Bearers x"])
def test_credentials_of_another_kind_are_not_keys(value: bytes) -> None:
    assert CALLERS.identify([(b"authorization", value)], ("203.0.113.7", 1)).key is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("2001:DB8:1:2::1", "2001:db8:0001:0002::9"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:cb00:7107", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::2"),
    ],
)
def test_one_callers_addresses_count_together(one: str, other: str) -> None:
    assert anonymous(one) == anonymous(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("203.0.113.7", "203.0.113.8"),
        ("2001:db8:1:2::1", "2001:db8:1:3::1"),
        ("2001:db8:1:2::1", "2001:db8:0:2::1"),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.8"),
        ("::1", "203.0.113.7"),
        ("::1", "::ffff:0.0.0.1"),
    ],
)
def test_different_callers_addresses_count_apart(one: str, other: str) -> None:
    assert anonymous(one) != anonymous(other)


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 1))
def test_all_of_a_64_counts_as_one(address: int, host: int) -> None:
    if address >> 32 == 0xFFFF:
        return
    inside = address >> 64 << 64 | host
    if inside >> 32 == 0xFFFF:
        return
    forms = [":".join(f"{n >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)) for n in (address, inside)]
    assert anonymous(forms[0]) == anonymous(forms[1])


@pytest.mark.parametrize("host", [None, ""])
def test_whoever_has_no_address_shares_one(host: str | None) -> None:
    assert anonymous(host) == "address:unknown"


@given(st.text(max_size=60))
def test_any_text_counts_as_somebody(host: str) -> None:
    assert anonymous(host).startswith("address:")
