"""Winners counted slowly and obviously, out of every row of facts; and facts strewn at random."""

import random
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import asyncpg

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.domain.market.fairness import Fairness, WalletOrigin
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.boards.winners import RankedClosings
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection, as_bytes
from support.hex_columns import as_address
from support.tables import emptied
from support.winner_rules import ClosedToken, RankedWinner, TokenStart, Wallets, board


class Facts:
    """What the tables say, read whole."""

    def __init__(self, tables: dict[str, list[asyncpg.Record]], fairness: Fairness) -> None:
        self._names = {row["id"]: as_address(row["address"]) for row in tables["address"]}
        name = self._names
        self.at_s: int = tables["cursor"][0]["at_s"]
        self.wallets = Wallets(
            {
                name[row["wallet_id"]]: WalletOrigin(
                    row["first_s"], name.get(row["funder_id"]), row["funded_s"]
                )
                for row in tables["origin"]
            },
            Counter(name[row["funder_id"]] for row in tables["origin"] if row["funder_id"] is not None),
            fairness,
        )
        self.begun: dict[Address, TokenStart] = {}
        for row in sorted(tables["pool"], key=lambda row: -row["at_s"]):
            if row["in_money_from"] is not None:
                self.begun[name[row["token_id"]]] = TokenStart(row["at_s"], None)
        for row in tables["launch"]:
            self.begun[name[row["token_id"]]] = TokenStart(row["at_s"], name[row["deployer_id"]])
        self.buyers: dict[Address, set[Address]] = {}
        for row in tables["position"]:
            if row["buys"] > 0:
                self.buyers.setdefault(name[row["token_id"]], set()).add(name[row["wallet_id"]])
        self.kept_fair = {name[row["token_id"]] for row in tables["fair_token"]}
        self.closings = [
            ClosedToken(
                Spot(row["block_number"], row["log_index"], row["at_s"], TxHash("")),
                name[row["wallet_id"]],
                name[row["token_id"]],
                int(row["spent_wei"]),
                int(row["got_wei"]),
            )
            for row in tables["closing"]
        ]

    def of(self, span: str) -> list[ClosedToken]:
        """What was closed in a span, fair or not."""
        seconds = SPANS[span]
        return [one for one in self.closings if seconds is None or one.spot.at_s > self.at_s - seconds]

    def fair(self, span: str) -> set[Address]:
        """The fair tokens among them."""
        return {token for token in {one.token for one in self.of(span)} if self._is_fair(token)}

    def winners(self, span: str) -> list[RankedWinner]:
        fair = self.fair(span)

        def counts(one: ClosedToken) -> bool:
            begun = self.begun.get(one.token)
            deployer = None if begun is None else begun.deployer
            return one.token in fair and not self.wallets.is_kin(one.wallet, deployer)

        return board(self.of(span), counts)

    def ranked_rows(self, rows: Iterable[RankedClosings]) -> list[tuple[object, ...]]:
        """What was counted elsewhere, as ``plain`` has winners."""
        return [
            (
                row.wallet, row.profit_wei, row.spent_wei, row.closed, row.won,
                self._names[row.best_token_id], row.best_spent_wei, row.best_got_wei, row.best_s,
            )
            for row in rows
        ]  # fmt: skip

    def names(self, ids: Iterable[int]) -> set[Address]:
        return {self._names[one] for one in ids}

    def _is_fair(self, token: Address) -> bool:
        if token in self.kept_fair:
            return True
        begun = self.begun.get(token)
        return begun is not None and self.wallets.is_fair(begun, self.buyers.get(token, set()), self.at_s)


def plain(winners: Iterable[RankedWinner]) -> list[tuple[object, ...]]:
    """Everything of a winner that a row of the board has."""
    return [
        (
            one.wallet, one.profit_wei, one.spent_wei, one.closed, one.won, one.best.token,
            one.best.spent_wei, one.best.got_wei, one.best.spot.at_s,
        )
        for one in winners
    ]  # fmt: skip


async def facts(connection: Connection, fairness: Fairness) -> Facts:
    names = ("address", "cursor", "origin", "pool", "launch", "position", "fair_token", "closing")
    tables = {name: await connection.fetch(f"SELECT * FROM facts.{name}") for name in names}  # noqa: S608
    return Facts(tables, fairness)


# --- strewn ----------------------------------------------------------------------------------------

