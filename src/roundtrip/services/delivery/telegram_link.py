"""Links a chat with the Telegram bot to an account, by a code that only the account's key can read."""

import hashlib
import hmac
import re
from datetime import UTC, datetime

from roundtrip.channels.telegram import StartedChat
from roundtrip.domain.base import names
from roundtrip.domain.watch.alerts import MAX_CHANNELS
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.accounts_database import accounts
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import NewChannel
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
