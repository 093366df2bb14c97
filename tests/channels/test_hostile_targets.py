"""Whatever a stranger names as a target, nothing private is reached: neither where the url is read, nor where
that was got past and an address is connected to."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from roundtrip.channels.post import Poster
from roundtrip.channels.targets import BadTarget, Target, parse_target

NOT_GLOBAL = "the host's address is not on the public internet"
PORT = "PORT"
"""In a url: the port that is listened on."""

REFUSED = (
    # this machine, in every notation
    "https://127.0.0.1:PORT/",
    "https://127.0.0.2:PORT/",
    "https://127.1:PORT/",
    "https://127.0.1:PORT/",
    "https://2130706433:PORT/",
    "https://017700000001:PORT/",
    "https://0177.0.0.1:PORT/",
    "https://0x7f000001:PORT/",
    "https://0x7f.0.0.1:PORT/",
    "https://0X7F.1:PORT/",
    "https://127.0.0.1.:PORT/",
    "https://127.000.000.001:PORT/",
    "https://0:PORT/",
    "https://0.0.0.0:PORT/",
    "https://4294967297:PORT/",
    "https://127.0.0.257:PORT/",
    "https://127。0。0。1:PORT/",
    "https://①②⑦.⓪.⓪.①:PORT/",
    "https://127.0.0.1:PORT/",
    "https://127%2e0%2e0%2e1:PORT/",
    "https://%31%32%37.0.0.1:PORT/",
    "https://[::1]:PORT/",
    "https://[0:0:0:0:0:0:0:1]:PORT/",
    "https://[::]:PORT/",
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/",
    "https://[::127.0.0.1]:PORT/",
    "https://[64:ff9b::127.0.0.1]:PORT/",
    "https://[64:ff9b::7f00:1]:PORT/",
    "https://[64:ff9b:1::7f00:1]:PORT/",
    "https://[2002:7f00:1::]:PORT/",
    "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]:PORT/",
    "https://[fe80::1%25lo]:PORT/",
    "https://[fe80::1%lo]:PORT/",
    "https://[::1%251]:PORT/",
    "https://localhost:PORT/",
    "https://LOCALHOST:PORT/",
    "https://localhost.:PORT/",
    "https://ⓛocalhost:PORT/",
    "https://localhost:PORT/",
    "https://a.localhost:PORT/",
    "https://localhost.localdomain:PORT/",
    # its network, and addresses that mean something there
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/",
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://[::ffff:169.254.169.254]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[fd00:ec2::254]/",
    "https://[fd20:ce::254]/",
    "https://168.63.129.16/",
    "https://192.0.0.192/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[fc00::1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[100::1]/",
    "https://[5f00::1]/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://1.0.0.127.in-addr.arpa/",
    "https://intranet/",
    "https://router.lan/",
    "https://nas.home/",
    # other than they look
    "https://hook.example@127.0.0.1:PORT/",
    "https://user:secret@hook.example/",
    "https://@127.0.0.1:PORT/",
    "https://hook.example:443@127.0.0.1:PORT/",
    "https://hook.example\\@127.0.0.1:PORT/",
    "https://127.0.0.1:PORT\\@hook.example/",
    "https://hook.example#@127.0.0.1:PORT/",
    "https:\\\\127.0.0.1:PORT\\",
    "https:127.0.0.1:PORT/",
    "https:///127.0.0.1:PORT/",
    "//127.0.0.1:PORT/",
    " https://127.0.0.1:PORT/",
    "https://127.0.0.1:PORT /",
    "https://127.0.0.1\t:PORT/",
    "https://hook.example\r\nhost: 127.0.0.1/",
    "https://hook.example/\r\nx: y",
    "https://hook.example\x00.127.0.0.1/",
    "https://hook..example/",
    "https://.hook.example/",
    "https://hook.example../",
    "https://-hook.example/",
    "https://hook_.example:PORT/",
    "https://xn--zzzzzz99999.example/",
    "https://" + "a" * 64 + ".example/",
    "https://hook.example/" + "a" * 280,
    "https:///",
    "https://",
    "https://:PORT/",
    "https://[/",
    "https://[]/",
    "https://[::1/",
    "https://::1:PORT/",
    "https://[127.0.0.1]:PORT/",
    "https://[::1]x:PORT/",
    # other than https on a port that is somebody's to open
    "http://hook.example/",
    "http://127.0.0.1:PORT/",
    "ftp://hook.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/_x",
    "unix:///run/docker.sock",
    "javascript:alert(1)",
    "https://hook.example:22/",
    "https://hook.example:25/",
    "https://hook.example:80/",
    "https://hook.example:0/",
    "https://hook.example:65536/",
    "https://hook.example:99999/",
    "https://hook.example:443443443443/",
    "https://hook.example:４４３/",
    "https://hook.example:+443/",
    "https://hook.example:/",
    "https://hook.example/ä",
    "https://hook.example/{x}",
    "hook.example",
    "",
)

PRIVATE = (
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "127.0.0.2"),
    (socket.AF_INET, "0.0.0.0"),  # noqa: S104
    (socket.AF_INET, "10.1.2.3"),
    (socket.AF_INET, "172.20.0.1"),
    (socket.AF_INET, "192.168.0.1"),
    (socket.AF_INET, "100.127.255.254"),
    (socket.AF_INET, "169.254.169.254"),
    (socket.AF_INET, "168.63.129.16"),
    (socket.AF_INET, "192.0.0.8"),
    (socket.AF_INET, "198.19.255.255"),
    (socket.AF_INET, "224.0.0.1"),
    (socket.AF_INET, "255.255.255.255"),
    (socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::"),
    (socket.AF_INET6, "::ffff:127.0.0.1"),
    (socket.AF_INET6, "::ffff:10.0.0.1"),
    (socket.AF_INET6, "64:ff9b::7f00:1"),
    (socket.AF_INET6, "64:ff9b:1::7f00:1"),
    (socket.AF_INET6, "2002:7f00:1::1"),
    (socket.AF_INET6, "2001:0:4136:e378:8000:63bf:80ff:fffe"),
    (socket.AF_INET6, "fe80::1"),
    (socket.AF_INET6, "fe80::1%lo"),
    (socket.AF_INET6, "fec0::1"),
    (socket.AF_INET6, "fc00::1"),
    (socket.AF_INET6, "fd00:ec2::254"),
    (socket.AF_INET6, "ff02::1"),
)


class Says(AbstractResolver):
    """What a name server says: the next of ``answers`` each time it is asked, and the last for ever."""

    def __init__(self, *answers: list[tuple[socket.AddressFamily, str]]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        rows = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            ResolveResult(hostname=host, host=address, port=port, family=version, proto=0, flags=0)
            for version, address in rows
        ]

    async def close(self) -> None:
        pass


class Ears:
    """Listens on one port of several of this machine's own addresses."""

    def __init__(self) -> None:
        first = socket.create_server(("127.0.0.1", 0))
        self.port = first.getsockname()[1]
        self.sockets = [first, socket.create_server(("127.0.0.2", self.port))]
        if socket.has_ipv6:
            self.sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        for listening in self.sockets:
            listening.setblocking(False)

    def heard(self) -> list[str]:
        """The addresses that were connected to. On loopback, accept sees each once connect returned."""
        addresses = []
        for listening in self.sockets:
            with contextlib.suppress(BlockingIOError):
                listening.accept()[0].close()
                addresses.append(listening.getsockname()[0])
        return addresses