_NEWEST, _BLOCK_S, _START_S = 999, 400, 1_760_000_000
"""A thousand blocks of four days and a half."""
_APART = 27
"""Things happen in every 27th block only. A day is eight times as long: much is a day apart to the second."""
_WALLETS, _TOKENS = range(1, 41), range(41, 51)


def block(number: int) -> BlockRef:
    """A block of the chain that strewn facts are of."""
    return BlockRef(number, f"0x{number:064x}", _START_S + number * _BLOCK_S)


def row_of(at: BlockRef) -> tuple[int, bytes, int]:
    """Number, hash and time as the database has them."""
    return at.number, as_bytes(at.hash), at.timestamp_s


async def strewn(connection: Connection, dice: random.Random) -> BlockRef:
    """Facts of forty wallets and ten tokens that need not agree with each other, in place of all others. The
    newest block."""
    await emptied(connection)
    newest = block(_NEWEST)
    await cursor.begin(connection, 0, newest)
    await connection.executemany(
        "INSERT INTO facts.block VALUES ($1, $2, $3)", [row_of(block(n)) for n in range(_NEWEST + 1)]
    )
    addresses = [(one, dice.randbytes(20)) for one in (*_WALLETS, *_TOKENS)]
    await connection.executemany(
        "INSERT INTO facts.address (id, address) OVERRIDING SYSTEM VALUE VALUES ($1, $2)", addresses
    )
    await connection.executemany(
        "INSERT INTO facts.origin VALUES ($1, $2, $3, $4, $5, $6)",
        [_origin(dice, one) for one in _WALLETS if dice.random() < 0.9],
    )
    await _strew_tokens(connection, dice)
    await connection.executemany(
        "INSERT INTO facts.position SELECT $1, $2, 0, 0, 0, 0, 0, 0, 0, 0, $3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
        [
            (wallet, token, int(dice.random() < 0.9))
            for token in _TOKENS
            for wallet in dice.sample(_WALLETS, dice.randrange(0, 12))
        ],
    )
    await connection.executemany(
        "INSERT INTO facts.closing VALUES ($1, $2, $3, $4, $5, $6, $7)",
        [_closing(dice, log_index) for log_index in range(dice.randrange(120))],
    )
    await connection.executemany(
        "INSERT INTO facts.fair_token VALUES ($1, $2)",
        [(token, dice.randrange(0, _NEWEST, _APART)) for token in dice.sample(_TOKENS, dice.randrange(3))],
    )
    return newest


def _origin(dice: random.Random, wallet: int) -> tuple[int | None, ...]:
    met, funder = block(dice.randrange(0, _NEWEST, _APART)), dice.choice((*[None] * 25, 1, 1, 2, *_WALLETS))
    if funder is None or funder == wallet:
        return (wallet, met.number, met.timestamp_s, None, None, None)
    paid = block(met.number + dice.randrange(0, _NEWEST - met.number + 1, _APART))
    return (wallet, met.number, met.timestamp_s, funder, paid.number, paid.timestamp_s)


async def _strew_tokens(connection: Connection, dice: random.Random) -> None:
    for token in _TOKENS:
        if dice.random() < 0.6:
            number = dice.randrange(0, _NEWEST, _APART)
            await connection.execute(
                "INSERT INTO facts.launch VALUES ($1, 2, $2, 1, 1, '', NULL, $3, 0, $4, '')",
                token, dice.choice(_WALLETS), number, block(number).timestamp_s,
            )  # fmt: skip
        for _ in range(dice.choice((0, 1, 1, 2))):
            number = dice.randrange(0, _NEWEST, _APART)
            await connection.execute(
                "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
                " block_number, log_index, at_s) VALUES ($1, 'amm_v3', $2, 1, $3, 0, 0, $4, 0, $5)",
                dice.randbytes(20), token, dice.choice((None, number, number, number)), number,
                block(number).timestamp_s,
            )  # fmt: skip


def _closing(dice: random.Random, log_index: int) -> tuple[int | Decimal, ...]:
    at = block(dice.randrange(0, _NEWEST + 1, _APART))
    whose = dice.choice(_WALLETS), dice.choice(_TOKENS)
    spent, got = Decimal(dice.randrange(6)), Decimal(dice.randrange(9))
    scale = Decimal(dice.choice((1, 1, 10**30)))
    return (at.number, log_index, at.timestamp_s, *whose, spent * scale, got * scale)
