"""Public names as they are counted: what the rules say, and only what has changed is written."""

import random
from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import OLD, name_key
from roundtrip.domain.market.fairness import Fairness, WalletOrigin, WalletOrigins
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.names import EVERY_S
from roundtrip.jobs.registry import KINDS
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import wallet_names
from roundtrip.store.boards.moving import read_origins
from roundtrip.store.community import public_names
from roundtrip.store.index import tokens
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from support.databases import needs_one_server
from support.flagged import OTHER, FlagGround
from support.hex_columns import as_address
from support.marking import STRANGERS, all_say, marked, read_names
from support.marks_rules import WalletMark, public_marks
from support.told_winners import BUYERS, buys
from unit.venues.network import address


async def test_what_is_taken_back_is_public_no_more_and_what_stays_is_not_written_again(
    ground: FlagGround,
) -> None:
    await all_say(ground, *STRANGERS, name="Old fox", mark="bad")
    await all_say(ground, *BUYERS[3:6], about=BUYERS[10], mark="bad")
    await read_names(ground)
    before = await ground.index.fetch("SELECT xmin, * FROM accounts.public_name ORDER BY 2, 3, 4")
    assert len(before) == 3
    await read_names(ground)
    assert await ground.index.fetch("SELECT xmin, * FROM accounts.public_name ORDER BY 2, 3, 4") == before
    await ground.index.execute("UPDATE accounts.mark SET name = NULL, name_key = NULL")
    (first, second) = (await read_names(ground)).rows
    assert [(row.names, len(row.marks)) for row in (first, second)] == [([], 1), ([], 1)]
    await ground.index.execute("DELETE FROM accounts.mark")
    assert (await read_names(ground)).rows == []


async def test_the_job_counts_and_wishes_for_itself(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS, name="Old fox")
    await jobs.enqueue(ground.index, "names", "public")
    worker = Worker(ground.ctx, {"names": KINDS["names"]}, lambda: 0.5)
    for run in await worker.take():
        await run
    assert len((await wallet_names(ground.ctx, Nothing())).answer.rows) == 1
    wished = await jobs.to_come(ground.index, "names", "public")
    assert wished is not None
    assert wished[0].timestamp() >= ground.ctx.now_s() + EVERY_S
    assert wished[1] is None


async def test_without_an_index_the_job_leaves_what_was_public(ground: FlagGround) -> None:
    await all_say(ground, *STRANGERS, name="Old fox")
    await read_names(ground)
    await ground.index.execute("DELETE FROM facts.cursor")
    await ground.count_names()
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.public_name") == 1


@needs_one_server
@pytest.mark.parametrize("seed", range(12))
async def test_what_is_counted_is_what_the_rules_say(ground: FlagGround, seed: int) -> None:
    """Marks strewn over wallets whose origins are strewn, too."""
    dice = random.Random(seed)
    wallets = [*BUYERS[:8], *(address(0xD00 + n) for n in range(12))]
    await ground.block(*(buys(one, 0.1, OTHER) for one in wallets[8:16]))
    numbers = await tokens.ids_of(ground.index, wallets)
    # In an order of its own: what is drawn of it is the same each time.
    known = {one: numbers[one] for one in wallets if one in numbers}
    await ground.index.execute("DELETE FROM facts.origin WHERE wallet_id = ANY($1)", list(known.values()))
    at_s = ground.at.timestamp_s
    for wallet in wallets:
        number = known.get(wallet)
        if number is None or dice.random() < 0.2:
            continue
        funder = dice.choice([None, None, *known.values()])
        first_s = at_s - dice.choice((0, 86_399, 86_400, 90_000, 200_000))
        paid_s = None if funder is None else first_s
        await ground.index.execute(
            "INSERT INTO facts.origin VALUES ($1, 1, $2, $3, 1, $4)", number, first_s, funder, paid_s
        )
    for n, wallet in enumerate(wallets):
        account = await ground.account(wallet, f"mite-{n}", dice.choice((30, 30, 6.9, 7)))
        for target in wallets:
            result = {
                "name": dice.choice((None, "Fox", "fox", "F ox", "Wolf")),
                "mark": dice.choice(("bad", None)),
            }
            if target != wallet and (result["name"] or result["mark"]):
                await marked(ground, account, target, **result)
    fairness = Fairness(most_funded=dice.choice((0, 2, 500)))
    made_before = datetime.fromtimestamp(at_s, UTC) - OLD
    async with ground.index.transaction():
        await public_names.count(ground.index, made_before, at_s, fairness)
    slow = public_marks(*await given(ground.index, made_before, fairness), at_s)
    assert await public_names.first(ground.index, 100) == slow
    assert slow
    for name in ("fox", "wolf"):
        borne = [
            (one.wallet, result.people)
            for one in slow
            for result in one.names
            if name_key(result.what) == name
        ]
        found = await public_names.bearers(ground.index, name, 100)
        assert [(one.wallet, one.people) for one in found] == sorted(borne, key=lambda one: (-one[1], one[0]))


async def given(
    connection: Connection, made_before: datetime, fairness: Fairness
) -> tuple[list[WalletMark], WalletOrigins[Address]]:
    """What accounts of age, whose wallets have traded, said, and what is known of all of them."""
    rows = await connection.fetch(
        "SELECT mark.wallet, account.wallet AS by, mark.name, mark.mark FROM accounts.mark AS mark"
        " JOIN accounts.account AS account ON account.id = mark.account_id AND account.made_at <= $1"
        " JOIN facts.address AS own ON own.address = account.wallet"
        " WHERE EXISTS (SELECT FROM facts.position AS position WHERE position.wallet_id = own.id)",
        made_before,
    )
    text = [
        WalletMark(as_address(row["wallet"]), as_address(row["by"]), row["name"], row["mark"]) for row in rows
    ]
    ids = {
        row["id"]: as_address(row["address"]) for row in await connection.fetch("SELECT * FROM facts.address")
    }
    found = await read_origins(connection, list(ids), fairness)
    origins = {
        ids[number]: WalletOrigin(one.first_s, None if one.funder is None else ids[one.funder], one.funded_s)
        for number, one in found.origins.items()
    }
    funded = {ids[number]: paid for number, paid in found.funded.items()}
    return text, WalletOrigins(origins, funded, fairness)
