"""Paid calls over HTTP: who is let in, in which order it is refused, and when payments open."""

import asyncio
import secrets
import time
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.config.settings import Settings
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.types import Address
from roundtrip.services.accounts.credits import open_payments_in_background
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import credits
from support.fixtures import closed_database, context_for
from support.keys import Person, key_for
from support.paying import Payer, some_address, with_payments
from support.serving import service

WAIT_S = 20
SOME_TX = "0x" + "12" * 32
PAID = {"x-ratelimit-limit", "x-ratelimit-remaining"}

Came = tuple[int, dict[str, Any], dict[str, str]]


@pytest.fixture
def shop(ctx: Context) -> Context:
    return replace(ctx, entropy=lambda: secrets.token_bytes(32), now_s=time.time)


async def came(
    session: aiohttp.ClientSession, url: str, method: str, body: object = None, key: str | None = None
) -> Came:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with session.request(method, f"{url}/v1/credits", json=body, headers=headers) as response:
        answer = {name.lower(): value for name, value in response.headers.items()}
        return response.status, await response.json(), answer


def code(answer: Came) -> tuple[int, str]:
    return answer[0], answer[1]["error"]["code"]


async def place_of(ctx: Context, pay_to: Address) -> credits.PayToSpan | None:
    async with ctx.pool.acquire() as connection:
        found = [one for one in await credits.paid_to(connection) if one.address == pay_to]
    return found[0] if found else None


def test_both_are_of_one_path_and_count_by_the_minute() -> None:
    rows = {one.method: one for one in OPERATIONS if one.path == "/v1/credits"}
    assert rows.keys() == {"GET", "POST"}
    assert all((one.key, one.counts, one.on_mcp) == (True, "minute", False) for one in rows.values())
    assert {
        "key_needed", "bad_key", "bad_input", "bad_json", "not_open", "already_used", "no_such_tx",
        "tx_failed", "no_payment", "rate_limited", "upstream", "busy",
    } <= set(rows["POST"].codes())  # fmt: skip
    assert "daily_limit" not in {*rows["GET"].codes(), *rows["POST"].codes()}


async def test_without_a_live_key_nobody_is_told_anything(
    shop: Context, session: aiohttp.ClientSession
) -> None:
    async with service(shop) as url:
        for method, body in (("GET", None), ("POST", {"tx": SOME_TX})):
            assert code(await came(session, url, method, body)) == (401, "key_needed")
            assert code(await came(session, url, method, body, "rt_nothing")) == (401, "bad_key")


async def test_while_payments_are_closed(shop: Context, session: aiohttp.ClientSession) -> None:
    key = (await key_for(shop, Person()))["key"]
    async with service(shop, Settings(key_per_day=7, key_per_minute=50, holder_min=5)) as url:
        status, answer, headers = await came(session, url, "GET", key=key)
        assert status == 200
        assert answer == {
            "open": False,
            "balance": 0,
            "free": {"perMinute": 50, "perDay": 7},
            "holders": {"perMinute": 300, "perDay": 200_000, "min": 5, "live": False},
            "pay": None,
        }
        assert headers.keys() >= PAID
        assert "access-control-allow-origin" not in headers
        assert code(await came(session, url, "POST", {"tx": SOME_TX}, key)) == (404, "not_open")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "bad_input"),
        ({"tx": "0x" + "12" * 31}, "bad_input"),
        ({"tx": "12" * 32}, "bad_input"),
        ({"tx": SOME_TX + "\n"}, "bad_input"),
        ({"tx": "0x" + "zz" * 32}, "bad_input"),
        ({"tx": 5}, "bad_input"),
        ({"tx": None}, "bad_input"),
        ({"tx": [SOME_TX]}, "bad_input"),
        ({"tx": SOME_TX, "wallet": "0x"}, "bad_input"),
        ([SOME_TX], "bad_input"),
    ],
)
async def test_what_is_no_hash_is_refused(
    shop: Context, session: aiohttp.ClientSession, body: object, expected: str
) -> None:
    key = (await key_for(shop, Person()))["key"]
    async with service(shop, Settings(pay_to=some_address())) as url:
        assert code(await came(session, url, "POST", body, key)) == (400, expected)


async def test_a_payment_over_http(
    shop: Context, session: aiohttp.ClientSession, rpc: SyncRpc, built: Built
) -> None:
    person, payer, pay_to = Person(), Payer(rpc, built), some_address()
    key = (await key_for(shop, person))["key"]
    async with service(shop, Settings(pay_to=pay_to, calls_per_usdg=250, key_per_day=1)) as url:
        status, answer, _ = await came(session, url, "GET", key=key)
        assert (status, answer["open"], answer["pay"]["payTo"]) == (200, True, pay_to)
        assert answer["pay"]["callsPerUsdg"] == 250
        assert code(await came(session, url, "POST", {"tx": SOME_TX}, key)) == (422, "no_such_tx")
        tx = payer.pay(payer.wallet(person.address), pay_to, 2_500_000)
        assert code(await came(session, url, "POST", {"tx": tx}, key)) == (422, "no_such_tx")
        payer.finalize()
        status, answer, headers = await came(session, url, "POST", {"tx": tx}, key)
        assert (status, answer) == (200, {"credited": 625, "usdg": "2.5", "balance": 625})
        assert headers.keys() >= PAID
        assert code(await came(session, url, "POST", {"tx": tx}, key)) == (409, "already_used")
    used = await shop.pool.fetchval(
        "SELECT count(*) FROM accounts.day JOIN accounts.account ON account.id = day.account_id "
        "WHERE wallet = $1",
        bytes.fromhex(person.address[2:]),
    )
    assert used == 0, "a day of one call was not touched"


async def test_payments_open_when_the_service_starts(shop: Context) -> None:
    pay_to = some_address()
    number = shop.heads.current().block.number
    async with service(shop, Settings(pay_to=pay_to)), asyncio.timeout(WAIT_S):
        while (place := await place_of(shop, pay_to)) is None:
            pass
    assert (place.from_block, place.to_block) == (number, None)


async def test_they_open_once_chain_and_database_are_there(shop: Context, built: Built, rpc: SyncRpc) -> None:
    taking = with_payments(shop)
    assert taking.payments is not None
    async with context_for(rpc.url, built, shop.pool) as unheard:
        # Its newest block is not known yet.
        late = replace(taking, heads=unheard.heads)
        async with open_payments_in_background(late, retry_s=0.001), asyncio.timeout(WAIT_S):
            for _ in range(20):
                assert await place_of(shop, taking.payments.pay_to) is None
            await unheard.heads.refresh()
            while await place_of(shop, taking.payments.pay_to) is None:
                pass


async def test_a_service_that_cannot_open_them_runs_all_the_same(
    shop: Context, session: aiohttp.ClientSession
) -> None:
    gone = replace(shop, pool=closed_database())
    async with (
        service(gone, Settings(pay_to=some_address())) as url,
        session.get(f"{url}/v1/tools.json") as answer,
    ):
        assert answer.status == 200


async def test_without_payments_nothing_is_opened(shop: Context) -> None:
    async with shop.pool.acquire() as connection:
        before = await credits.paid_to(connection)
        async with open_payments_in_background(shop, retry_s=0.001):
            assert await credits.paid_to(connection) == before
