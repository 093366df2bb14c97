"""Lists, sets and removes the channels that an account's alerts are sent to. Sends a test message to an
existing channel; a failing or switched-off channel becomes live again by it. Links a chat with the
Telegram bot to an account, by a code that only the account's key can read."""

import hashlib
import hmac
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from roundtrip.channels import discord, webhook
from roundtrip.channels.post import PostNotTried
from roundtrip.channels.secrets import Unsealable
from roundtrip.channels.targets import BadTarget, Target, parse_target
from roundtrip.channels.telegram import StartedChat
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, LimitReached, ParamFault, ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.watch.alerts import MAX_CHANNELS, Alert, Draft
from roundtrip.domain.watch.channels import HOST_ROWS, host_of
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.notifiers import Message, MessageTarget, describe_failure, send
from roundtrip.services.support import alert_rows
from roundtrip.services.support.answer_fields import WRITTEN, AnswerText, says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel, NewChannel
from roundtrip.store.server.rows import Connection

WINDOW_S = 600
_SECRET = "telegram"  # noqa: S105
_CODE = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{32})")
_LINKED = "Alerts of {account} now arrive here. Remove the channel to stop them."
NO_CODE = "This code is wrong or has expired. Call list_channels for a new link."
_FULL = f"You already have {MAX_CHANNELS} channels. Remove one, then call list_channels for a new link."


async def link_code(ctx: Context, connection: Connection, account_id: int) -> str:
    """The account's link code. It is valid for 10 to 20 minutes, until a chat is linked with it."""
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    linked = await channels.chats_linked(connection, account_id)
    return _code(secret, account_id, linked, int(ctx.now_s()) // WINDOW_S)


def _code(secret: bytes, account_id: int, linked: int, window: int) -> str:
    """``linked``: how often the account has linked a chat, so that the next link invalidates the code."""
    signed = f"{account_id} {linked} {window}"
    return f"{account_id}-{hmac.new(secret, signed.encode(), hashlib.sha256).hexdigest()[:32]}"


async def link(ctx: Context, started: StartedChat) -> str:
    """Makes the chat a channel if the code is valid. Returns the answer to the chat. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        return await _link_chat(ctx, connection, started)


async def _link_chat(ctx: Context, connection: Connection, started: StartedChat) -> str:
    match = _CODE.fullmatch(started.code)
    if match is None:
        return NO_CODE
    account_id = int(match[1])
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    designation = await channels.lock_account(connection, account_id)
    linked = await channels.chats_linked(connection, account_id)
    newest = int(ctx.now_s()) // WINDOW_S
    valid = (_code(secret, account_id, linked, window) for window in (newest, newest - 1))
    if designation is None or not any(hmac.compare_digest(started.code, code) for code in valid):
        return NO_CODE
    new = NewChannel("telegram", str(started.chat_id).encode(), names.name(started.name) or "a chat", None)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    owned = await channels.of_account(connection, account_id)
    key = (new.kind, new.target)
    same = next((channel for channel in owned if (channel.kind, channel.target) == key), None)
    if same is not None:
        await channels.set_again(connection, same.id, new, now)
        await deliveries.hurry(connection, same.id, now)
    elif len(owned) >= MAX_CHANNELS:
        return _FULL
    else:
        await channels.add(connection, account_id, new, now)
    await channels.count_chat(connection, account_id)
    return _LINKED.format(account=designation)


MAX_URL = 300
_KIND = Literal["webhook", "telegram", "discord"]


class WebhookParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The webhook to set."""

    url: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=MAX_URL,
            description="An https url that answers 2xx to a POST, or a Discord webhook.",
        ),
    ]


class ChannelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The channel to change."""

    id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1, description="The channel's id from list_channels.")]


class ChannelRow(msgspec.Struct, frozen=True, rename="camel"):
    """An alert channel."""

    id: Annotated[int, says("The channel's id, for remove_channel.")]
    kind: Annotated[_KIND, says("Kind of channel.")]
    target: Annotated[
        str,
        says(
            "Where it sends. Webhook: the url's host and the start of its path, as the rest may "
            f"be a secret. Discord: the url without its token. Telegram: the chat's name. {WRITTEN}"
        ),
    ]
    state: Annotated[
        Literal["live", "failing", "off"],
        says(
            "live: works. failing: the last try failed and is repeated. off: failed for "
            "three days; nothing is sent until you set it again."
        ),
    ]
    made_at: Annotated[datetime, says("When the channel was made.")]
    last_delivered_at: Annotated[datetime | None, says("When a message last arrived. null: never.")]
    failing_since: Annotated[
        datetime | None, says("First failure since a message last arrived. null: it works.")
    ]
    last_error: Annotated[str | None, says("Error of the last try. null: the last try did not fail.")]
    proven: Annotated[
        bool,
        says(
            "false: a webhook that never echoed the challenge; its host gets at most 60 "
            "rows a minute, the rest waits."
        ),
    ]


class TelegramLink(msgspec.Struct, frozen=True, rename="camel"):
    """How to add a Telegram chat."""

    bot: Annotated[str, says("The bot's name.")]
    link: Annotated[
        str,
        says(
            "Open it in Telegram and press start: that chat becomes a channel. Works once, "
            "within ten minutes."
        ),
    ]


class Channels(msgspec.Struct, frozen=True, rename="camel"):
    """The account's alert channels."""

    text: AnswerText
    channels: Annotated[list[ChannelRow], says("The channels, the oldest first.")]
    telegram: Annotated[
        TelegramLink | None,
        says("How to add a Telegram chat. null: the service has no bot, or the bot does not answer."),
    ]


