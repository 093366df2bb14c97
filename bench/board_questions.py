"""The questions that ``bench.boards`` asks a filled index, and the wallets and tokens that they are about.

A question is a use case's handler, or a read that a use case makes, with arguments drawn by seed. Half of the
arguments traded last, so they are more often busy ones; a fifth are the heaviest.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from roundtrip.domain.base.types import Address
from roundtrip.services.boards.chain_vitals import chain_vitals
from roundtrip.services.boards.graduating_soon import graduating_soon
from roundtrip.services.boards.moving_now import MovingParams, moving_now, moving_page
from roundtrip.services.boards.signals import signals
from roundtrip.services.boards.winners import winners
from roundtrip.services.engine.token_check import read_index
from roundtrip.services.lookup.look_up import find
from roundtrip.services.lookup.look_up_answer import LookUpParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.linked import linked_wallets
from roundtrip.store.boards import winners as winners_store
from roundtrip.store.check import token_index
from roundtrip.store.index import cursor, deployers, tokens
from roundtrip.store.server.rows import Connection, as_bytes
from support.hex_columns import as_address

HEAVY = 20
"""Of each kind the so many heaviest."""
DRAWN = 400


@dataclass(frozen=True, slots=True)
class Sample:
    """The subjects of questions; each list is shuffled. ``..._heavy``: the heaviest first. ``ids``: how the
    database numbers them."""

    wallets: list[Address]
    wallets_heavy: list[Address]
    deployers: list[Address]
    deployers_heavy: list[Address]
    tokens: list[Address]
    tokens_heavy: list[Address]
    symbols: list[str]
    symbols_heavy: list[str]
    ids: dict[Address, int]


_TRADED = """
SELECT DISTINCT ON (n) n, trade.trader_id, pool.token_id FROM generate_series(1, $1::int) AS n
CROSS JOIN LATERAL (SELECT ($2::int - 86400 * power(n::float / $1, 2))::int AS at_s) AS moment
CROSS JOIN LATERAL (
    SELECT trader_id, pool_id FROM facts.trade WHERE trade.at_s <= moment.at_s
    ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC LIMIT 1
) AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id
"""
_HEAVY_WALLETS = (
    "SELECT wallet_id FROM facts.position GROUP BY wallet_id ORDER BY sum(buys + sells) DESC LIMIT $1"
)
_HEAVY_FUNDERS = (
    "SELECT funder_id FROM facts.origin WHERE funder_id IS NOT NULL"
    " GROUP BY funder_id ORDER BY count(*) DESC LIMIT $1"
)
_HEAVY_DEPLOYERS = "SELECT deployer_id FROM facts.launch GROUP BY deployer_id ORDER BY count(*) DESC LIMIT $1"
_HEAVY_TOKENS = "SELECT token_id FROM facts.position GROUP BY token_id ORDER BY count(*) DESC LIMIT $1"
_MANY_POOLS = "SELECT token_id FROM facts.pool GROUP BY token_id ORDER BY count(*) DESC LIMIT $1"
_HEAVY_SYMBOLS = "SELECT symbol FROM facts.token GROUP BY symbol ORDER BY count(*) DESC LIMIT $1"


async def sample(connection: Connection, chance: random.Random) -> Sample:
    """Draws the subjects of questions."""
    [(newest_s, last)] = await connection.fetch(
        "SELECT at_s, (SELECT max(wallet_id) FROM facts.origin) FROM facts.cursor"
    )
    traded = await connection.fetch(_TRADED, DRAWN, newest_s)
    launches = await connection.fetch(
        "SELECT token_id, deployer_id FROM facts.launch ORDER BY md5(token_id::text) LIMIT $1", DRAWN
    )
    symbols = await connection.fetch("SELECT symbol FROM facts.token ORDER BY md5(token) LIMIT $1", DRAWN)

    async def ids(statement: str) -> list[int]:
        return [row[0] for row in await connection.fetch(statement, HEAVY)]

    wallets_heavy = await ids(_HEAVY_WALLETS) + (await ids(_HEAVY_FUNDERS))[: HEAVY // 2]
    deployers_heavy = await ids(_HEAVY_DEPLOYERS)
    tokens_heavy = await ids(_HEAVY_TOKENS) + (await ids(_MANY_POOLS))[:5]
    wallets = [row["trader_id"] for row in traded] + [chance.randint(1, last) for _ in range(DRAWN // 2)]
    found_tokens = [row["token_id"] for row in traded] + [row["token_id"] for row in launches[: DRAWN // 2]]
    found_deployers = [row["deployer_id"] for row in launches]
    everybody = {*wallets, *wallets_heavy, *found_tokens, *tokens_heavy, *found_deployers, *deployers_heavy}
    rows = await connection.fetch(
        "SELECT id, address FROM facts.address WHERE id = ANY($1::int[])", list(everybody)
    )
    at = {row["id"]: as_address(row["address"]) for row in rows}
    for some in (wallets, found_tokens, found_deployers):
        chance.shuffle(some)

    def named(numbers: list[int]) -> list[Address]:
        return [at[number] for number in numbers if number in at]

    return Sample(
        named(wallets), named(wallets_heavy), named(found_deployers), named(deployers_heavy),
        named(found_tokens), named(tokens_heavy), [row["symbol"] for row in symbols],
        [row[0] for row in await connection.fetch(_HEAVY_SYMBOLS, HEAVY)],
        {address: number for number, address in at.items()},
    )  # fmt: skip


Draw = Callable[[Sample, random.Random], Any]
Ask = Callable[[Context, Any], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Question:
    """``draw``: an argument; ``ask``: what is timed with it."""

    name: str
    ask: Ask
    draw: Draw = lambda found, chance: None


def wallet(found: Sample, chance: random.Random) -> Address:
    """One in five is one of the heaviest."""
    return chance.choice(found.wallets_heavy if chance.random() < 0.2 else found.wallets)


def token(found: Sample, chance: random.Random) -> Address:
    """The same of tokens."""
    return chance.choice(found.tokens_heavy if chance.random() < 0.2 else found.tokens)


def deployer(found: Sample, chance: random.Random) -> Address:
    """The same of deployers."""
    return chance.choice(found.deployers_heavy if chance.random() < 0.2 else found.deployers)


def symbol(found: Sample, chance: random.Random) -> str:
    """Half of them stand on thousands of tokens."""
    return chance.choice(found.symbols_heavy if chance.random() < 0.5 else found.symbols)


def ids(
    one: Callable[[Sample, random.Random], Address], count: int
) -> Callable[[Sample, random.Random], list[int]]:
    """So many of a kind, by their numbers."""
    return lambda found, chance: [found.ids[one(found, chance)] for _ in range(count)]


# --- the questions ---------------------------------------------------------------------------------


async def _one_row(ctx: Context, at: Address) -> object:
    async with ctx.pool.acquire() as connection:
        return await connection.fetchval("SELECT id FROM facts.address WHERE address = $1", as_bytes(at))


async def _index(ctx: Context, at: Address) -> object:
    return await read_index(ctx, at, bytes(32), holders=False)


async def _records(ctx: Context, wallet_ids: list[int]) -> object:
    async with ctx.pool.acquire() as connection:
        return await deployers.records(connection, wallet_ids)


async def _labels(ctx: Context, token_ids: list[int]) -> object:
    async with ctx.pool.acquire() as connection:
        return await tokens.labels(connection, token_ids)


def board(handler: Callable[[Context, Nothing], Awaitable[UseCaseAnswer[Any]]]) -> Ask:
    """A board's use case."""
    return lambda ctx, _: handler(ctx, Nothing())


