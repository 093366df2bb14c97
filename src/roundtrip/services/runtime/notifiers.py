"""Sends messages to users' channels: webhooks, Discord and Telegram."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import asyncpg

from roundtrip.channels import discord, webhook
from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.channels.secrets import Seal, Unsealable
from roundtrip.channels.targets import BadTarget, Target, parse_target
from roundtrip.channels.telegram import ChatMessage
from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.delivery import channels
from roundtrip.store.delivery.channels import ChannelKind


class ChatUpdates(Protocol):
    """What is used of ``channels.telegram.Telegram``."""

    async def send_rows(
        self, chat_id: int, texts: Sequence[str], links: Sequence[str | None] = ()
    ) -> PostReply: ...

    async def send_photo(self, chat_id: int, picture: bytes, caption: str) -> PostReply: ...

    async def name(self) -> str | None: ...

    async def read_messages(self, after: int, wait_s: int) -> tuple[list[ChatMessage], int]: ...


SILENT_S = 60.0
"""Delay before a bot that did not return its name is asked again."""


class Bot:
    """A Telegram bot; its name is read once."""

    def __init__(self, telegram: ChatUpdates) -> None:
        self.telegram = telegram
        self._name: str | None = None
        self._not_before_s = 0.0

    async def name(self, now_s: float) -> str | None:
        """The bot's name; None: not known yet."""
        if self._name is None and now_s >= self._not_before_s:
            # Set before the request, so that only one of several concurrent callers waits for it.
            self._not_before_s = now_s + SILENT_S
            self._name = await self.telegram.name()
        return self._name


async def _post_nothing(to: Target, body: bytes, headers: Mapping[str, str]) -> PostReply:
    return PostReply(None, "this process sends no messages", None, 0)


def _no_key() -> Seal:
    raise Unsealable("this process has no sealing key")


@dataclass(frozen=True, slots=True)
class Notifiers:
    """What sends messages. ``post``: as ``Poster.post``. ``seal``: created on first use. ``bot``: None if
    none is configured. ``loopback``: as in ``channels.targets.parse_target``. ``public_url``: the service's
    URL for users; None: not set, and messages have no links. ``draw``: a card's picture; None: messages have
    no pictures."""

    post: Callable[[Target, bytes, Mapping[str, str]], Awaitable[PostReply]]
    seal: Callable[[], Seal]
    bot: Bot | None = None
    loopback: frozenset[str] = frozenset()
    public_url: str | None = None
    draw: Callable[[str], Awaitable[bytes]] | None = None


CLOSED = Notifiers(_post_nothing, _no_key)
"""Sends nothing."""


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """Where one message goes. ``target``, ``secret``: as stored with the channel."""

    kind: ChannelKind
    target: bytes
    secret: bytes | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``account``: the public name of its account. ``rows``: of ``alert_rows``. ``challenge``:
    as ``webhook.build_message`` has it."""

    webhook_id: str
    account: str
    kind: str
    rows: Sequence[Any]
    challenge: str | None = None

    def is_echoed(self, reply: PostReply) -> bool:
        """Whether the reply echoes the challenge, which proves the target."""
        return self.challenge is not None and webhook.is_echo(reply, self.challenge)


async def send(notifiers: Notifiers, recipient: MessageTarget, message: Message, now_s: int) -> PostReply:
    """Tries once to send the message. Failures of the receiver are in the reply; raises PostNotTried when
    this service's own configuration prevents sending."""
    try:
        if recipient.kind == "telegram":
            return await _to_telegram(notifiers, recipient, message)
        parsed_target = parse_target(notifiers.seal().unseal(recipient.target), notifiers.loopback)
        if recipient.kind == "discord":
            body, headers = discord.build_message(*_chat_rows(message))
        else:
            assert recipient.secret is not None
            body, headers = webhook.build_message(
                notifiers.seal().unseal(recipient.secret), message.webhook_id, now_s, message.account,
                message.kind, message.rows, message.challenge,
            )  # fmt: skip
    except Unsealable:
        raise PostNotTried("the configured key cannot decrypt a channel's secret") from None
    except BadTarget as error:
        return PostReply(None, str(error), None, 0)
    reply = await notifiers.post(parsed_target, body, headers)
    return discord.read_discord_reply(reply) if recipient.kind == "discord" else reply


async def _to_telegram(notifiers: Notifiers, recipient: MessageTarget, message: Message) -> PostReply:
    if notifiers.bot is None:
        raise PostNotTried("no Telegram bot is configured")
    return await notifiers.bot.telegram.send_rows(int(recipient.target), *_chat_rows(message))


def _chat_rows(message: Message) -> tuple[list[str], list[str | None]]:
    """The texts and the links of the rows."""
    return [row.text for row in message.rows], [row.link for row in message.rows]


def describe_failure(reply: PostReply) -> str:
    """The reason of a failed reply, without text by the receiver."""
    if reply.status is not None:
        return f"answered {reply.status}"
    return reply.error or "no answer"


async def check_key(pool: asyncpg.Pool, notifiers: Notifiers) -> None:
    """Checks at start that the key can open the stored channels. Raises CannotRun: another key sealed
    them; OSError or ValueError when there is no valid key."""
    async with pool.acquire() as connection:
        # Without sealed channels no key is needed, and none is created.
        if not await channels.has_sealed(connection):
            return
        if not await channels.is_key(connection, notifiers.seal().fingerprint):
            raise CannotRun(
                "ROUNDTRIP_SECRET_KEY, or the file secret.key, is not the key that encrypted the channels in "
                "this database; set the right key, or remove the channels"
            )
