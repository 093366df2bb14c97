"""Where a token's launch was, and who bought in it."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.book import WINDOW_BLOCKS, BookStart, LaunchBuy, dump, load
from roundtrip.domain.holders.launch_window import MAX_EARLY_BUYERS, MAX_LAUNCH_BUYERS
from roundtrip.domain.holders.token_flows import TokenTx
from unit.domain.tokens import (
    ALL,
    ANN,
    AT_S,
    BEGINNING,
    BOB,
    CAT,
    CURVE,
    DAN,
    LOCKER,
    MANAGER,
    TOKEN,
    address,
    folded,
    hashed,
    minted,
    tx,
    worth,
)

PART = ALL // 100


def put(raw: int, block: int, place: Address = CURVE) -> TokenTx:
    return tx((ANN, place, raw), block=block, at_s=AT_S + block)


def buy(who: Address, raw: int, block: int, number: int = 0) -> TokenTx:
    return tx((CURVE, who, raw), buys=raw, block=block, at_s=AT_S + block, number=number)


def launched(*txs: TokenTx, beginning: BookStart = BEGINNING) -> tuple[int, int, dict[Address, int]] | None:
    result = folded(*txs, beginning=beginning).launch()
    if result is None:
        return None
    return result.block_number, result.at_s - AT_S, {one.wallet: one.bought_raw for one in result.buys}


def test_the_launchs_buys_are_told_in_their_order() -> None:
    book = folded(
        minted(),
        put(PART, 5),
        buy(CAT, 3, 5, number=1),
        buy(BOB, 9, 35, number=2),
        buy(CAT, 4, 35, number=3),
        buy(DAN, 5, 36, number=4),
    )
    result = book.launch()
    assert result is not None
    assert result.buys == (
        LaunchBuy(CAT, 7, hashed(1), 5, (hashed(1), hashed(3))),
        LaunchBuy(BOB, 9, hashed(2), 35, (hashed(2),)),
    )
    assert (result.block_number, result.at_s, result.left_out) == (5, AT_S + 5, 0)


def sell(who: Address, raw: int, block: int) -> TokenTx:
    return tx((who, CURVE, raw), sells=raw, block=block, at_s=AT_S + block)


def rush(block: int) -> list[TokenTx]:
    """Three wallets within a window."""
    return [buy(BOB, LATE, block), buy(CAT, LATE, block + 1), buy(DAN, THIRD, block + 2)]


def slow(*raws: int) -> list[TokenTx]:
    """A full pool, and buys long after it and after each other."""
    return [put(PART, 3), *(buy(BOB, raw, 100 * number) for number, raw in enumerate(raws, 1))]


def large(*txs: TokenTx, related: tuple[Address, ...] = ()) -> tuple[int, dict[Address, int]] | None:
    found = folded(minted(), *txs).launching.first_large_buy(related)
    return None if found is None else (found.block_number, {one.wallet: one.bought_raw for one in found.buys})


LATE = 9 * PART
THIRD = PART // 10
"""A thousandth: as much as makes a third wallet a crowd."""


@pytest.mark.parametrize(
    ("txs", "expected", "later"),
    [
        # Trading was open all along: who comes in large after others have bought a thousandth is late.
        ([*slow(PART // 20, PART // 20), buy(CAT, LATE, 900)], (100, 100, {BOB: PART // 20}), None),
        ([*slow(PART // 10), buy(CAT, LATE, 900)], (100, 100, {BOB: PART // 10}), None),
        # However little was bought, one or two wallets that come in large later have sniped nothing.
        ([*slow(1), buy(CAT, LATE, 900)], (100, 100, {BOB: 1}), (900, {CAT: LATE})),
        (
            [*slow(1), buy(CAT, LATE, 900), buy(DAN, LATE, 930), buy(BOB, THIRD - 1, 930)],
            (100, 100, {BOB: 1}),
            (900, {CAT: LATE, DAN: LATE, BOB: THIRD - 1}),
        ),
        # Six buys of one wallet are one wallet's; and later nothing else becomes the launch.
        (
            [*slow(1), *(buy(CAT, PART // 5, 900 + n) for n in range(6)), *rush(1_000)],
            (100, 100, {BOB: 1}),
            (900, {CAT: 6 * PART // 5}),
        ),
        # A crowd at once is an opening, whoever bought a little before; also if it comes after the first.
        ([*slow(1), *rush(900)], (900, 900, {BOB: LATE, CAT: LATE, DAN: THIRD}), None),
        (
            [*slow(1), buy(CAT, LATE, 900), buy(DAN, LATE, 920), buy(BOB, THIRD, 930), buy(BOB, 1, 931)],
            (900, 900, {CAT: LATE, DAN: LATE, BOB: THIRD}),
            None,
        ),
        # But not a window later, nor with the deployer's own buys.
        (
            [*slow(1), buy(CAT, LATE, 900), buy(DAN, LATE, 920), buy(BOB, THIRD, 931)],
            (100, 100, {BOB: 1}),
            (900, {CAT: LATE, DAN: LATE}),
        ),
        (
            [*slow(1), buy(CAT, LATE, 900), buy(DAN, LATE, 901), buy(ANN, LATE, 902)],
            (100, 100, {BOB: 1}),
            (900, {CAT: LATE, DAN: LATE}),
        ),
        # The same tokens bought over and over are not more.
        (
            [*slow(PART // 20), sell(BOB, PART // 20, 150), buy(BOB, PART // 20, 250), buy(CAT, LATE, 900)],
            (100, 100, {BOB: PART // 20}),
            (900, {CAT: LATE}),
        ),
        # A large buy in the window of the first buy is no later one.
        ([*slow(1), buy(CAT, LATE, 130)], (100, 100, {BOB: 1, CAT: LATE}), None),
        # Test buys before trading opens: the deployer's, and of wallets that it handed tokens to.
        ([put(PART, 3), buy(ANN, 5, 100), buy(CAT, LATE, 900)], (900, 900, {CAT: LATE}), None),
        (
            [put(PART, 3), tx((ANN, BOB, 1), block=50), buy(BOB, 5, 100), buy(CAT, LATE, 900)],
            (900, 900, {CAT: LATE}),
            None,
        ),
        # What it handed out hides nobody who buys much with it.
        ([put(PART, 3), tx((ANN, CAT, 1), block=50), buy(CAT, LATE, 900)], (900, 900, {CAT: LATE}), None),
        # Before the pools were full there was no market.
        ([put(9, 3), buy(BOB, 1, 100), put(PART, 800), buy(CAT, LATE, 900)], (900, 900, {CAT: LATE}), None),
    ],
)
def test_a_token_that_traded_quietly_was_launched_by_its_first_buy(
    txs: list[TokenTx],
    expected: tuple[int, int, dict[Address, int]],
    later: tuple[int, dict[Address, int]] | None,
) -> None:
    assert launched(minted(), *txs) == expected
    assert large(*txs) == later
    for number in range(len(txs)):
        book = folded(minted(), *txs[:number])
        again = load(dump(book))
        assert again == book
        for one in txs[number:]:
            again.fold(one, worth)
        assert again == folded(minted(), *txs)


DUST = PART // 10 - 1
"""Less than a thousandth: no crowd's, and no opening's."""


@pytest.mark.parametrize(
    ("txs", "is_opening"),
    [
        # In the window of the pools' opening, from the first block to the last.
        ([put(PART, 3), buy(BOB, 1, 3)], True),
        ([put(PART, 3), buy(BOB, LATE, 33)], True),
        # Long after it the first buyer raced nobody, however much it bought, nor did another one beside it.
        ([put(PART, 3), buy(BOB, 1, 34)], False),
        ([put(PART, 3), buy(BOB, LATE, 34)], False),
        ([put(PART, 3), buy(BOB, LATE, 900), buy(CAT, LATE, 901)], False),
        ([put(PART, 3), buy(BOB, 5, 900), buy(CAT, LATE, 901), buy(DAN, DUST - 5, 902)], False),
        ([put(PART, 3), buy(BOB, 1, 900), buy(CAT, 1, 901), buy(DAN, 1, 902)], False),
        ([put(PART, 3), buy(ANN, LATE, 900), buy(CAT, LATE, 901), buy(BOB, LATE, 902)], False),
        # A crowd that comes at once has waited for it.
        ([put(PART, 3), *rush(900)], True),
        ([put(PART, 3), buy(BOB, 300, 900), buy(CAT, 200, 910), buy(DAN, THIRD, 930)], True),
        ([*slow(1), *rush(900)], True),
        # New liquidity is an opening, too, and so is a first pool that is not full.
        ([put(PART, 3), put(THIRD, 870), buy(BOB, LATE, 900)], True),
        ([put(PART, 3), put(THIRD, 869), buy(BOB, LATE, 900)], False),
        ([put(PART, 3), put(DUST, 870), buy(BOB, LATE, 900)], False),
        ([put(PART, 3), buy(BOB, 1, 900), put(THIRD, 901)], True),
        ([put(PART // 2, 3), buy(BOB, 1, 9)], True),
        ([put(PART // 2, 3), buy(BOB, 1, 900)], False),
        ([put(PART // 2, 3), put(PART // 2, 900), buy(BOB, 1, 901)], True),
        # A sale adds tokens to a pool, and opens nothing.
        ([put(PART, 3), sell(ANN, LATE, 899), buy(BOB, 1, 900)], False),
    ],
)
def test_whether_anybody_raced_for_the_launch(txs: list[TokenTx], is_opening: bool) -> None:
    found = folded(minted(), *txs).launch()
    assert found is not None
    assert found.is_opening is is_opening
    for number in range(len(txs)):
        again = load(dump(folded(minted(), *txs[:number])))
        for one in txs[number:]:
            again.fold(one, worth)
        assert again == folded(minted(), *txs)


def test_a_launch_that_a_launchpad_reported_is_an_opening() -> None:
    found = folded(minted(), buy(BOB, 1, 60), beginning=replace(BEGINNING, launch_number=50)).launch()
    assert found is not None
    assert found.is_opening


def test_who_the_deployer_paid_does_not_prove_that_trading_was_open() -> None:
    txs = [put(PART, 3), buy(BOB, 1, 100), buy(DAN, 2, 500), buy(CAT, LATE, 900)]
    launching = folded(minted(), *txs).launching
    numbers = {
        related: (result.block_number, large(*txs, related=related))
        for related in ((), (BOB,), (DAN,), (BOB, DAN))
        if (result := launching.known_launch(related)) is not None
    }
    later = (900, {CAT: LATE})
    assert numbers == {(): (100, later), (BOB,): (500, later), (DAN,): (100, later), (BOB, DAN): (900, None)}


def test_many_paid_wallets_hide_nobody() -> None:
    crowd = [address(0x10_000 + number) for number in range(MAX_EARLY_BUYERS + 2)]
    early = [buy(who, 1, 100 + 40 * number) for number, who in enumerate(crowd)]
    book = folded(minted(), put(PART, 3), *early, buy(CAT, LATE, 900))
    assert list(book.launching.quiet) == crowd[:MAX_EARLY_BUYERS]
    result = book.launch(crowd)
    assert result is not None
    assert (result.block_number, [one.wallet for one in result.buys]) == (900, [CAT])


def test_a_large_buy_is_over_when_its_own_window_is() -> None:
    book = folded(minted(), *slow(1), buy(CAT, LATE, 900))
    for number, is_over in ((899 + WINDOW_BLOCKS, False), (900 + WINDOW_BLOCKS, True)):
        book.advance_to(BlockRef(number, "0x2", AT_S))
        assert book.launch_is_over() is is_over


@pytest.mark.parametrize(
    ("txs", "expected"),
    [
        ([], None),
        ([put(PART - 1, 3)], None),
        ([put(PART, 3)], (3, 3, {})),
        ([put(PART - 1, 3), put(1, 50, LOCKER), put(1, 70, MANAGER)], (70, 70, {})),
        # What lies in pools by no transfer of now does not make a launch, nor does a buy of dust.
        ([put(PART - 1, 3), buy(BOB, 1, 4)], (4, 4, {BOB: 1})),
        # Dust that is bought first, and dust in a pool, move nothing.
        ([put(9, 3), buy(BOB, 2, 4), put(PART, 90), buy(CAT, 5, 91)], (90, 90, {CAT: 5})),
        # In the same block before the pool was full.
        ([put(9, 3), buy(BOB, 2, 90), put(PART, 90), buy(CAT, 5, 91)], (90, 90, {BOB: 2, CAT: 5})),
        # A pool filled again and again, and never full: a hundredth was bought all the same.
        (
            [put(9, 3), buy(DAN, 1, 70), put(600, 90), buy(BOB, 500, 91), put(600, 92), buy(CAT, 500, 92)],
            (91, 91, {BOB: 500, CAT: 500}),
        ),
        # Filled up after the crowd has bought.
        (
            [put(900, 3), buy(BOB, 700, 4), put(700, 5), buy(CAT, 700, 34), put(9_000, 90), buy(DAN, 9, 91)],
            (4, 4, {BOB: 700, CAT: 700}),
        ),
        # A hundredth that is bought in more than a window is no launch.
        ([put(900, 3), buy(BOB, 700, 4), put(700, 5), buy(CAT, 700, 35)], (4, 4, {BOB: 700})),
        (
            [put(900, 3), buy(BOB, 700, 4), put(700, 5), buy(CAT, 700, 35), put(9_000, 90), buy(DAN, 9, 91)],
            (90, 90, {DAN: 9}),
        ),
        # The part is of what there is.
        ([tx((ANN, ZERO_ADDRESS, ALL // 2)), put(PART // 2, 3)], (3, 3, {})),
        ([tx((ANN, BURN_ADDRESS, ALL // 2)), put(PART // 2, 3)], None),
        ([tx((ZERO_ADDRESS, CURVE, ALL), block=7)], (7, 0, {})),
        # For good where a hundredth was bought in its window.
        (
            [put(PART, 3), put(PART, 4), buy(CAT, PART, 33), put(PART, 90), buy(BOB, PART, 91)],
            (3, 3, {CAT: PART}),
        ),
        ([put(PART, 3), buy(CAT, PART - 1, 9), put(PART, 90), buy(BOB, 1, 91)], (3, 3, {CAT: PART - 1})),
        # Opened later, in the pool that was there or in another; and not by insiders.
        ([put(9_000, 3), buy(BOB, 1, 4), buy(CAT, PART, 200)], (3, 3, {BOB: 1})),
        ([put(9_000, 3), buy(CAT, PART, 200)], (200, 200, {CAT: PART})),
        ([put(PART, 3), put(PART, 90), buy(BOB, PART, 91)], (91, 91, {BOB: PART})),
        ([put(9_000, 3), buy(ANN, PART, 4), buy(CAT, PART, 200)], (200, 200, {CAT: PART})),
        (
            [put(900, 3), buy(ANN, 600, 4), put(600, 5), buy(BOB, 500, 6), put(500, 7), buy(CAT, 500, 8)],
            (6, 6, {BOB: 500, CAT: 500}),
        ),
        (
            [put(9_000, 3), buy(BOB, 400, 30), buy(CAT, 300, 40), buy(DAN, 300, 60), buy(BOB, 5, 61)],
            (30, 30, {BOB: 400, CAT: 300, DAN: 300}),
        ),
        ([put(9_000, 3), buy(BOB, 400, 30), buy(CAT, 300, 40), buy(DAN, 300, 61)], (3, 3, {BOB: 400})),
        # The token's own contract takes its fees from pools; the deployer's buys stand there.
        ([put(PART, 3), buy(TOKEN, 5, 4), buy(ANN, 6, 5)], (3, 3, {ANN: 6})),
    ],
)
def test_where_the_launch_was(
    txs: list[TokenTx], expected: tuple[int, int, dict[Address, int]] | None
) -> None:
    assert launched(minted(), *txs) == expected


def test_a_token_whose_logs_tell_of_no_minting_is_launched_by_its_first_buy() -> None:
    assert launched(put(PART, 3), buy(BOB, 500, 9)) == (9, 9, {BOB: 500})


def test_a_launchpad_tells_the_launch() -> None:
    beginning = replace(BEGINNING, launch_number=50)
    before = [minted(), put(PART, 3), buy(BOB, 1, 4)]
    assert launched(*before, beginning=beginning) is None
    late = [*before, buy(CAT, 2, 60), buy(DAN, 3, 80), buy(ANN, 4, 81)]
    assert launched(*late, beginning=beginning) == (50, 60, {CAT: 2, DAN: 3})
    assert launched(*before, tx((ANN, BOB, 1), block=50), beginning=beginning) == (50, 0, {})


@pytest.mark.parametrize("beginning", [BEGINNING, replace(BEGINNING, launch_number=3)])
def test_the_window_is_over_when_it_is_read_to_its_end(beginning: BookStart) -> None:
    book = folded(minted(), beginning=beginning)
    book.advance_to(BlockRef(2, "0x2", AT_S))
    assert not book.launch_is_over()
    book.fold(put(PART, 3), worth)
    book.advance_to(BlockRef(2 + WINDOW_BLOCKS, "0x3", AT_S))
    assert not book.launch_is_over()
    book.advance_to(BlockRef(3 + WINDOW_BLOCKS, "0x4", AT_S))
    # Until a hundredth was bought another block may become the launch.
    assert book.launch_is_over() is (beginning.launch_number is not None)
    book.fold(buy(BOB, PART, 50), worth)
    book.advance_to(BlockRef(50 + WINDOW_BLOCKS, "0x5", AT_S))
    assert book.launch_is_over()
    with pytest.raises(ValueError, match="go back"):
        book.advance_to(BlockRef(2, "0x2", AT_S))


def test_a_token_that_nobody_bought_has_no_window() -> None:
    book = folded(minted())
    book.advance_to(BlockRef(1_000, "0x2", AT_S))
    assert not book.launch_is_over()
    book.fold(buy(BOB, 1, 1_001), worth)
    book.advance_to(BlockRef(1_001 + WINDOW_BLOCKS, "0x3", AT_S))
    assert not book.launch_is_over()


def test_of_many_transactions_the_first_and_those_with_most_are_told() -> None:
    raws = [1, *range(2, 12), 500]
    book = folded(minted(), put(PART, 5), *(buy(BOB, raw, 6, number) for number, raw in enumerate(raws)))
    result = book.launch()
    assert result is not None
    assert result.buys[0].txs == (hashed(0), *(hashed(number) for number in range(5, 12)))
    assert result.buys[0].bought_raw == sum(raws)
    assert load(dump(book)) == book


@pytest.mark.parametrize("filled", [1, PART])
def test_a_crowd_of_dust_does_not_hide_who_bought_much(filled: int) -> None:
    crowd = [address(0x10_000 + number) for number in range(3 * MAX_LAUNCH_BUYERS)]
    dust = tx(*((MANAGER, who, 1) for who in crowd), buys=len(crowd), block=3)
    book = folded(minted(), put(filled, 3), buy(BOB, 50, 3), dust, buy(CAT, 40, 4), buy(BOB, 5, 5))
    result = book.launch()
    assert result is not None
    assert len(result.buys) == MAX_LAUNCH_BUYERS
    assert result.buys[0] == LaunchBuy(BOB, 55, hashed(0), 3, (hashed(0),))
    assert result.buys[-1].wallet == CAT
    assert result.left_out == len(crowd) + 2 - MAX_LAUNCH_BUYERS
    assert load(dump(book)) == book
