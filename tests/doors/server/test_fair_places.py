"""Attacks on places and on the cache, once each against a process: others are answered."""

import asyncio
import itertools
import secrets
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Network

import aiohttp
import pytest

from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.keys import Person, key_for
from support.serving import service

PLACES = 6
LIMITS = Settings(
    most_checks_at_once=PLACES,
    trusted_proxies=(IPv4Network("127.0.0.1/32"),),
    anon_per_minute=1_000,
    requests_per_address=100_000,
)


async def ask(
    session: aiohttp.ClientSession, url: str, address: str, accept: str = "*/*", key: str = ""
) -> tuple[int, str]:
    """The status, and what is left of the caller's minute."""
    headers = {"x-forwarded-for": address, "accept": accept} | ({"x-api-key": key} if key else {})
    async with session.get(url, headers=headers) as response:
        await response.read()
        return response.status, response.headers.get("x-ratelimit-remaining", "")


@pytest.mark.parametrize(
    ("in_flight", "accounts"),
    [(8, 1), (5, 0), (6, 0), (7, 1), (8, 0), (16, 1), (20, 10)],
    ids=lambda number: str(number),
)
async def test_burners_of_one_caller_take_no_answer_from_others(
    ctx: Context, built: Built, in_flight: int, accounts: int
) -> None:
    """An address without a key, or so many accounts of one address."""
    people = replace(ctx, entropy=lambda: secrets.token_bytes(32))
    keys = [str((await key_for(people, Person()))["key"]) for _ in range(accounts)] or [""]
    burning = [address for key, address in built.tokens.items() if key.startswith("loops")]
    fair = [built.tokens[key] for key in ("plain", "six_decimals", "two_pools", "usdg_pool", "thin")]
    amounts, attacker = itertools.count(1), Counter[int]()

    async def burn(session: aiohttp.ClientSession, base_url: str, key: str) -> None:
        for token in itertools.cycle(burning):
            url = f"{base_url}/v1/check/{token}?amount=0.0{next(amounts)}"
            status, _ = await ask(session, url, "192.0.2.1", key=key)
            attacker[status] += 1
            await asyncio.sleep(0)

    connector = aiohttp.TCPConnector(limit=0)
    async with (
        ctx.heads.following(),
        service(ctx, LIMITS) as base_url,
        aiohttp.ClientSession(connector=connector) as session,
        asyncio.timeout(90),
    ):
        # The attacked tokens are known to burn gas: a process that has been used.
        for token in burning:
            await ask(session, f"{base_url}/v1/check/{token}", "192.0.2.1")
        tasks = [asyncio.create_task(burn(session, base_url, keys[n % len(keys)])) for n in range(in_flight)]
        answers = []
        for number, token in enumerate(fair):
            check, other = f"{base_url}/v1/check/{token}", f"198.51.100.{number}"
            answers.append(await ask(session, f"{check}?amount=0.2", other))
            answers.append(await ask(session, f"{check}/history", other))
            answers.append(await ask(session, f"{base_url}/token/{token}", other, "text/html"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert Counter(status for status, _ in answers) == {200: 3 * len(fair)}
    assert accounts or attacker[503] > 0 or in_flight <= PLACES // 3 + 8


async def test_a_crowd_of_honest_people_is_answered(ctx: Context, built: Built) -> None:
    """Each of another address asks for another check, at the same moment: they wait for their turn."""
    names = [key for key, _ in zip(built.tokens, range(12), strict=False)]
    async with (
        ctx.heads.following(),
        service(ctx, LIMITS) as base_url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.timeout(60),
    ):
        answers = await asyncio.gather(
            *(
                ask(session, f"{base_url}/v1/check/{built.tokens[name]}", f"198.51.100.{number}")
                for number, name in enumerate(names)
            )
        )
    statuses = Counter(status for status, _ in answers)
    assert set(statuses) <= {200, 503}
    assert statuses[200] >= len(names) // 2


async def test_a_crowd_on_one_cached_check_is_answered(ctx: Context, built: Built) -> None:
    """Whatever its size; and so are a page and a check of others beside it."""
    connections, each = 128, 8
    path = f"/v1/check/{built.tokens['plain']}"
    async with (
        ctx.heads.following(),
        service(ctx, LIMITS) as base_url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.timeout(60),
    ):
        await ask(session, base_url + path, "192.0.2.1")

        async def one(number: int) -> list[tuple[int, str]]:
            return [await ask(session, base_url + path, f"203.0.113.{number % 6}") for _ in range(each)]

        crowd = [asyncio.create_task(one(number)) for number in range(connections)]
        others = await asyncio.gather(
            ask(session, f"{base_url}{path}?amount=0.3", "198.51.100.1"),
            ask(session, f"{base_url}/token/{built.tokens['plain']}", "198.51.100.2", "text/html"),
        )
        answers = Counter(status for found in await asyncio.gather(*crowd) for status, _ in found)
    assert answers == {200: connections * each}
    assert {status for status, _ in others} == {200}


async def test_a_flood_of_health_shares_one_run(ctx: Context) -> None:
    async with service(ctx, LIMITS) as base_url, aiohttp.ClientSession() as session:
        asked = (ask(session, f"{base_url}/v1/health", f"192.0.2.{n}") for n in range(40))
        assert {status for status, _ in await asyncio.gather(*asked)} == {200}
