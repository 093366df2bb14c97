"""Ten thousand launches by few wallets within two minutes: the index takes them, and answers stay bounded."""

from roundtrip.store.boards import signals
from roundtrip.store.index import curves
from roundtrip.store.server.rows import Connection
from support.tables import append_blocks, begin_index
from support.told_blocks import START_S, Chain, bought, launched, sent
from unit.venues.network import address

LAUNCHES, A_BLOCK, WALLETS = 10_000, 100, 20


def flood() -> Chain:
    """Every launch is bought once by who made it, as one who wants to stand on a board would."""
    made = Chain()
    for first in range(0, LAUNCHES, A_BLOCK):
        transactions = []
        for number in range(first, first + A_BLOCK):
            token, curve = address(0x10_0000 + number), address(0x20_0000 + number)
            deployer = address(0x30_0000 + number % WALLETS)
            logs = launched(token, curve, deployer), bought(curve, deployer, deployer, 10**15, 10**20)
            transactions.append(sent(*logs, sender=deployer, value_wei=10**15))
        made.block(*transactions)
    return made


async def test_ten_thousand_launches_are_taken_and_told_of_within_bounds(connection: Connection) -> None:
    made = flood()
    await append_blocks(connection, await begin_index(connection, made.parent), made.blocks, at_once=(10,))
    assert await connection.fetchval("SELECT count(*) FROM facts.launch") == LAUNCHES
    assert await connection.fetchval("SELECT count(*) FROM facts.trade") == LAUNCHES
    jobs = await connection.fetch("SELECT kind, count(*) FROM jobs.job GROUP BY kind")
    assert all(row["count"] <= LAUNCHES for row in jobs), "of each kind one job a token"
    assert len(await curves.fullest(connection, START_S, 20)) == 20
    assert 0 < len(await signals.launchers(connection, START_S)) <= WALLETS