@pytest.fixture
def ears() -> Iterator[Ears]:
    made = Ears()
    yield made
    for listening in made.sockets:
        listening.close()


HERE = Says([(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.2")])


@pytest.mark.parametrize("url", REFUSED)
def test_a_target_that_is_not_somebodys_on_the_internet_is_refused(url: str) -> None:
    with pytest.raises(BadTarget) as refused:
        parse_target(url.replace(PORT, "9000"))
    result = str(refused.value)
    assert result
    assert result.isascii()


@pytest.mark.parametrize("url", REFUSED)
async def test_got_past_the_reading_it_still_reaches_nothing_here(url: str, ears: Ears) -> None:
    """The target is made by hand, and every name leads to this machine."""
    past = Target(url.replace(PORT, str(ears.port)), "hook.example", ears.port)
    async with Poster(timeout_s=20, resolver=HERE) as poster:
        reply = await poster.post(past, b"{}", {})
    assert (reply.status, reply.retry_after_s, reply.read) == (None, None, b"")
    assert reply.error is not None
    assert ears.heard() == []


@pytest.mark.parametrize(("family", "address"), PRIVATE)
async def test_a_name_that_leads_to_a_private_address_is_not_connected_to(
    family: socket.AddressFamily, address: str, ears: Ears
) -> None:
    to = parse_target(f"https://hook.example:{ears.port}/")
    async with Poster(timeout_s=20, resolver=Says([(family, address)])) as poster:
        reply = await poster.post(to, b"{}", {})
    assert (reply.status, reply.error) == (None, NOT_GLOBAL)
    assert ears.heard() == []


async def test_the_ears_do_hear(ears: Ears) -> None:
    """Else all of this would prove nothing: where it is named, this machine is reached."""
    at = f"hook.example:{ears.port}"
    async with Poster(frozenset({at}), timeout_s=0.2, resolver=HERE) as poster:
        await poster.post(parse_target(f"http://{at}/", frozenset({at})), b"{}", {})
    assert "127.0.0.1" in ears.heard()


async def test_a_name_that_changes_its_mind_after_it_was_looked_at_is_not_connected_to(ears: Ears) -> None:
    rebinding = Says([(socket.AF_INET, "93.184.215.14")], [(socket.AF_INET, "127.0.0.1")])
    to = parse_target(f"https://hook.example:{ears.port}/")
    looked_at = await rebinding.resolve(to.host, to.port)
    async with Poster(timeout_s=20, resolver=rebinding) as poster:
        reply = await poster.post(to, b"{}", {})
    assert looked_at[0]["host"] == "93.184.215.14"
    assert (reply.status, reply.error, rebinding.asked) == (None, NOT_GLOBAL, 2)
    assert ears.heard() == []


async def test_of_several_addresses_only_the_one_that_may_be_is_connected_to(ears: Ears) -> None:
    """Named, the host may be on this machine, and nowhere else that is private."""
    at = f"hook.example:{ears.port}"
    mixed = Says([(socket.AF_INET, "10.0.0.1"), (socket.AF_INET6, "fe80::1"), (socket.AF_INET, "127.0.0.2")])
    async with Poster(frozenset({at}), timeout_s=0.2, resolver=mixed) as poster:
        await poster.post(parse_target(f"http://{at}/", frozenset({at})), b"{}", {})
    assert ears.heard() == ["127.0.0.2"]


async def test_where_all_addresses_of_a_name_are_private_none_is_connected_to(ears: Ears) -> None:
    many = Says([*PRIVATE, *PRIVATE])
    async with Poster(timeout_s=20, resolver=many) as poster:
        reply = await poster.post(parse_target(f"https://hook.example:{ears.port}/"), b"{}", {})
    assert (reply.status, reply.error) == (None, NOT_GLOBAL)
    assert ears.heard() == []


async def test_what_is_named_opens_no_other_host_and_no_other_port(ears: Ears) -> None:
    named = frozenset({"127.0.0.1:1", "hook.example:2"})
    past = [
        Target(f"http://127.0.0.1:{ears.port}/", "127.0.0.1", ears.port),
        Target(f"http://127.0.0.1:{ears.port}/", "127.0.0.1", 1),
        Target(f"http://hook.example:{ears.port}/", "hook.example", 2),
    ]
    async with Poster(named, timeout_s=20, resolver=HERE) as poster:
        replies = [await poster.post(to, b"{}", {}) for to in past]
    assert {reply.error for reply in replies} == {NOT_GLOBAL}
    assert ears.heard() == []


async def test_a_proxy_of_the_environment_is_not_asked(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{ears.port}")
    named = frozenset({"hook.example:1", f"127.0.0.1:{ears.port}"})
    async with Poster(named, timeout_s=20, resolver=Says([(socket.AF_INET, "10.0.0.1")])) as poster:
        reply = await poster.post(parse_target("http://hook.example:1/", named), b"{}", {})
    assert reply.error == NOT_GLOBAL
    assert ears.heard() == []
