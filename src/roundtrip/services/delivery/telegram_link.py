"""How a chat with the Telegram bot becomes a channel: by a code that only the account's key shows."""

import hashlib
import hmac
import re
from datetime import UTC, datetime

from roundtrip.channels.telegram import StartedChat
from roundtrip.domain.base import names
from roundtrip.domain.watch.alerts import MOST_CHANNELS
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import NewChannel
from roundtrip.store.server.rows import Connection

WINDOW_S = 600
_SECRET = "telegram"  # noqa: S105
_CODE = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{32})")
_LINKED = "From now on alerts of {account} come here. Remove the channel to end that."
NO_CODE = "That code is not good, or no longer. Ask list_channels for a new link."
_FULL = (
    f"There are {MOST_CHANNELS} channels already: remove one first, then ask list_channels for a new link."
)


async def link_code(ctx: Context, connection: Connection, account_id: int) -> str:
    """Good for ten minutes at least and twenty at most, until a chat was linked by it."""
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    made = await channels.chats_linked(connection, account_id)
    return _code(secret, account_id, made, int(ctx.now_s()) // WINDOW_S)


def _code(secret: bytes, account_id: int, made: int, window: int) -> str:
    """``made``: how often the account linked a chat: with the next the code is of no use any more."""
    said = f"{account_id} {made} {window}"
    return f"{account_id}-{hmac.new(secret, said.encode(), hashlib.sha256).hexdigest()[:32]}"


async def link(ctx: Context, started: StartedChat) -> str:
    """Makes the chat a channel where the code is good; what the chat is told of it. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        return await _link_chat(ctx, connection, started)


async def _link_chat(ctx: Context, connection: Connection, started: StartedChat) -> str:
    found = _CODE.fullmatch(started.code)
    if found is None:
        return NO_CODE
    account_id = int(found[1])
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    designation = await channels.lock_account(connection, account_id)
    made = await channels.chats_linked(connection, account_id)
    window = int(ctx.now_s()) // WINDOW_S
    good = (_code(secret, account_id, made, one) for one in (window, window - 1))
    if designation is None or not any(hmac.compare_digest(started.code, one) for one in good):
        return NO_CODE
    new = NewChannel("telegram", str(started.chat_id).encode(), names.name(started.name) or "a chat", None)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    known = await channels.of_account(connection, account_id)
    same = next((one for one in known if (one.kind, one.target) == (new.kind, new.target)), None)
    if same is not None:
        await channels.set_again(connection, same.id, new, now)
        await deliveries.hurry(connection, same.id, now)
    elif len(known) >= MOST_CHANNELS:
        return _FULL
    else:
        await channels.add(connection, account_id, new, now)
    await channels.count_chat(connection, account_id)
    return _LINKED.format(account=designation)
