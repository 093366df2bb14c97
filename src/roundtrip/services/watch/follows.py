"""Follows: wallets whose buys, sells and launches are told."""

from datetime import UTC, datetime

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MOST_FOLLOWS
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches

from .schema import FollowedWallet, FollowParams, Unfollowed


async def follow_wallet(
    ctx: Context, params: FollowParams, account: Account
) -> UseCaseAnswer[FollowedWallet]:
    """Follows a wallet, or calls a followed one by another name. Raises CallerFault (bad_address, bad_input),
    ServiceFull."""
    wallet, name, now = params.wallet(), params.parsed_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        head = ctx.heads.last_number()
        # Not given again, it stays.
        name = name or await _name(connection, account, wallet)
        try:
            await watches.add_follow(connection, account.id, wallet, name, head, now)
        except watches.TooManyWatches as many:
            raise CallerFault(
                "bad_input", f"You follow {many.most} wallets, which is all you can: unfollow one first."
            ) from None
        followed = {one.wallet: one for one in await watches.follows_of(connection, account.id)}
    follow, follows = followed[wallet], len(followed)
    called = f', called "{follow.name}"' if follow.name else ""
    answer = FollowedWallet(
        text=f"You follow {wallet}{called}. Its buys, sells and launches after block {follow.from_number} go "
        f"to your inbox and your channels. {_count_text(follows)}",
        address=wallet,
        name=follow.name or None,
        follows=follows,
        from_block=follow.from_number,
    )
    return UseCaseAnswer(answer)


async def unfollow_wallet(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[Unfollowed]:
    """Follows a wallet no longer. Raises CallerFault (bad_address), ServiceFull."""
    wallet, now = params.wallet(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        was_followed = await watches.end_follow(connection, account.id, wallet, now)
        follows = len(await watches.follows_of(connection, account.id))
    said = f"You follow {wallet} no longer." if was_followed else f"You did not follow {wallet}."
    return UseCaseAnswer(Unfollowed(f"{said} {_count_text(follows)}", wallet, was_followed, follows))


async def _name(connection: Connection, account: Account, wallet: Address) -> str:
    """As the account calls the wallet by now; empty: it does not."""
    follows = await watches.follows_of(connection, account.id)
    return next((one.name for one in follows if one.wallet == wallet), "")


def _count_text(follows: int) -> str:
    wallets = "1 wallet" if follows == 1 else f"{follows} wallets"
    return f"You follow {wallets} now; {MOST_FOLLOWS} are possible."
