"""Channels without a network: servers of strangers that answer as a test says, and what they were sent."""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
import msgspec

from roundtrip.channels.post import PostReply
from roundtrip.channels.secrets import Seal
from roundtrip.channels.targets import Target
from roundtrip.channels.telegram import ChatMessage
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import Alert, Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Bot, Notifiers
from roundtrip.store.accounts import accounts
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel, NewChannel
from roundtrip.store.watch import alerts

NOW_S = 1_760_011_200.0
OK = PostReply(200, None, None, 3)
WAIT_S = 20


def answered(status: int, retry_after_s: float | None = None) -> PostReply:
    return PostReply(status, None, retry_after_s, 3)


NO_ANSWER = PostReply(None, "no answer within 10 s", None, 10_000)


@dataclass(frozen=True, slots=True)
class SentPost:
    """One POST that came."""

    to: Target
    body: bytes
    headers: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found


@dataclass
class Servers:
    """Everybody's servers. ``replies``: by host, what it answers next; else ``otherwise``. ``hangs``: hosts
    that do not answer before ``go``. ``echoes``: hosts that echo a challenge."""

    replies: dict[str, list[PostReply]] = field(default_factory=dict)
    otherwise: PostReply = OK
    sent: list[SentPost] = field(default_factory=list)
    hangs: set[str] = field(default_factory=set)
    echoes: set[str] = field(default_factory=set)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def post(self, to: Target, body: bytes, headers: Mapping[str, str]) -> PostReply:
        self.sent.append(SentPost(to, body, headers))
        self.came.set()
        if to.host in self.hangs:
            await self.go.wait()
        waiting = self.replies.get(to.host)
        if to.host in self.echoes and not waiting:
            return replace(OK, read=headers.get("webhook-challenge", "").encode())
        return waiting.pop(0) if waiting else self.otherwise

    def ids(self, host: str | None = None) -> list[str]:
        return [one.id for one in self.sent if host is None or one.to.host == host]


@dataclass
class Chats:
    """Telegram. ``updates``: what comes, one list a question; then nothing does, for ever."""

    updates: list[list[ChatMessage]] = field(default_factory=list)
    taken: list[tuple[int, Sequence[str]]] = field(default_factory=list)
    links: list[Sequence[str | None]] = field(default_factory=list)
    reply: PostReply = OK
    called: str | None = "some_bot"
    asked_after: list[int] = field(default_factory=list)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    async def send_rows(
        self, chat_id: int, texts: Sequence[str], links: Sequence[str | None] = ()
    ) -> PostReply:
        self.taken.append((chat_id, texts))
        self.links.append(links)
        return self.reply

    async def send_photo(self, chat_id: int, picture: bytes, caption: str) -> PostReply:
        self.taken.append((chat_id, caption.split("\n")))
        return self.reply

    async def name(self) -> str | None:
        return self.called

    async def read_messages(self, after: int, wait_s: int) -> tuple[list[ChatMessage], int]:
        self.asked_after.append(after)
        if not self.updates:
            self.idle.set()
            await asyncio.Event().wait()
        found = self.updates.pop(0)
        return found, max([after, *(one.update_id for one in found)])


@dataclass
class ChannelStreet:
    """What use cases and jobs need of a context, with a clock that is moved by hand."""

    pool: asyncpg.Pool
    servers: Servers = field(default_factory=Servers)
    chats: Chats = field(default_factory=Chats)
    at_s: float = NOW_S
    key: bytes = b"k" * 32
    has_bot: bool = True
    draw: Callable[[], bytes] = lambda: secrets.token_bytes(32)
    measures: Measures = field(default_factory=Measures)

    @property
    def outward(self) -> Notifiers:
        return Notifiers(self.servers.post, lambda: Seal(self.key), Bot(self.chats) if self.has_bot else None)

    @property
    def ctx(self) -> Context:
        return cast(Context, self)

    def now_s(self) -> float:
        return self.at_s

    def entropy(self) -> bytes:
        return self.draw()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at_s, UTC)

    async def account(self) -> Account:
        """A new one."""
        wallet = Address("0x" + secrets.token_hex(20))
        async with self.pool.acquire() as connection, connection.transaction():
            found = await accounts.lock_account(
                connection, wallet, [f"mite-{secrets.token_hex(6)}"], self.now()
            )
        return found.account

    async def webhook(
        self, account: Account, host: str = "a.example", *, proven: bool = False, took_ms: int = 0
    ) -> int:
        """One that was set."""
        url = f"https://{host}/alerts"
        seal = Seal(self.key)
        secret = seal.seal("whsec_" + "QUJD" * 8, secrets.token_bytes(32))
        target = seal.seal(url, secrets.token_bytes(32))
        async with self.pool.acquire() as connection, connection.transaction():
            new = NewChannel("webhook", target, url, secret, seal.hash_of(url), proven, took_ms)
            return await channels.add(connection, account.id, new, self.now())

    async def alert(self, account: Account, *said: str, kind: Any = "rule") -> list[Alert]:
        """Rows that are wished for in the transaction that makes them."""
        drafts = [Draft(account.id, kind, 1, int(self.at_s), one, verb="buying") for one in said]
        async with self.pool.acquire() as connection, connection.transaction():
            made = await alerts.put(connection, drafts, self.now())
            await deliveries.enqueue(connection, made, self.now())
        return made

    async def run(self) -> int:
        """One round of a worker of its own; how many jobs it ran."""
        worker = Worker(self.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
        async with asyncio.timeout(WAIT_S):
            begun = await worker.take()
            await asyncio.gather(*begun)
        return len(begun)

    async def channel(self, channel_id: int) -> Channel:
        async with self.pool.acquire() as connection:
            found = await channels.channel(connection, channel_id)
        assert found is not None
        return found

    async def states(self, channel_id: int) -> list[str]:
        """Of its deliveries, in order."""
        rows = await self.pool.fetch(
            "SELECT state FROM accounts.delivery WHERE channel_id = $1 ORDER BY id", channel_id
        )
        return [row["state"] for row in rows]

    async def due_in_s(self, channel_id: int) -> float | None:
        """In how many seconds its job is to be run; None: there is none. 0: at once."""
        at = await self.pool.fetchval(
            "SELECT run_at FROM jobs.job WHERE kind = 'deliver' AND key = $1 AND failed_at IS NULL",
            str(channel_id),
        )
        return None if at is None else max(0.0, at.timestamp() - self.at_s)
