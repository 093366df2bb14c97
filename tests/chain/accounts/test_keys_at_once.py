"""Five keys a wallet, one key a signature: for fifty who come at once, and over the life of keys."""

import asyncio
from collections import Counter
from dataclasses import replace

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from support.clocks import Clock
from support.keys import NOW_S, Person, code_of, kept_of, key_for, revoke_of, text_for

_AT_ONCE = 50


async def test_a_sixth_key_is_refused_until_one_is_revoked(shop: Context) -> None:
    person = Person()
    for _ in range(5):
        await key_for(shop, person)
    signature = person.sign(await text_for(shop, person.address))
    for _ in range(2):
        assert await code_of(shop, person.address, signature) == "too_many_keys"
    await revoke_of(shop, person.address, 2)
    assert await code_of(shop, person.address, signature) == "ok"
    assert (await kept_of(shop, person.address)).live == 5


async def at_once(shops: list[Context], person: Person, signatures: list[str]) -> Counter[str]:
    sent = [
        code_of(shops[number % len(shops)], person.address, signatures[number % len(signatures)])
        for number in range(_AT_ONCE)
    ]
    return Counter(await asyncio.gather(*sent))


async def two_processes(shop: Context, url: str) -> tuple[list[Context], asyncpg.Pool]:
    """Two contexts over one database, the second with connections of its own; and these."""
    pool = await connections.create_pool(url, min_size=1, max_size=4)
    return [shop, replace(shop, pool=pool)], pool


async def test_fifty_sixth_keys_at_once_are_fifty_too_many(shop: Context, database_url: str) -> None:
    person = Person()
    for _ in range(5):
        await key_for(shop, person)
    shops, pool = await two_processes(shop, database_url)
    signature = person.sign(await text_for(shop, person.address))
    assert await at_once(shops, person, [signature]) == {"too_many_keys": _AT_ONCE}
    assert await kept_of(shop, person.address) == replace(await kept_of(shop, person.address), live=5)
    await pool.close()


@pytest.mark.parametrize("have", [0, 1, 4])
async def test_of_fifty_at_once_one_has_the_key(
    shop: Context, clock: Clock, database_url: str, have: int
) -> None:
    person = Person()
    for _ in range(have):
        await key_for(shop, person)
    shops, pool = await two_processes(shop, database_url)
    # The same signature, and others of other texts that are just as good.
    signatures = [person.sign(await text_for(shop, person.address))]
    clock.now_s += 60
    signatures.append(person.sign(await text_for(shop, person.address)))
    assert await at_once(shops, person, signatures) == {"ok": 1, "bad_signature": _AT_ONCE - 1}
    kept = await kept_of(shop, person.address)
    assert (kept.keys_made, kept.live) == (have + 1, have + 1)
    await pool.close()


async def test_many_strangers_at_once_are_served_each(shop: Context) -> None:
    people = [Person() for _ in range(20)]
    answers = await asyncio.gather(*(key_for(shop, person) for person in people))
    assert len({answer["key"] for answer in answers}) == 20
    assert len({answer["mite"]["designation"] for answer in answers}) == 20


# --- the life of keys, against a model -------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.just(0)),
        st.tuples(st.just("send"), st.integers(0, 30)),
        st.tuples(st.just("revoke"), st.integers(0, 30)),
        st.tuples(st.just("pass"), st.sampled_from((1, 59, 60, 240, 599, 600))),
    ),
    max_size=30,
)


class KeysModel:
    """What there should be: texts that were signed (their window, the keys made when they were), and keys."""

    def __init__(self) -> None:
        self.signed: list[tuple[int, int, str]] = []
        self.live: list[int] = []
        self.made = 0

    def send(self, place: int, now_s: float) -> str:
        window, made, _ = self.signed[place]
        if made != self.made or now_s >= window * 60 + 600:
            return "bad_signature"
        if len(self.live) == 5:
            return "too_many_keys"
        self.live.append(self.made)
        self.made += 1
        return "ok"


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
async def test_the_life_of_keys_is_the_models(
    shop: Context, clock: Clock, steps: list[tuple[str, int]]
) -> None:
    clock.now_s = NOW_S
    person, model = Person(), KeysModel()
    for what, number in [("ask", 0), ("send", 0), *steps]:
        if what == "ask":
            signature = person.sign(await text_for(shop, person.address))
            model.signed.append((int(clock.now_s // 60), model.made, signature))
        elif what == "send":
            place = len(model.signed) - 1 - number % min(3, len(model.signed))
            code = await code_of(shop, person.address, model.signed[place][2])
            assert code == model.send(place, clock.now_s)
        elif what == "revoke" and model.live:
            await revoke_of(shop, person.address, model.live.pop(number % len(model.live)))
        elif what == "pass":
            clock.now_s += number
        kept = await kept_of(shop, person.address)
        assert (kept.keys_made, len(kept.starts), kept.live) == (model.made, model.made, len(model.live))
