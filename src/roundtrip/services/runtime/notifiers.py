"""What talks to the servers of people who are told something: handed to whoever sends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import asyncpg

from roundtrip.channels import discord, webhook
from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.channels.secrets import Unsealable
from roundtrip.channels.targets import BadTarget, Target, parse_target
from roundtrip.channels.telegram import StartedChat
from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.delivery import channels
from roundtrip.store.delivery.channels import ChannelKind


class MessagePoster(Protocol):
    """``channels.post.Poster``."""

    async def post(self, to: Target, body: bytes, headers: Mapping[str, str]) -> PostReply: ...


class Seals(Protocol):
    """``channels.seal.Seal``."""

    @property
    def fingerprint(self) -> bytes: ...

    def hash_of(self, text: str) -> bytes: ...

    def seal(self, text: str, entropy: bytes) -> bytes: ...

    def unseal(self, sealed: bytes) -> str: ...


class ChatUpdates(Protocol):
    """``channels.telegram.Telegram``."""

    async def send_rows(
        self, chat_id: int, texts: Sequence[str], links: Sequence[str | None] = ()
    ) -> PostReply: ...

    async def name(self) -> str | None: ...

    async def read_started(self, after: int, wait_s: int) -> tuple[list[StartedChat], int]: ...


SILENT_S = 60.0
"""So long a bot that did not say what it is called is not asked again."""


class Bot:
    """A Telegram bot, which is asked once what it is called."""

    def __init__(self, telegram: ChatUpdates) -> None:
        self.telegram = telegram
        self._name: str | None = None
        self._not_before_s = 0.0

    async def name(self, now_s: float) -> str | None:
        """None: it did not say."""
        if self._name is None and now_s >= self._not_before_s:
            # Set first: of many who ask while it is silent one waits for it.
            self._not_before_s = now_s + SILENT_S
            self._name = await self.telegram.name()
        return self._name


class _NoPoster:
    async def post(self, to: Target, body: bytes, headers: Mapping[str, str]) -> PostReply:
        return PostReply(None, "nothing is sent from here", None, 0)


def _no_key() -> Seals:
    raise Unsealable("there is no key here")


@dataclass(frozen=True, slots=True)
class Notifiers:
    """``seal``: made when it is needed first. ``bot``: None where none is configured. ``loopback``: as in
    ``channels.targets.target``. ``public_url``: where people reach this service; None: that is not set, and
    nothing that is sent has a link."""

    poster: MessagePoster
    seal: Callable[[], Seals]
    bot: Bot | None = None
    loopback: frozenset[str] = frozenset()
    public_url: str | None = None


CLOSED = Notifiers(_NoPoster(), _no_key)
"""Sends nothing."""


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """Where one message goes. ``target``, ``secret``: as the channel has them."""

    kind: ChannelKind
    target: bytes
    secret: bytes | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``account``: what it is called. ``rows``: of ``alert_rows``. ``challenge``: as
    ``webhook.build_message`` has it."""

    webhook_id: str
    account: str
    kind: str
    rows: Sequence[Any]
    challenge: str | None = None

    def is_echoed(self, reply: PostReply) -> bool:
        """Whether that proves the target it was sent to."""
        return self.challenge is not None and webhook.is_echo(reply, self.challenge)


async def send(outward: Notifiers, to: MessageTarget, message: Message, now_s: int) -> PostReply:
    """One try. Never raises for what the other side does; raises NotTried for what is ours."""
    try:
        if to.kind == "telegram":
            return await _to_telegram(outward, to, message)
        aim = parse_target(outward.seal().unseal(to.target), outward.loopback)
        if to.kind == "discord":
            body, headers = discord.build_message(*_chat_rows(message))
        else:
            assert to.secret is not None
            body, headers = webhook.build_message(
                outward.seal().unseal(to.secret), message.webhook_id, now_s, message.account, message.kind,
                message.rows, message.challenge,
            )  # fmt: skip
    except Unsealable:
        raise PostNotTried("a channel's secret cannot be read with the key that is set") from None
    except BadTarget as error:
        return PostReply(None, str(error), None, 0)
    reply = await outward.poster.post(aim, body, headers)
    return discord.read_discord_reply(reply) if to.kind == "discord" else reply


async def _to_telegram(outward: Notifiers, to: MessageTarget, message: Message) -> PostReply:
    if outward.bot is None:
        raise PostNotTried("no Telegram bot is configured")
    return await outward.bot.telegram.send_rows(int(to.target), *_chat_rows(message))


def _chat_rows(message: Message) -> tuple[list[str], list[str | None]]:
    """The rows as chats show them: texts and links."""
    return [row.text for row in message.rows], [row.link for row in message.rows]


def why(reply: PostReply) -> str:
    """What went wrong, in words of ours."""
    if reply.status is not None:
        return f"answered {reply.status}"
    return reply.error or "no answer"


class OtherKey(CannotRun):
    """Channels are kept that were sealed with another key."""


async def check_key(pool: asyncpg.Pool, out: Notifiers) -> None:
    """Before anything is sent: with another key nothing that is kept could be. Raises OtherKey; OSError and
    ValueError where there is no good key."""
    async with pool.acquire() as connection:
        # Where nothing is sealed no key is needed, nor made.
        if not await channels.has_sealed(connection):
            return
        if not await channels.is_key(connection, out.seal().fingerprint):
            raise OtherKey(
                "ROUNDTRIP_SECRET_KEY, or the file secret.key, is not the key that the channels in this "
                "database were sealed with: set that one, or remove the channels"
            )
