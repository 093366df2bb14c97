"""Who has how much of a token, and how they came by it, folded transaction by transaction."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address
from roundtrip.domain.holders.book import WINDOW_BLOCKS, BookStart, HolderColumns, InsiderLedger, dump, load
from roundtrip.domain.holders.book_packing import pack, unpack
from roundtrip.domain.holders.deployer import SOURCES, Maker
from roundtrip.domain.holders.hourly_tops import Leaders, TopShare
from roundtrip.domain.holders.insider_ledger import MAX_COUNTERPARTIES
from roundtrip.domain.holders.token_flows import NonWallets, TokenTx, VenueFill
from unit.domain.tokens import (
    ALL,
    ANN,
    AT_S,
    BEGINNING,
    BOB,
    CAT,
    CURVE,
    DAN,
    ETH,
    EVERYONE,
    LOCKER,
    MANAGER,
    PLACES,
    POOL_ID,
    ROUTER,
    TOKEN,
    USDG,
    WALLETS,
    address,
    fills,
    folded,
    hashed,
    minted,
    moves,
    tx,
    worth,
)

QUICK = settings(max_examples=200, deadline=None)
DAY_S = 86_400


# --- holdings -----------------------------------------------------------------------------------------


def test_a_wallet_that_buys_sells_and_moves() -> None:
    book = folded(
        minted(CURVE),
        tx((CURVE, ROUTER, 90), (ROUTER, BOB, 90), buys=90, quote_raw=50, at_s=AT_S + 5),
        tx((CURVE, BOB, 10), buys=10, quote_raw=7, at_s=AT_S + 6),
        tx((BOB, CURVE, 30), sells=30, quote_raw=70),
        tx((BOB, CAT, 20), at_s=AT_S + 9),
    )
    assert book.wallets[BOB] == HolderColumns(50, 100, 100, 30, 0, 114, AT_S + 5, AT_S + 5)
    assert book.wallets[CAT] == HolderColumns(20, 20, 0, 0, 0, 0, AT_S + 9, None)
    assert book.wallets[CURVE].balance_raw == ALL - 70
    assert book.wallets[ZERO_ADDRESS].balance_raw == -ALL
    assert book.wallets[ROUTER].balance_raw == 0
    assert book.transfers == 6
    assert book.holders() == 2


def test_what_several_paid_together_is_shared_by_what_they_got() -> None:
    handed_on = [(ROUTER, ANN, 1), (ROUTER, BOB, 1), (ROUTER, CAT, 2)]
    book = folded(minted(CURVE), tx((CURVE, ROUTER, 4), *handed_on, buys=4, quote_raw=5))
    spent = [book.wallets[wallet].spent_micro_usd for wallet in (ANN, BOB, CAT)]
    assert spent == [2, 3, 5]


@pytest.mark.parametrize("quote", [USDG, ETH])
def test_one_buy_without_a_price_leaves_the_cost_unknown_for_ever(quote: Address) -> None:
    unpriced = VenueFill(POOL_ID, True, 5, quote, 9)
    block = 1 if quote == USDG else 1001
    buy = tx((CURVE, BOB, 10), (MANAGER, CAT, 5), buys=10, quote_raw=1)._replace(block_number=block)
    book = folded(minted(CURVE), buy._replace(fills=[*buy.fills, unpriced]), tx((CURVE, CAT, 1), buys=1))
    assert book.wallets[CAT].spent_micro_usd is None
    assert book.wallets[CAT].bought_raw == 6
    # What others bought in the same transaction was another trade.
    assert book.wallets[BOB].spent_micro_usd == (2 if quote == USDG else None)


def test_whoever_keeps_a_part_pays_for_a_part() -> None:
    kept = tx((CURVE, BOB, 100), (BOB, MANAGER, 95), buys=100, sells=95, quote_raw=60)
    taxed = tx((CURVE, CAT, 75), (CURVE, TOKEN, 25), buys=100, quote_raw=60)
    book = folded(minted(CURVE), kept, taxed)
    assert (book.wallets[BOB].bought_raw, book.wallets[BOB].spent_micro_usd) == (5, 6)
    assert (book.wallets[CAT].bought_raw, book.wallets[CAT].spent_micro_usd) == (75, 120)
    assert book.wallets[TOKEN] == HolderColumns(25, 25, 0, 0, 0, 0, AT_S, None)


def test_what_another_fetches_from_a_router_in_the_same_block_he_bought() -> None:
    parks = tx((CURVE, ROUTER, 80), buys=80, quote_raw=40, block=5)
    book = folded(minted(CURVE), parks, tx((ROUTER, BOB, 20), block=5), tx((ROUTER, CAT, 90), block=5))
    assert book.wallets[BOB] == HolderColumns(20, 20, 20, 0, 0, 20, AT_S, AT_S)
    assert book.wallets[CAT] == HolderColumns(90, 90, 60, 0, 0, 60, AT_S, AT_S)
    result = book.launch()
    assert result is not None
    assert {one.wallet for one in result.buys} == {BOB, CAT}
    later = folded(minted(CURVE), parks, tx((ROUTER, BOB, 20), block=6), tx((ROUTER, CAT, 20), block=5))
    assert later.wallets[BOB].bought_raw == later.wallets[CAT].bought_raw == 0


def test_what_a_token_does_itself_is_counted() -> None:
    book = folded(
        minted(CURVE),
        tx((ZERO_ADDRESS, MANAGER, 70), block=2),
        tx((ZERO_ADDRESS, TOKEN, 30), (TOKEN, CURVE, 20), sells=20, block=3),
        tx(buys=100, block=4),
        tx(buys=100, block=4),
    )
    assert (book.minted_into_pools_raw, book.sold_by_token_raw, book.claimed_raw) == (70, 20, 170)
    assert (folded().minted_into_pools_raw, folded().sold_by_token_raw, folded().claimed_raw) == (0, 0, 0)


def test_what_comes_back_from_whom_it_was_moved_to_was_not_moved() -> None:
    there, back = tx((ANN, BOB, 900)), tx((BOB, ANN, 900))
    book = folded(minted(), there, back, there, back, tx((ANN, CURVE, 900), sells=900))
    assert book.ledgers[ANN] == InsiderLedger(received_raw=ALL, sold_raw=900)
    # More than was his, and from others.
    book.fold(tx((ANN, BOB, 50)), worth)
    book.fold(tx((CURVE, BOB, 30), buys=30), worth)
    book.fold(tx((BOB, ANN, 70)), worth)
    book.fold(tx((CAT, ANN, 7)), worth)
    assert book.ledgers[ANN] == InsiderLedger(received_raw=ALL + 27, sold_raw=900)
    assert book.moved_to == {ANN: {}}


def test_an_insiders_accounts_with_others_are_bounded() -> None:
    book = folded(minted())
    book.fold(tx((ANN, BOB, 50)), worth)
    for number in range(2 * MAX_COUNTERPARTIES):
        book.fold(tx((ANN, address(0x1000 + number), 2)), worth)
    assert len(book.moved_to[ANN]) == MAX_COUNTERPARTIES
    book.fold(tx((BOB, ANN, 50)), worth)
    assert book.ledgers[ANN] == InsiderLedger(received_raw=ALL, moved_raw=4 * MAX_COUNTERPARTIES)


def test_what_is_taken_back_out_of_pools_is_not_received_again() -> None:
    into = tx((ANN, MANAGER, 100))
    book = folded(minted(), into, tx((MANAGER, ANN, 60)))
    assert book.wallets[ANN].received_raw == ALL
    assert book.ledgers[ANN] == InsiderLedger(received_raw=ALL, pooled_raw=40)
    # More than he put in: others sold into it.
    book.fold(tx((MANAGER, ANN, 70)), worth)
    assert book.ledgers[ANN] == InsiderLedger(received_raw=ALL + 30)
    assert book.wallets[ANN].received_raw == ALL + 30


def test_an_insider_has_a_ledger_and_nobody_else_has() -> None:
    assert folded().ledgers == {ANN: InsiderLedger()}
    book = folded(
        minted(),
        tx((ANN, CURVE, 5_000)),
        tx((ANN, BOB, 700)),
        tx((ANN, LOCKER, 60)),
        tx((LOCKER, ANN, 10)),
        tx((ANN, BURN_ADDRESS, 4)),
        tx((ANN, ZERO_ADDRESS, 3)),
        tx((CURVE, ANN, 20), buys=20),
        tx((ANN, CURVE, 9), sells=9),
        tx((BOB, CAT, 1)),
    )
    assert book.ledgers == {ANN: InsiderLedger(ALL + 20, 20, 9, 750, 5_000, 7)}
    assert book.wallets[ANN].balance_raw == ALL + 20 - 9 - 750 - 5_000 - 7
    assert book.wallets[BURN_ADDRESS].balance_raw == 4
    assert book.wallets[ZERO_ADDRESS].balance_raw == 3 - ALL
    assert book.wallets[ZERO_ADDRESS].received_raw == 3


def test_transfers_of_nothing_and_to_oneself_make_nobody_known() -> None:
    book = folded(tx((BOB, CAT, 0), (DAN, DAN, 9)))
    assert book.transfers == 2
    assert not book.wallets
    assert book.launch() is None


def test_logs_that_lie_are_folded_all_the_same() -> None:
    book = folded(tx((BOB, CAT, 2**256 - 1)), tx((CAT, BOB, 2**256 - 1)), tx((BOB, CAT, 1)))
    assert (book.wallets[BOB].balance_raw, book.wallets[CAT].balance_raw) == (-1, 1)
    assert book.wallets[BOB].first_s == AT_S
    assert book.holders() == 1


# --- how many -----------------------------------------------------------------------------------------


def test_wallets_are_counted_and_nobody_else() -> None:
    book = folded(
        minted(CURVE), *(tx((CURVE, who, 10), buys=10) for who in (BOB, TOKEN, LOCKER, MANAGER, BURN_ADDRESS))
    )
    assert book.holders() == 1
    book.fold(tx((BOB, CAT, 5)), worth)
    assert book.holders() == 2
    book.fold(tx((BOB, CAT, 5)), worth)
    assert book.holders() == 1


def test_how_many_there_were_is_known_for_eight_days() -> None:
    minute = 60
    buyers = [address(0x1000 + number) for number in range(5)]
    times = [AT_S, AT_S + 59, AT_S + minute, AT_S + DAY_S, AT_S + 9 * DAY_S]
    book = folded(*(tx((CURVE, who, 1), buys=1, at_s=at) for who, at in zip(buyers[:4], times, strict=False)))
    assert book.holders_at(AT_S - 1) is None
    assert [book.holders_at(at) for at in (AT_S, AT_S + 59, AT_S + 60, AT_S + DAY_S - 1)] == [2, 2, 3, 3]
    assert book.holders_at(AT_S + DAY_S) == book.holders_at(AT_S + 5 * DAY_S) == 4
    book.fold(tx((CURVE, buyers[4], 1), buys=1, at_s=times[4]), worth)
    assert book.holders_at(times[4]) == 5
    assert book.holders_at(times[4] - 8 * DAY_S) == 4
    assert book.holders_at(times[4] - 8 * DAY_S - 1) is None


def test_a_minute_tells_how_many_there_were_at_its_end() -> None:
    book = folded(tx((CURVE, BOB, 1)), tx((BOB, CURVE, 1)), tx((CURVE, BOB, 1), at_s=AT_S + 180))
    assert [book.holders_at(AT_S + 60 * number) for number in range(4)] == [0, 0, 0, 1]


def test_no_more_minutes_are_kept_than_are_asked_for() -> None:
    book = folded()
    for minute in range(12_000):
        way = (BOB, CURVE, 1) if minute % 2 else (CURVE, BOB, 1)
        book.fold(tx(way, at_s=AT_S + 60 * minute), worth)
    assert len(book.minutes.numbers) == len(book.minutes.counts) == 8 * 24 * 60 + 1


# --- everything at once -------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[TokenTx]:
    """Blocks that go on, and any transfers and fills."""
    txs, block, at_s = [minted()], 1, AT_S
    for number in range(draw(st.integers(0, 12))):
        block += draw(st.integers(0, 20))
        at_s += draw(st.sampled_from([0, 1, 30, 3600, 3 * DAY_S]))
        told_moves = draw(moves(st.integers(0, ALL) | st.integers(0, 2**256 - 1), most=4))
        told_fills = [
            fill._replace(quote=draw(st.sampled_from([ETH, ETH, ETH, USDG]))) for fill in draw(fills)
        ]
        txs.append(TokenTx(hashed(number), block, at_s, told_moves, told_fills))
    return txs


makers = st.builds(
    Maker,
    st.sampled_from(WALLETS),
    st.sampled_from(SOURCES),
    st.lists(st.sampled_from(WALLETS), max_size=2).map(tuple),
    st.none() | st.just(hashed(7)),
)
beginnings = st.builds(
    replace,
    st.just(BEGINNING),
    launch_number=st.none() | st.integers(0, 40),
    insiders=st.sets(st.sampled_from(WALLETS)).map(frozenset),
    maker=st.none() | makers,
)


@QUICK
@given(histories(), beginnings)
def test_the_book_adds_up(txs: list[TokenTx], beginning: BookStart) -> None:
    book = folded(*txs, beginning=beginning)
    left: Counter[Address] = Counter()
    for one in txs:
        for move in one.moves:
            left[move.sender] -= move.amount_raw
            left[move.recipient] += move.amount_raw
    balances = {who: holding.balance_raw for who, holding in book.wallets.items()}
    assert all(balances.get(who, 0) == left[who] for who in EVERYONE)
    assert sum(balances.values()) == 0
    assert book.in_pools_raw == sum(balances.get(pool, 0) for pool in PLACES.pools)
    counted = [who for who in WALLETS if balances.get(who, 0) > 0]
    assert book.holders() == book.holders_at(txs[-1].at_s) == len(counted)
    assert book.transfers == sum(len(one.moves) for one in txs)
    assert book.ledgers.keys() == beginning.insiders
    for insider, ledger in book.ledgers.items():
        gone = ledger.sold_raw + ledger.moved_raw + ledger.pooled_raw + ledger.burned_raw
        assert ledger.received_raw - gone == balances.get(insider, 0)
    for holding in book.wallets.values():
        assert min(holding.received_raw, holding.sold_raw, holding.pooled_raw) >= 0
        assert holding.bought_raw <= holding.received_raw
        assert (holding.first_buy_s is None) == (holding.bought_raw == 0)
    buys = sum(fill.token_raw for one in txs for fill in one.fills if fill.buys)
    assert sum(holding.bought_raw for holding in book.wallets.values()) <= buys
    result = book.launch()
    if result is not None:
        window = range(result.block_number, result.block_number + WINDOW_BLOCKS + 1)
        assert all(one.block_number in window for one in result.buys)
        assert all(0 < one.bought_raw <= book.wallets[one.wallet].bought_raw for one in result.buys)


@QUICK
@given(histories(), st.sets(st.integers(0, 12)), st.integers(1, 3))
def test_the_growth_is_what_a_fold_from_scratch_gives_for_each_hour(
    txs: list[TokenTx], cuts: set[int], top: int
) -> None:
    """Also for a book that was stored in between, and where fewer wallets are remembered than there are."""
    book = folded()
    book.leaders = Leaders(top=top, kept=top)
    for number, one in enumerate(txs):
        book.fold(one, worth)
        if number in cuts:
            book = load(dump(book))
            book.leaders.top = book.leaders.kept = top
    newest = txs[-1].at_s // 3600
    moved = {one.at_s // 3600 + later for one in txs for later in (-1, 0, 1)}
    for hour in sorted(hour for hour in moved if newest - 7 * 24 <= hour <= newest):
        before = [one for one in txs if one.at_s // 3600 <= hour]
        found = book.holders_at(3600 * hour + 3599), book.top_share_at(3600 * hour)
        assert found == _grown_from_scratch(before, top), hour - newest


def _grown_from_scratch(txs: list[TokenTx], top: int) -> tuple[int | None, TopShare | None]:
    """The number of holders, and what the ``top`` biggest of them hold of what exists."""
    left: Counter[Address] = Counter()
    for one in txs:
        for move in one.moves:
            left[move.sender] -= move.amount_raw
            left[move.recipient] += move.amount_raw
    held = sorted((left[wallet] for wallet in WALLETS if left[wallet] > 0), reverse=True)
    if not any(one.moves for one in txs):
        return None, None
    return len(held), TopShare(sum(held[:top]), -left[ZERO_ADDRESS])


def test_the_share_of_the_biggest_is_kept_for_eight_days() -> None:
    book = folded(minted())
    for hour in range(1, 12 * 24):
        book.fold(tx((ANN, BOB, 1), at_s=AT_S + 3600 * hour), worth)
    assert len(book.hours.numbers) == len(book.hours.shares) == 8 * 24 + 1
    assert load(dump(book)).hours == book.hours


def test_a_book_of_another_version_is_not_read() -> None:
    header, addresses, columns = unpack(dump(folded(minted())))
    for version in (header["version"] - 1, header["version"] + 1):
        with pytest.raises(ValueError, match="version"):
            load(pack(header | {"version": version}, addresses, columns))


@QUICK
@given(histories(), beginnings, st.sets(st.integers(0, 12)))
def test_a_book_written_down_and_read_between_goes_on_the_same(
    txs: list[TokenTx], beginning: BookStart, cuts: set[int]
) -> None:
    whole = folded(*txs, beginning=beginning)
    cut = folded(beginning=beginning)
    for number, one in enumerate(txs):
        cut.fold(one, worth)
        if number in cuts:
            cut = load(dump(cut))
    assert cut == whole
    assert dump(cut) == dump(whole)
    assert cut.launch() == whole.launch()


@QUICK
@given(histories(), st.integers(0, 12), st.sets(st.sampled_from(WALLETS), max_size=2))
def test_what_lies_at_a_place_is_nobodys_from_when_it_is_learned_of(
    txs: list[TokenTx], cut: int, pools: set[Address]
) -> None:
    """As if that had been known at once; also in a book that is written down and read."""
    places = NonWallets(PLACES.pools | pools, PLACES.beside)
    at_once = folded(*txs, beginning=replace(BEGINNING, places=places, venues=frozenset(pools)))
    book = folded(*txs[:cut])
    book.add_venues(frozenset(pools), NonWallets(frozenset(pools), frozenset()))
    book = load(dump(book))
    for one in txs[cut:]:
        book.fold(one, worth)
    assert book.beginning.places == at_once.beginning.places
    assert book.beginning.venues == at_once.beginning.venues | BEGINNING.venues
    assert (book.holders(), book.in_pools_raw) == (at_once.holders(), at_once.in_pools_raw)