def about(handler: Callable[[Context, WalletParams], Awaitable[UseCaseAnswer[Any]]]) -> Ask:
    """A use case about a wallet."""
    return lambda ctx, at: handler(ctx, WalletParams(at))


async def _looked_up(ctx: Context, query: str) -> object:
    return await find(ctx, LookUpParams(query))


async def _holders(ctx: Context, token_ids: list[int]) -> object:
    async with ctx.pool.acquire() as connection:
        most = ctx.policy.most_holders
        return await token_index.traders_holding(connection, token_ids[0], frozenset(), bytes(32), most)


async def count_winners(connection: Connection) -> object:
    """The board of a day, as the job counts and keeps it."""
    async with connection.transaction():
        stands = await cursor.cursor(connection)
        assert stands is not None
        if await winners_store.counted_to(connection):
            return None
        counted = await winners_store.count_board(connection, "24h", stands.block)
        return await winners_store.keep(connection, counted, stands)


PREPARED: tuple[Callable[[Connection], Awaitable[object]], ...] = (count_winners,)
"""What jobs would have done by then, of each database before it is asked."""

REFERENCE = Question("one row by its key", _one_row, wallet)
"""What nothing can be quicker than: measured beside everything else."""

QUESTIONS = (
    Question("moving_now", board(moving_now)),
    Question("the page of what moves", lambda ctx, _: moving_page(ctx, MovingParams())),
    Question("the same with a day's trades", lambda ctx, _: moving_page(ctx, MovingParams("24h"))),
    Question("graduating_soon", board(graduating_soon)),
    Question("winners", board(winners)),
    Question("signals", board(signals)),
    Question("chain_vitals", board(chain_vitals)),
    Question("wallet_history", about(wallet_history), wallet),
    Question("wallet_history of a deployer", about(wallet_history), deployer),
    Question("linked_wallets", about(linked_wallets), wallet),
    Question("look_up: a symbol", _looked_up, symbol),
    Question("look_up: a token", _looked_up, token),
    Question("look_up: a wallet", _looked_up, wallet),
    Question("check: all of a token", _index, token),
    Question("check: record of a deployer", _records, ids(deployer, 1)),
    Question("deep check: who holds it", _holders, ids(token, 1)),
    Question("records of 20 deployers", _records, ids(deployer, 20)),
    Question("labels of 50 tokens", _labels, ids(token, 50)),
)