class WebhookSet(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that was set."""

    text: AnswerText
    channel: Annotated[ChannelRow, says("The channel that was set.")]
    secret: Annotated[
        str | None,
        says(
            "Key of the deliveries' signatures. Store it: it is shown only once. null: a "
            "Discord webhook: its deliveries are not signed."
        ),
    ]
    shown_once: Annotated[bool, says("Whether the answer has a secret, which is shown only once.")]
    replaced: Annotated[bool, says("true: the channel existed; its old secret is no longer valid.")]


class ChannelRemoved(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that was removed."""

    text: AnswerText
    id: Annotated[int, says("The channel's id.")]
    removed: Annotated[bool, says("false: it was removed before.")]


def present_channel(channel: Channel) -> ChannelRow:
    """The channel as its owner sees it."""
    assert channel.state != "removed"
    return ChannelRow(
        id=channel.id,
        kind=channel.kind,
        target=channel.shown,
        state=channel.state,
        made_at=channel.made_at,
        last_delivered_at=channel.delivered_at,
        failing_since=channel.failing_since,
        last_error=channel.last_error,
        proven=channel.proven_at is not None,
    )


ATTEMPTS_OF_ACCOUNT, ATTEMPTS_OF_HOST = 5, 30
"""The most attempts of one account, and the most failed attempts of all accounts at one host."""
ATTEMPTS_WINDOW = timedelta(minutes=10)
_SHOWN_OF_PATH = 12
_DISCORD_ID = re.compile(r"/webhooks/([0-9]{1,20})/")
_TEST = "This is a test. Alerts will arrive here."


async def list_channels(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[Channels]:
    """The account's channels. Raises ServiceFull."""
    bot = None if ctx.outward.bot is None else await ctx.outward.bot.name(ctx.now_s())
    async with accounts(ctx) as connection:
        owned = await channels.of_account(connection, account.id)
        code = None if bot is None else await link_code(ctx, connection, account.id)
    link = None if bot is None else TelegramLink(bot, f"https://t.me/{bot}?start={code}")
    rows = [present_channel(channel) for channel in owned]
    failing = sum(row.state == "failing" for row in rows)
    off = sum(row.state == "off" for row in rows)
    text = _count_text(len(rows))
    if failing:
        text += f" Deliveries to {failing} of them fail and are retried."
    if off:
        text += (
            f" {off} of them {'is' if off == 1 else 'are'} off after three days of failures: "
            f"set again to resume."
        )
    return UseCaseAnswer(Channels(text, rows, link))


def _count_text(count: int) -> str:
    if not count:
        return f"You have no channel yet; {MAX_CHANNELS} are possible. set_webhook makes one."
    return f"You have {format_count(count, 'channel')} of {MAX_CHANNELS}."


async def set_webhook(ctx: Context, params: WebhookParams, account: Account) -> UseCaseAnswer[WebhookSet]:
    """Sends a test, and stores the target if it arrives. Raises CallerFault (bad_input), LimitReached,
    ServiceFull."""
    to = _parse_target(ctx, params.url)
    secret = None if discord.is_discord(to) else webhook.new_secret(ctx.entropy())
    new = _seal_channel(ctx, to, secret)
    async with accounts(ctx) as connection:
        attempted_at = await count_attempt(ctx, connection, account, new)
        await _find_same(connection, account, new)
    new = await send_test(ctx, account, new)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.clear_attempt(connection, account.id, host_of(new.shown), attempted_at)
        if not await channels.is_key(connection, ctx.outward.seal().fingerprint):
            raise Unsealable("the configured key did not encrypt the other channels")
        await channels.lock_account(connection, account.id)
        same_id = await _find_same(connection, account, new)
        if same_id is None:
            channel_id = await channels.add(connection, account.id, new, now)
        else:
            channel_id = same_id
            await channels.set_again(connection, channel_id, new, now)
            # Messages that waited for the failing channel are due now.
            await deliveries.hurry(connection, channel_id, now)
        stored = await channels.channel(connection, channel_id)
    assert stored is not None
    text = f"Alerts now go to {new.shown}: the test arrived."
    if secret is not None:
        text += " Keep the secret, which signs them: it is not shown again."
    if stored.proven_at is None:
        text += (
            " Your receiver did not echo the challenge; until it does, its host gets at most "
            f"{HOST_ROWS} alerts a minute."
        )
    if same_id is not None:
        text += " This channel existed before."
        text += " Its old secret no longer works." if secret is not None else ""
    return UseCaseAnswer(
        WebhookSet(text, present_channel(stored), secret, secret is not None, same_id is not None)
    )


def _parse_target(ctx: Context, url: str) -> Target:
    try:
        return parse_target(url, ctx.outward.loopback)
    except BadTarget as error:
        raise ParamFault(
            "bad_input", f'url is not allowed: {error}. An example is "https://example.com/alerts".'
        ) from None


def _seal_channel(ctx: Context, to: Target, secret: str | None) -> NewChannel:
    """The channel with url and secret encrypted: reading the database is not enough to send to it, or to
    sign."""
    seal = ctx.outward.seal()
    sealed_url = seal.seal(to.url, ctx.entropy())
    if secret is not None:
        sealed_secret = seal.seal(secret, ctx.entropy())
        return NewChannel("webhook", sealed_url, _mask_target(to), sealed_secret, seal.hash_of(to.url))
    match = _DISCORD_ID.search(urlsplit(to.url).path)
    assert match is not None
    # Without the token: a webhook with a new token is the same webhook.
    shown = f"{to.host}/api/webhooks/{match[1]}"
    return NewChannel("discord", sealed_url, shown, None, seal.hash_of(shown))


def _mask_target(to: Target) -> str:
    """The url's beginning, enough to recognise it: the rest may be a secret."""
    parts = urlsplit(to.url)
    beginning = parts.path[:_SHOWN_OF_PATH]
    is_all = beginning == parts.path and not parts.query
    return f"{parts.scheme}://{parts.netloc}{beginning}{'' if is_all else '…'}"


async def count_attempt(ctx: Context, connection: Connection, account: Account, new: NewChannel) -> datetime:
    """Counts an attempt before anything is sent, in a transaction that the caller ends before sending.
    Returns the attempt's time. Raises LimitReached."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    host = host_of(new.shown)
    await channels.lock_account(connection, account.id)
    await channels.forget_attempts(connection, now - ATTEMPTS_WINDOW)
    owned = await channels.of_account(connection, account.id)
    # An account with a live channel at the host is not blocked by other accounts' failed attempts.
    has_live = any(
        channel.state == "live" and channel.kind == new.kind and host_of(channel.shown) == host
        for channel in owned
    )
    most = (ATTEMPTS_OF_ACCOUNT, None if has_live else ATTEMPTS_OF_HOST)
    until = await channels.attempt(connection, account.id, host, most, ATTEMPTS_WINDOW, now)
    if until is not None:
        wait_s = max(1, int((until - now).total_seconds() + 0.999))
        raise LimitReached(
            "rate_limited",
            f"Too many tests. In ten minutes an account can test {ATTEMPTS_OF_ACCOUNT} targets, and "
            f"{ATTEMPTS_OF_HOST} tests of one host can fail, from all accounts together. Retry in "
            f"{wait_s} s.",
            wait_s,
            ATTEMPTS_OF_ACCOUNT,
        )
    return now


async def _find_same(connection: Connection, account: Account, new: NewChannel) -> int | None:
    """The id of the account's channel with this target; None if there is none. Raises CallerFault (bad_input)
    when there is none and no room for another channel."""
    owned = await channels.of_account(connection, account.id)
    key = (new.kind, new.target_hash)
    same_id = next((channel.id for channel in owned if (channel.kind, channel.target_hash) == key), None)
    if same_id is None and len(owned) >= MAX_CHANNELS:
        raise CallerFault(
            "bad_input", f"You already have {MAX_CHANNELS} channels, which is the limit. Remove one first."
        )
    return same_id


async def send_test(ctx: Context, account: Account, new: NewChannel) -> NewChannel:
    """Sends a test message. Returns the channel with the proof and the time of the answer. Raises CallerFault
    (bad_input), ServiceFull (busy)."""
    now_s = int(ctx.now_s())
    test_rows = alert_rows.rows([Alert(0, Draft(account.id, "test", None, now_s, _TEST))])
    challenge = ctx.entropy().hex()[:32] if new.kind == "webhook" else None
    message = Message(f"msg_{ctx.entropy().hex()[:32]}", account.designation, "test", test_rows, challenge)
    try:
        reply = await send(ctx.outward, MessageTarget(new.kind, new.target, new.secret), message, now_s)
    except PostNotTried:
        raise ServiceFull("busy", "The service cannot send messages now. Retry in 5 seconds.", 5) from None
    if not reply.ok:
        raise CallerFault(
            "bad_input",
            f"The test failed: {describe_failure(reply)}. The url must answer 2xx. Nothing was saved.",
        )
    return replace(new, proven=message.is_echoed(reply), took_ms=reply.took_ms)


async def remove_channel(
    ctx: Context, params: ChannelParams, account: Account
) -> UseCaseAnswer[ChannelRemoved]:
    """Removes a channel, and drops its waiting messages. Raises CallerFault (bad_input), ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.lock_account(connection, account.id)
        channel = await channels.channel(connection, params.id, lock=True)
        if channel is None or channel.account_id != account.id:
            raise CallerFault(
                "bad_input", f"You have no channel {params.id}. list_channels lists your channels."
            )
        removed = channel.state != "removed"
        if removed:
            await channels.remove(connection, channel.id)
            if await deliveries.drop(connection, channel.id, now):
                await deliveries.hurry(connection, channel.id, now)
    text = "is removed. Nothing more is sent there." if removed else "was already removed."
    return UseCaseAnswer(ChannelRemoved(f"Channel {params.id} {text}", params.id, removed))


class ChannelTested(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that a test arrived at."""

    text: str
    channel: ChannelRow


async def try_channel(ctx: Context, params: ChannelParams, account: Account) -> UseCaseAnswer[ChannelTested]:
    """Sends a test to the channel; if it arrives, the channel is live. Counts as an attempt, like setting a
    new channel. Raises CallerFault (bad_input), LimitReached, ServiceFull."""
    async with accounts(ctx) as connection:
        channel = _check_owned(await channels.channel(connection, params.id), params, account)
        new = _as_new(channel)
        attempted_at = await count_attempt(ctx, connection, account, new)
    tested = await send_test(ctx, account, new)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.clear_attempt(connection, account.id, host_of(new.shown), attempted_at)
        await channels.lock_account(connection, account.id)
        # Read again: it may have been set again or removed during the test.
        before = _check_owned(await channels.channel(connection, params.id, lock=True), params, account)
        updated = replace(_as_new(before), proven=tested.proven, took_ms=tested.took_ms)
        await channels.set_again(connection, before.id, updated, now)
        await deliveries.hurry(connection, before.id, now)
        after = await channels.channel(connection, before.id)
    assert after is not None
    text = f"The test arrived at {after.shown}."
    if before.state == "off":
        text += " The channel is on again. Alerts from the time it was off are not sent; new ones are."
    elif before.state == "failing":
        text += " Waiting messages are sent now."
    return UseCaseAnswer(ChannelTested(text, present_channel(after)))


def _check_owned(channel: Channel | None, params: ChannelParams, account: Account) -> Channel:
    """Raises CallerFault (bad_input) unless it is a channel of the account."""
    if channel is None or channel.account_id != account.id or channel.state == "removed":
        raise CallerFault("bad_input", f"You have no channel {params.id}. list_channels lists your channels.")
    return channel


def _as_new(channel: Channel) -> NewChannel:
    return NewChannel(channel.kind, channel.target, channel.shown, channel.secret, channel.target_hash)
