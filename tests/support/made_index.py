"""An index made by hand, row by row: what no chain of tests ever does."""

from dataclasses import dataclass
from typing import Any

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.profit import EMPTY, WalletPosition
from roundtrip.store.index import cursor
from roundtrip.store.index.positions import PositionKey, put_positions
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection, as_bytes
from support.told_blocks import START_S

ETH = 10**18
ZEROS = bytes(32)


@dataclass(slots=True)
class MadeIndex:
    """Writes rows of facts. Trades are of block ``number``, which is of the second ``START_S + number``."""

    connection: Connection

    async def id_of(self, address: str) -> int:
        found: int = await self.connection.fetchval(
            "INSERT INTO facts.address (address) VALUES ($1)"
            " ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING id",
            as_bytes(address),
        )
        return found

    async def funded(self, wallet: str, funder: str, at_s: int = START_S) -> None:
        """Its first eth."""
        await self.connection.execute(
            "INSERT INTO facts.origin VALUES ($1, 1, $3, $2, 1, $3)",
            await self.id_of(wallet),
            await self.id_of(funder),
            at_s,
        )

    async def crowd(self, funder: str, count: int) -> None:
        """So many wallets that nobody knows had their first eth of it."""
        await self.connection.execute(
            "INSERT INTO facts.origin SELECT 1000000 + n, 1, 1, $1, 1, 1 FROM generate_series(1, $2) n",
            await self.id_of(funder),
            count,
        )

    async def pool(self, token: str, quote: str) -> int:
        """A curve of the token's own; its number."""
        found: int = await self.connection.fetchval(
            "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
            " block_number, log_index, at_s) VALUES ($1, 'launchpad_curve', $2, $3, 0, 0, 0, 1, 1, 1)"
            " ON CONFLICT (at) DO UPDATE SET at = excluded.at RETURNING id",
            ZEROS[:12] + as_bytes(token),
            await self.id_of(token),
            await self.id_of(quote),
        )
        return found

    async def launch(self, token: str, deployer: str, quote: str, **more: Any) -> None:
        """A launch on that curve. ``more``: columns."""
        await self.pool(token, quote)
        columns = {
            "token_id": await self.id_of(token),
            "generation": 2,
            "deployer_id": await self.id_of(deployer),
            "sender_id": 1,
            "quote_id": await self.id_of(quote),
            "at": ZEROS[:12] + as_bytes(token),
            "block_number": 1,
            "log_index": 1,
            "at_s": START_S,
            "tx_hash": ZEROS,
            **more,
        }
        places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
        await self.connection.execute(
            f"INSERT INTO facts.launch ({', '.join(columns)}) VALUES ({places})",  # noqa: S608
            *columns.values(),
        )

    async def step(self, token: str, step: str, number: int) -> None:
        """What became of a launch in block ``number``."""
        await self.connection.execute(
            "INSERT INTO facts.launch_step VALUES ($1, 0, $2, $3, $4, NULL, NULL, $5)",
            number,
            START_S + number,
            await self.id_of(token),
            step,
            ZEROS,
        )

    async def trade(
        self,
        token: str,
        wallet: str,
        number: int,
        quote: str,
        wei: int = ETH,
        buys: bool = True,
        at_s: int = 0,
    ) -> str:
        """A trade of 10^18 units of the token; its transaction's hash."""
        at = at_s or START_S + number
        await partitions.ensure(self.connection, "facts.trade", at, at)
        log_index: int = await self.connection.fetchval("SELECT count(*) FROM facts.trade")
        hash_ = number.to_bytes(16, "big") + log_index.to_bytes(16, "big")
        await self.connection.execute(
            "INSERT INTO facts.trade (at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
            " quote_raw, tx_hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            at,
            number,
            log_index,
            await self.pool(token, quote),
            await self.id_of(wallet),
            buys,
            ETH,
            wei,
            hash_,
        )
        return "0x" + hash_.hex()

    async def position(self, wallet: str, token: str, **fields: Any) -> None:
        """What the wallet made of the token."""
        key = PositionKey(await self.id_of(wallet), await self.id_of(token))
        found: WalletPosition = EMPTY._replace(**fields)
        await put_positions(self.connection, {key: found})

    async def many_positions(self, wallet: str, count: int) -> None:
        """It bought so many tokens that nobody knows."""
        wallet_id = await self.id_of(wallet)
        found = {PositionKey(wallet_id, 1_000_000 + n): EMPTY._replace(buys=1) for n in range(count)}
        await put_positions(self.connection, found)

    async def begin(self, start: int, number: int) -> None:
        """The index knows every block from ``start`` to ``number``."""
        ref = BlockRef(number, "0x" + "77" * 32, START_S + number)
        await cursor.begin(self.connection, start, ref)

    async def named(self, token: str, symbol: str, decimals: int, supply_raw: int) -> None:
        """What the token says of itself."""
        await self.connection.execute(
            "INSERT INTO facts.token (token, symbol, decimals, supply_raw, read_number)"
            " VALUES ($1, $2, $3, $4, 1)",
            as_bytes(token),
            symbol,
            decimals,
            supply_raw,
        )


def number_address(number: int) -> Address:
    """Somebody, by a number."""
    return Address(f"0x{number:040x}")
