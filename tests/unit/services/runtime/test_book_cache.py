"""Books in memory: which stay, and who may read one on."""

import asyncio

import pytest

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import HolderBook, HolderColumns
from roundtrip.services.runtime.book_cache import MAX_READING, BookCache, OpenBook, ReadLimits, reading_budget
from unit.domain.holding import address
from unit.domain.tokens import BEGINNING

A, B, C = (address(number) for number in (0xA, 0xB, 0xC))


def opened(wallets: int) -> OpenBook:
    book = HolderBook(BEGINNING, wallets={address(0x1000 + n): HolderColumns(1) for n in range(wallets)})
    return OpenBook(book, "whole")


def there(cache: BookCache, *tokens: Address) -> list[bool]:
    return [cache.get(token) is not None for token in tokens]


def test_those_that_were_not_asked_for_longest_make_room() -> None:
    cache = BookCache(limits=ReadLimits(max_wallets_of_all=10))
    cache.put(A, opened(4))
    cache.put(B, opened(4))
    assert cache.get(A) is not None
    cache.put(C, opened(2))
    assert there(cache, B, A, C) == [True, True, True]
    cache.put(C, opened(3))
    assert there(cache, A, B, C) == [True, False, True]


def test_the_one_that_is_asked_for_stays_however_large() -> None:
    cache = BookCache(limits=ReadLimits(max_wallets_of_all=10))
    cache.put(A, opened(1))
    cache.put(B, opened(11))
    assert there(cache, A, B) == [False, True]
    cache.drop(B)
    cache.drop(B)
    assert cache.get(B) is None


async def test_one_alone_reads_a_token_on() -> None:
    cache, order = BookCache(), []

    async def reads(who: str, token: Address, meanwhile: asyncio.Event) -> None:
        async with cache.alone(token):
            order.append(who)
            await meanwhile.wait()

    first, others = asyncio.Event(), asyncio.Event()
    others.set()
    tasks = [asyncio.create_task(reads("first", A, first))]
    await asyncio.sleep(0)
    assert order == ["first"]
    tasks += [asyncio.create_task(reads("second", A, others)), asyncio.create_task(reads("other", B, others))]
    await tasks[2]
    assert (order, cache.is_locked(A), cache.is_locked(B)) == (["first", "other"], True, False)
    first.set()
    await asyncio.gather(*tasks)
    assert (order, cache.is_locked(A)) == (["first", "other", "second"], False)


@pytest.mark.parametrize("fault", [ValueError, asyncio.CancelledError])
async def test_a_fault_leaves_nothing_locked_and_no_place_taken(fault: type[BaseException]) -> None:
    cache = BookCache()

    async def fails() -> None:
        async with cache.alone(A):
            with cache.take_place():
                raise fault

    for _ in range(MAX_READING + 1):
        with pytest.raises(fault):
            await fails()
    assert not cache.is_locked(A)
    assert not cache._locks


def test_there_are_so_many_places() -> None:
    cache = BookCache()
    taken = [cache.take_place() for _ in range(MAX_READING)]
    for place in taken:
        place.__enter__()
    with pytest.raises(ServiceFull) as full, cache.take_place():
        pass
    assert full.value.code == "holders_busy"
    taken[0].__exit__(None, None, None)
    with cache.take_place():
        pass


def test_a_days_budget_has_a_code_of_its_own() -> None:
    budget = reading_budget(2)
    budget.spend(2, 0.0)
    with pytest.raises(ServiceFull) as spent:
        budget.spend(1, 1.0)
    assert spent.value.code == "holders_budget"
    budget.spend(1, 86_400.0)
    BookCache().budget.spend(10**9, 0.0)
