"""What is found of a token's holders, whatever its book says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BURN_ADDRESS, BURN_ADDRESSES, ZERO_ADDRESS, Address
from roundtrip.domain.holders.book import HolderColumns, LaunchBuys
from roundtrip.domain.holders.deployer_summary import deployer_deeds
from roundtrip.domain.holders.findings import (
    MAX_FUNDED,
    Concentration,
    HolderInputs,
    KnownWallet,
    balance_raw,
    biggest,
    bundles,
    concentration,
    outside,
    shares,
    top,
)
from unit.domain.holding import (
    AT_S,
    DEPLOYER,
    LOCKER,
    PLACES,
    POOL,
    TOKEN,
    address,
    book,
    deeds,
    find_holders,
    launch,
    tx,
)

_PLENTY = settings(max_examples=100, deadline=None, derandomize=True, database=None)
_EVERYBODY = [*(address(number) for number in range(1, 19)), POOL, LOCKER, BURN_ADDRESS, TOKEN, DEPLOYER]
_raw = st.integers(-3, 60)
_holding = st.builds(
    HolderColumns,
    balance_raw=_raw,
    received_raw=st.integers(0, 60),
    bought_raw=st.integers(0, 60),
    sold_raw=st.integers(0, 60),
    spent_micro_usd=st.none() | st.integers(0, 10**9),
    first_buy_s=st.none() | st.just(AT_S),
)
_known = st.builds(
    KnownWallet,
    first_s=st.none() | st.just(AT_S),
    funder=st.none() | st.sampled_from(_EVERYBODY[:6]),
    is_contract=st.sampled_from([None, False, False, True]),
)
_buys = st.lists(
    st.tuples(st.sampled_from(_EVERYBODY[:18]), st.integers(1, 9), st.integers(1, 6)),
    max_size=18,
    unique_by=lambda buy: buy[0],
)


@st.composite
def _books(draw: st.DrawFn) -> tuple[HolderInputs, LaunchBuys]:
    launched = launch(*draw(_buys))
    of = book(draw(st.dictionaries(st.sampled_from([*_EVERYBODY, ZERO_ADDRESS]), _holding)), launched)
    known = find_holders(
        of,
        balances=draw(st.dictionaries(st.sampled_from(_EVERYBODY), st.integers(0, 60), max_size=6)),
        drifts=draw(st.booleans()),
        wallets=draw(st.dictionaries(st.sampled_from(_EVERYBODY), _known)),
        families=draw(st.dictionaries(st.sampled_from(_EVERYBODY[:6]), st.sampled_from([1, 5, 500, 501]))),
        never=draw(st.sets(st.sampled_from([tx(1), tx(2), _EVERYBODY[0]]), max_size=2)),
    )
    return known, launched


@_PLENTY
@given(case=_books())
def test_shares_add_up(case: tuple[HolderInputs, LaunchBuys]) -> None:
    known, _ = case
    everybody = known.book.wallets.keys() | known.balances.keys()
    found = shares(known)
    wallets = {one: balance_raw(known, one) for one in everybody - outside(known)}
    beside = found.in_pools_raw + found.burned_raw + found.locked_raw
    assert beside + sum(wallets.values()) == sum(balance_raw(known, one) for one in everybody)
    assert found.top_raw <= sum(wallets.values())


@_PLENTY
@given(case=_books(), most=st.integers(0, 12))
def test_the_top_is_the_biggest_in_order(case: tuple[HolderInputs, LaunchBuys], most: int) -> None:
    known, _ = case
    may_be = known.balances.keys() if known.drifts else known.book.wallets.keys() | known.balances.keys()
    held = [(one, balance_raw(known, one)) for one in may_be if one not in outside(known)]
    expected = sorted(((one, raw) for one, raw in held if raw > 0), key=lambda pair: (-pair[1], pair[0]))
    assert biggest(known, most) == expected[:most]
    assert not {one.address for one in top(known, most)} & (PLACES.pools | PLACES.beside | BURN_ADDRESSES)


@_PLENTY
@given(case=_books())
def test_every_bundle_is_of_launch_buyers_that_one_link_ties(case: tuple[HolderInputs, LaunchBuys]) -> None:
    known, launched = case
    bought = {buy.wallet: buy for buy in launched.buys}
    found = bundles(known, launched)
    members = [wallet for bundle in found for wallet in bundle.wallets]
    assert len(members) == len(set(members))
    assert set(members) == _naive(known, launched)
    for bundle in found:
        assert len(bundle.wallets) >= 3
        assert bundle.funder or bundle.tx_hash
        assert bundle.bought_raw == sum(bought[one].bought_raw for one in bundle.wallets)
        assert bundle.funder is None or known.families[bundle.funder] <= MAX_FUNDED


def _naive(known: HolderInputs, launched: LaunchBuys) -> set[Address]:
    """Whom any link ties to two others."""
    links: dict[str, set[Address]] = {}
    for buy in launched.buys:
        if buy.tx_hash not in known.never_group:
            links.setdefault(buy.tx_hash, set()).add(buy.wallet)
        funder = known.wallets.get(buy.wallet, KnownWallet()).funder
        if funder is None or funder == buy.wallet or known.families.get(funder, 501) > 500:
            continue
        if funder in known.never_group or known.wallets.get(funder, KnownWallet()).is_contract:
            continue
        own = {funder} & {one.wallet for one in launched.buys}
        links.setdefault(funder, set()).update({buy.wallet} | own)
    return {wallet for group in links.values() if len(group) >= 3 for wallet in group}


@_PLENTY
@given(held=st.integers(0, 30), done=st.tuples(*[st.integers(0, 30)] * 5))
def test_every_deployer_has_a_status(held: int, done: tuple[int, int, int, int, int]) -> None:
    known = deployer_deeds(deeds(held, *done))
    assert known is not None
    received, sold, moved, pooled, burned = done
    assert (known.status == "never_held") == (not any((held, *done)))
    assert known.received_raw == max(received, held + sold + moved + pooled + burned)
    assert (known.status == "holds_all") == (held > 0 and held * 100 >= known.received_raw * 99)
    gone = {"sold_out": sold, "moved_out": moved + pooled, "burned_out": burned}
    if known.status in gone and any(gone.values()):
        assert gone[known.status] == max(gone.values())


@_PLENTY
@given(held=st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_concentration_is_what_the_definition_says(held: list[int]) -> None:
    found = concentration(find_holders(book({address(number): raw for number, raw in enumerate(held, 1)})))
    apart = sum(abs(one - other) for one in held for other in held)
    biggest_first = sorted(held, reverse=True)
    fewest = next(n for n in range(1, len(held) + 1) if 2 * sum(biggest_first[:n]) > sum(held))
    assert found == Concentration(10_000 * apart // (2 * len(held) * sum(held)), fewest)
