"""What a soak asks for: the local chain's tokens and what is true of them, and what the index knows."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from eth_account import Account
from eth_account.messages import encode_defunct

from roundtrip.store.server.rows import Connection

from .soak_mix import Plan

KEYS, TRADES, MAX_OF_A_SORT, MIN_SYMBOLS = 20, 12, 300, 20
VERDICTS = Path(__file__).resolve().parents[1] / "tests/evidence/verdicts.md"
_ROW = re.compile(r"^\| (\w+) \| \w+ \| (ok|danger) \|", re.M)
_LAUNCHED = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.launch JOIN facts.address ON address.id = token_id
ORDER BY launch.token_id DESC LIMIT $1
"""
_TRADERS = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.trade JOIN facts.address ON address.id = trader_id
GROUP BY address.address ORDER BY count(*) DESC LIMIT $1
"""
_HASHES = "SELECT '0x' || encode(tx_hash, 'hex') FROM facts.trade ORDER BY at_s DESC LIMIT $1"
_SYMBOLS = "SELECT DISTINCT symbol FROM facts.token WHERE symbol ~ '^[A-Z]{2,10}$' LIMIT $1"


async def plan_for(port: int, database_url: str, folder: Path) -> Plan:
    """Asked of a service that runs, once its index is there."""
    described = json.loads((folder / "devnet.json").read_text())
    tokens: dict[str, str] = described["tokens"]
    truths = dict(_ROW.findall(VERDICTS.read_text()))
    connection = await asyncpg.connect(database_url)
    try:
        async with asyncio.timeout(60):
            # Symbols are read by jobs, once the index is there.
            while len(symbols := await _column(connection, _SYMBOLS)) < MIN_SYMBOLS:  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        launched = await _column(connection, _LAUNCHED)
        wallets = await _column(connection, _TRADERS)
        transactions = await _column(connection, _HASHES)
    finally:
        await connection.close()
    buyers = [account["address"].lower() for account in described["accounts"]]
    every = list(dict.fromkeys([*tokens.values(), *launched]))
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:
        keys = [await _key(session, url) for _ in range(KEYS)]
        fair = [tokens[name] for name, level in truths.items() if level == "ok"]
        simulated = [await _trade(session, url, token, buyers[0], keys[0]) for token in fair[:TRADES]]
        for token in every:
            # Who holds it is read once from its first block, which is no part of a day's load.
            async with session.get(f"{url}/v1/holders/{token}", headers={"x-api-key": keys[0]}) as told:
                await told.read()
    return Plan(
        port=port,
        tokens=every,
        levels={tokens[name].lower(): level for name, level in truths.items()},
        wallets=wallets,
        symbols=symbols,
        transactions=transactions,
        simulated=[one for one in simulated if one],
        buyers=buyers,
        keys=keys,
    )


async def _column(connection: Connection, statement: str) -> list[str]:
    return [str(row[0]) for row in await connection.fetch(statement, MAX_OF_A_SORT)]


async def _key(session: aiohttp.ClientSession, url: str) -> str:
    """A key for a new wallet, as docs/keys.md has it."""
    wallet = Account.create()
    asked = await _post(session, f"{url}/v1/keys/nonce", {"address": wallet.address})
    signed = wallet.sign_message(encode_defunct(text=asked["message"]))
    given = {"address": wallet.address, "signature": "0x" + bytes(signed.signature).hex()}
    return str((await _post(session, f"{url}/v1/keys", given))["key"])


async def _trade(
    session: aiohttp.ClientSession, url: str, token: str, buyer: str, key: str
) -> dict[str, Any] | None:
    """What a wallet sends to buy it, to be simulated; None where it cannot be prepared."""
    asked = {"token": token, "from": buyer, "amount": "0.05"}
    headers = {"x-api-key": key}
    async with session.post(f"{url}/v1/prepare/buy", json=asked, headers=headers) as response:
        said = await response.json()
    if response.status != 200:
        return None
    calls = [{name: step[name] for name in ("to", "data", "value")} for step in said["steps"]]
    return {"from": buyer, "calls": calls}


async def _post(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> dict[str, Any]:
    async with session.post(url, json=body) as response:
        said: dict[str, Any] = await response.json()
        assert response.status == 200, said
        return said
