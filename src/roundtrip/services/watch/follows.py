"""Follows and unfollows wallets: alerts report a followed wallet's buys, sells and launches."""

from datetime import UTC, datetime

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MAX_FOLLOWS
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches

from .schema import FollowedWallet, FollowParams, Unfollowed


async def follow_wallet(
    ctx: Context, params: FollowParams, account: Account
) -> UseCaseAnswer[FollowedWallet]:
    """Follows a wallet, or renames a followed one. Raises CallerFault (bad_address, bad_input),
    ServiceFull."""
    wallet, name, now = params.wallet(), params.parsed_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        head = ctx.heads.last_number()
        # Without a new name a followed wallet keeps its name.
        name = name or await _current_name(connection, account, wallet)
        try:
            await watches.add_follow(connection, account.id, wallet, name, head, now)
        except watches.TooManyWatches as error:
            raise CallerFault(
                "bad_input",
                f"You follow {error.most} wallets, the maximum: unfollow_wallet one of them first.",
            ) from None
        by_wallet = {follow.wallet: follow for follow in await watches.follows_of(connection, account.id)}
    follow, follows = by_wallet[wallet], len(by_wallet)
    name_text = f', called "{follow.name}"' if follow.name else ""
    answer = FollowedWallet(
        text=f"You follow {wallet}{name_text}. Its buys, sells and launches after block "
        f"{follow.from_number:,} go to your inbox and your channels. {_count_text(follows)}",
        address=wallet,
        name=follow.name or None,
        follows=follows,
        from_block=follow.from_number,
    )
    return UseCaseAnswer(answer)


async def unfollow_wallet(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[Unfollowed]:
    """Ends following a wallet. Raises CallerFault (bad_address), ServiceFull."""
    wallet, now = params.wallet(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        was_followed = await watches.end_follow(connection, account.id, wallet, now)
        follows = len(await watches.follows_of(connection, account.id))
    text = f"You no longer follow {wallet}." if was_followed else f"You did not follow {wallet}."
    return UseCaseAnswer(Unfollowed(f"{text} {_count_text(follows)}", wallet, was_followed, follows))


async def _current_name(connection: Connection, account: Account, wallet: Address) -> str:
    """The account's name for the wallet; empty if it has none."""
    follows = await watches.follows_of(connection, account.id)
    return next((follow.name for follow in follows if follow.wallet == wallet), "")


def _count_text(follows: int) -> str:
    return f"You follow {format_count(follows, 'wallet')} now; {MAX_FOLLOWS} are possible."
