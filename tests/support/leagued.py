"""Accounts in the league, and an index in which it is known which of their sells count."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.practice.practice import Who, monday_s
from roundtrip.store.accounts import accounts
from roundtrip.store.boards import fair_tokens
from roundtrip.store.practice import league
from roundtrip.store.practice.league import LeagueRank
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection
from support.made_index import MadeIndex, number_address
from support.tables import emptied
from support.told_blocks import START_S
from unit.venues.logs import NETWORK

DAY_S = 86_400
NUMBER = 3 * DAY_S
"""The newest block: three days after block 0, a block a second."""
NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)
"""A Thursday."""
WEEK_S = monday_s(int(NOW.timestamp()))
TOKEN, YOUNG, QUOTE = number_address(0x70CE), number_address(0x70CF), number_address(0xE)
DEPLOYER, FUNDER = number_address(0xDE), number_address(0xF0)
BUYERS = tuple(number_address(0xB000 + n) for n in range(20))


def block(number: int = NUMBER) -> BlockRef:
    return BlockRef(number, "0x" + "77" * 32, START_S + number)


def curve_of(token: Address) -> str:
    """Where ``MadeIndex.launch`` has it."""
    return "0x" + "00" * 12 + token[2:]


async def new_account(connection: Connection, wallet: Address | None = None) -> Account:
    """An account of a wallet that stands in no fact, or of this one."""
    wallet = wallet or Address("0x" + secrets.token_hex(20))
    names = [f"mite-{secrets.token_hex(8)}"]
    return (await accounts.lock_account(connection, wallet, names, NOW)).account


@dataclass(slots=True)
class Leagued:
    """An index with a token of two days that twenty people bought, by a deployer whom nobody is kin of."""

    connection: Connection

    @property
    def index(self) -> MadeIndex:
        return MadeIndex(self.connection)

    async def emptied(self) -> "Leagued":
        """Of every fact, and of everybody's weeks."""
        await emptied(self.connection)
        await self.connection.execute("TRUNCATE accounts.league_week, accounts.league_count")
        return self

    async def made(self) -> "Leagued":
        """In place of all that was there."""
        await self.emptied()
        await self.index.begin(0, NUMBER)
        await self.launched(TOKEN, DAY_S)
        await self.bought(TOKEN, *BUYERS)
        return self

    async def launched(self, token: Address, number: int, deployer: Address = DEPLOYER) -> None:
        await self.index.launch(token, deployer, QUOTE, block_number=number, at_s=START_S + number)

    async def met(self, *wallets: Address, at_s: int = START_S - DAY_S) -> None:
        """Old wallets of which nobody knows who paid them."""
        for wallet in wallets:
            await self.connection.execute(
                "INSERT INTO facts.origin VALUES ($1, 1, $2, NULL, NULL, NULL) ON CONFLICT DO NOTHING",
                await self.index.id_of(wallet),
                at_s,
            )

    async def bought(self, token: Address, *wallets: Address) -> None:
        """By wallets that are old unless something else is known of them."""
        await self.met(*wallets)
        for wallet in wallets:
            await self.index.position(wallet, token, buys=1)

    async def sells(
        self,
        account: Account,
        profit_wei: int = 10**18,
        token: Address = TOKEN,
        number: int = NUMBER,
        later: timedelta = timedelta(0),
        venue: str | None = None,
        bought_at: str | None = None,
    ) -> str | None:
        """A practice sell priced at a block; on the token's curve, if nothing else is told."""
        where = {"venue": venue or curve_of(token), "contracts": NETWORK, "bought_at": bought_at}
        at = block(number)
        return await league.count_sell(self.connection, account, token, profit_wei, at, NOW + later, **where)  # type: ignore[arg-type]

    async def keep(self, token: Address) -> None:
        """As the job of the winners does it."""
        await fair_tokens.store_fair(self.connection, [await self.index.id_of(token)], NUMBER)

    async def opened(
        self, token: Address, at: str, number: int, kind: str = "amm_v3", tick_spacing: int = 60
    ) -> int:
        """A pool in which the token is traded for what its launch was made against; its number."""
        found: int = await self.connection.fetchval(
            "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
            " block_number, log_index, at_s) VALUES ($1, $2, $3, $4, 0, 0, $5, $6, 1, $7) RETURNING id",
            bytes.fromhex(at[2:]),
            kind,
            await self.index.id_of(token),
            await self.index.id_of(QUOTE),
            tick_spacing,
            number,
            START_S + number,
        )
        return found

    async def traded(self, pool_id: int, wallet: Address, number: int, wei: int = 10**18) -> None:
        """A buy there."""
        at_s = START_S + number
        await partitions.ensure(self.connection, "facts.trade", at_s, at_s)
        await self.connection.execute(
            "INSERT INTO facts.trade (at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
            " quote_raw, tx_hash) VALUES ($1, $2, 500, $3, $4, true, 1, $5, $6)",
            at_s,
            number,
            pool_id,
            await self.index.id_of(wallet),
            wei,
            bytes(32),
        )

    async def board(self, who: Who = "all", week: int = WEEK_S) -> list[LeagueRank]:
        return list(await league.board(self.connection, week, who, 100))

    async def kept(self) -> list[tuple[Address, int]]:
        """Tokens that are kept as fair, and from which block on."""
        rows = await self.connection.fetch(
            "SELECT address.address, fair.block_number FROM facts.fair_token AS fair"
            " JOIN facts.address AS address ON address.id = fair.token_id ORDER BY 1"
        )
        return [(Address("0x" + row["address"].hex()), row["block_number"]) for row in rows]
