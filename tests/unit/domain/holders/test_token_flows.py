"""What the wallets of one transaction did, told by where the tokens went."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BPS, BURN_ADDRESS, ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.holders.token_flows import (
    HOOK_TAKES_BPS,
    MAX_LOTS,
    Move,
    NonWallets,
    PaidBuy,
    TokenTx,
    VenueFill,
    WalletFlow,
    trace_transaction,
)
from unit.domain.tokens import (
    ANN,
    BOB,
    CAT,
    CURVE,
    DAN,
    ETH,
    HOOK,
    LOCKER,
    MANAGER,
    NOBODY,
    PLACES,
    POOL_ID,
    ROUTER,
    TOKEN,
    WALLETS,
    address,
    fills,
    moves,
    tx,
)

QUICK = settings(max_examples=400, deadline=None)


def flows(tx: TokenTx, places: NonWallets) -> list[WalletFlow]:
    return trace_transaction(tx, places).flows


def list_flows(one: TokenTx) -> set[tuple[str, Address, Address | None, int]]:
    found = flows(one, PLACES)
    assert len({flow[:3] for flow in found}) == len(found)
    return set(found)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (tx(), set()),
        (tx((ANN, BOB, 0)), set()),
        (tx((ANN, ANN, 7)), set()),
        (tx((ANN, BOB, 7)), {("moved", ANN, BOB, 7), ("got", BOB, ANN, 7)}),
        (tx((ANN, LOCKER, 7)), {("moved", ANN, LOCKER, 7)}),
        (tx((LOCKER, ANN, 7)), {("got", ANN, LOCKER, 7)}),
        (tx((LOCKER, ROUTER, 7)), set()),
        (tx((LOCKER, CURVE, 7), sells=7), set()),
        (tx((CURVE, ANN, 7), buys=7), {("bought", ANN, None, 7)}),
        (tx((CURVE, ANN, 7), buys=5), {("bought", ANN, None, 5), ("withdrawn", ANN, None, 2)}),
        (tx((CURVE, ANN, 7), sells=7), {("withdrawn", ANN, None, 7)}),
        (tx((CURVE, LOCKER, 7), buys=7), set()),
        (tx((CURVE, BURN_ADDRESS, 7), buys=7), set()),
        (tx((ANN, CURVE, 7), sells=7), {("sold", ANN, None, 7)}),
        (tx((ANN, CURVE, 7), sells=5), {("sold", ANN, None, 5), ("pooled", ANN, None, 2)}),
        (tx((ANN, CURVE, 7), buys=7), {("pooled", ANN, None, 7)}),
        (tx((CURVE, MANAGER, 7), buys=7), set()),
        (tx((ZERO_ADDRESS, ANN, 7)), {("minted", ANN, None, 7)}),
        (tx((ZERO_ADDRESS, CURVE, 7)), set()),
        (tx((ZERO_ADDRESS, LOCKER, 7)), set()),
        (tx((ZERO_ADDRESS, BURN_ADDRESS, 7)), set()),
        (tx((ANN, ZERO_ADDRESS, 7)), {("burned", ANN, None, 7)}),
        (tx((ANN, BURN_ADDRESS, 7)), {("burned", ANN, None, 7)}),
        (tx((BURN_ADDRESS, ANN, 7)), {("got", ANN, BURN_ADDRESS, 7)}),
        (tx((LOCKER, BURN_ADDRESS, 7)), set()),
    ],
)
def test_one_transfer(one: TokenTx, expected: set[tuple[str, Address, Address | None, int]]) -> None:
    assert list_flows(one) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        # Through a router, and through a bot that is nobody's machinery.
        (tx((CURVE, ROUTER, 7), (ROUTER, ANN, 7), buys=7), {("bought", ANN, None, 7)}),
        (tx((CURVE, BOB, 7), (BOB, ANN, 7), buys=7), {("bought", ANN, None, 7)}),
        (tx((ANN, BOB, 7), (BOB, CURVE, 7), sells=7), {("sold", ANN, None, 7)}),
        # Whoever keeps a part, bought a part.
        (
            tx((CURVE, BOB, 9), (BOB, ANN, 4), (BOB, CAT, 3), buys=9),
            {("bought", ANN, None, 4), ("bought", BOB, None, 2), ("bought", CAT, None, 3)},
        ),
        # What was bought goes first, then one's own.
        (
            tx((CURVE, BOB, 5), (BOB, ANN, 7), buys=5),
            {("bought", ANN, None, 5), ("moved", BOB, ANN, 2), ("got", ANN, BOB, 2)},
        ),
        # The latest first.
        (
            tx((CURVE, BOB, 5), (DAN, BOB, 5), (BOB, ANN, 5), buys=5),
            {("bought", BOB, None, 5), ("moved", DAN, ANN, 5), ("got", ANN, DAN, 5)},
        ),
        # Nothing to nobody: out and back, in a ring, from pool to pool.
        (tx((ANN, BOB, 7), (BOB, ANN, 7)), set()),
        (tx((ANN, BOB, 7), (BOB, CAT, 7), (CAT, ANN, 7)), set()),
        (tx((CURVE, ANN, 7), (ANN, MANAGER, 7), buys=7, sells=7), set()),
        (tx((ANN, ROUTER, 7), (ROUTER, ANN, 3)), {("moved", ANN, ROUTER, 4)}),
        # Liquidity, and what of it is handed back.
        (tx((ANN, MANAGER, 10), (MANAGER, ANN, 3)), {("pooled", ANN, None, 7)}),
        (tx((ANN, MANAGER, 3), (MANAGER, ANN, 10)), {("withdrawn", ANN, None, 7)}),
        (tx((ANN, MANAGER, 10), (MANAGER, ANN, 4), sells=6), {("sold", ANN, None, 6)}),
        # A hook takes its fee of a buy from what the swap tells.
        (tx((MANAGER, HOOK, 2), (MANAGER, ANN, 98), buys=100), {("bought", ANN, None, 98)}),
        # A token with a fee: whoever collects it bought nothing.
        (
            tx((CURVE, TOKEN, 5), (CURVE, ANN, 95), buys=100),
            {("bought", ANN, None, 95), ("got", TOKEN, CURVE, 5)},
        ),
        (
            tx((CURVE, CAT, 25), (CURVE, DAN, 25), (CURVE, ROUTER, 50), (ROUTER, ANN, 50), buys=100),
            {("bought", ANN, None, 50), ("got", CAT, CURVE, 25), ("got", DAN, CURVE, 25)},
        ),
        (tx((CURVE, BURN_ADDRESS, 5), (CURVE, ANN, 95), buys=100), {("bought", ANN, None, 95)}),
        # A hook that has its fee in the token sent on, and keeps a part in the manager.
        (
            tx((MANAGER, CAT, 10), (MANAGER, ANN, 85), buys=100),
            {("bought", ANN, None, 85), ("got", CAT, MANAGER, 10)},
        ),
        # In v4 one trade can be paid out to several.
        (
            tx((MANAGER, ANN, 40), (MANAGER, BOB, 35), (MANAGER, CAT, 25), buys=100),
            {("bought", ANN, None, 40), ("bought", BOB, None, 35), ("bought", CAT, None, 25)},
        ),
        # Liquidity that is taken out beside a buy with a tax.
        (
            tx((CURVE, DAN, 500), (CURVE, ANN, 95), (CURVE, CAT, 5), buys=100),
            {("withdrawn", DAN, None, 500), ("bought", ANN, None, 95), ("got", CAT, CURVE, 5)},
        ),
        # A trade elsewhere is none of this pool's.
        (
            tx((MANAGER, ANN, 9), (CURVE, BOB, 9), buys=9),
            {("withdrawn", ANN, None, 9), ("bought", BOB, None, 9)},
        ),
        # Liquidity taken out and sold by one transaction is of whoever had it last.
        (
            tx((MANAGER, ROUTER, 9), (ROUTER, ANN, 9), (ANN, LOCKER, 9), (LOCKER, CURVE, 9), sells=9),
            {("withdrawn", ANN, None, 9), ("sold", ANN, None, 9)},
        ),
        (tx((MANAGER, ANN, 9), (ANN, BOB, 9), (BOB, CURVE, 9)), set()),
        (tx((MANAGER, ROUTER, 9), (ROUTER, CURVE, 9), sells=9), set()),
        # Minted and sold in one transaction is no way to sell unseen.
        (
            tx((ZERO_ADDRESS, ANN, 9), (ANN, ROUTER, 9), (ROUTER, CURVE, 9), sells=9),
            {("minted", ANN, None, 9), ("sold", ANN, None, 9)},
        ),
        (tx((ZERO_ADDRESS, ROUTER, 9), (ROUTER, CURVE, 9)), set()),
        (
            tx((ZERO_ADDRESS, BOB, 9), (BOB, CURVE, 8), (BOB, ANN, 1)),
            {("minted", BOB, None, 8), ("pooled", BOB, None, 8), ("minted", ANN, None, 1)},
        ),
        # Burn addresses are ends.
        (
            tx((ANN, ZERO_ADDRESS, 5), (ZERO_ADDRESS, BOB, 5)),
            {("burned", ANN, None, 5), ("minted", BOB, None, 5)},
        ),
        (tx((ANN, BOB, 5), (BOB, BURN_ADDRESS, 5)), {("burned", ANN, None, 5)}),
    ],
)
def test_through_several_hands(one: TokenTx, expected: set[tuple[str, Address, Address | None, int]]) -> None:
    assert list_flows(one) == expected


def test_what_a_hook_takes_on_top_of_a_sale_is_sold() -> None:
    most = 10_000 + HOOK_TAKES_BPS
    assert list_flows(tx((ANN, MANAGER, most), sells=10_000)) == {("sold", ANN, None, most)}
    assert list_flows(tx((ANN, MANAGER, most + 1), sells=10_000)) == {
        ("sold", ANN, None, 10_000),
        ("pooled", ANN, None, HOOK_TAKES_BPS + 1),
    }


def test_a_fill_too_small_for_all_is_shared_to_the_last_unit() -> None:
    one = tx((MANAGER, ANN, 10), (MANAGER, BOB, 10), (MANAGER, CAT, 10), buys=11)
    assert list_flows(one) == {
        ("bought", ANN, None, 4), ("bought", BOB, None, 4), ("bought", CAT, None, 3),
        ("withdrawn", ANN, None, 6), ("withdrawn", BOB, None, 6), ("withdrawn", CAT, None, 7),
    }  # fmt: skip


def test_every_buyer_pays_for_what_came_to_it_and_stayed() -> None:
    cheap, dear, other = (
        VenueFill(CURVE, True, raw, ETH, quote) for raw, quote in ((7, 100), (5, 900), (8, 60))
    )
    elsewhere = VenueFill(POOL_ID, True, 10, ETH, 1)
    told_moves = [
        Move(CURVE, BOB, 5),
        Move(CURVE, ANN, 6),
        Move(CURVE, TOKEN, 1),
        # The last one keeps a part and sells the rest.
        Move(CURVE, CAT, 8),
        Move(CAT, MANAGER, 6),
        Move(MANAGER, ROUTER, 9),
        Move(ROUTER, DAN, 4),
    ]
    sells = VenueFill(POOL_ID, False, 6, ETH, 9)
    found = trace_transaction(
        TokenTx(TxHash("0x1"), 1, 1, told_moves, [cheap, dear, other, elsewhere, sells]), PLACES
    )
    assert set(found.paid) == {
        PaidBuy(BOB, (dear,), 0, 5, 5),
        PaidBuy(ANN, (cheap,), 0, 6, 6),
        PaidBuy(CAT, (other,), 0, 2, 8),
        PaidBuy(ROUTER, (elsewhere,), 0, 5, 9),
        PaidBuy(DAN, (elsewhere,), 5, 9, 9),
    }
    assert {flow for flow in found.flows if flow.kind != "got"} == {
        WalletFlow("bought", wallet, None, raw) for wallet, raw in ((BOB, 5), (ANN, 6), (CAT, 2), (DAN, 4))
    }


def test_one_transfer_that_is_a_trade_comes_before_several_that_add_up_to_one() -> None:
    found = flows(tx((CURVE, ANN, 2), (CURVE, BOB, 3), (CURVE, DAN, 5), buys=5), PLACES)
    assert [flow for flow in found if flow.kind == "bought"] == [WalletFlow("bought", DAN, None, 5)]


@pytest.mark.parametrize(
    ("told_moves", "sells", "expected"),
    [
        ([], 0, 85),
        ([(MANAGER, ANN, 84)], 0, 1),
        ([(MANAGER, ANN, 85)], 0, 0),
        # From one v4 pool into another, and none of it ever left.
        ([], 100, 0),
        # Sold by somebody who brought it.
        ([(ANN, MANAGER, 100)], 100, 85),
        ([(CURVE, ANN, 100)], 0, 85),
    ],
)
def test_what_is_bought_and_stays_in_the_manager_is_claimed(
    told_moves: list[tuple[Address, Address, int]], sells: int, expected: int
) -> None:
    told_fills = [VenueFill(POOL_ID, True, 100, ETH, 1), VenueFill(CURVE, True, 100, ETH, 1)]
    told_fills += [VenueFill(POOL_ID, False, sells, ETH, 1)] if sells else []
    one = TokenTx(TxHash("0x1"), 1, 1, [Move(*move) for move in told_moves], told_fills)
    assert trace_transaction(one, PLACES).claimed_raw == expected


@pytest.mark.parametrize(
    ("fill", "told_moves", "expected"),
    [
        (VenueFill(POOL_ID, True, 100, ETH, 1), [], 85),
        (VenueFill(POOL_ID, True, 100, ETH, 1), [(MANAGER, ANN, 60)], 25),
        (VenueFill(POOL_ID, False, 100, ETH, 1), [(ANN, MANAGER, 100)], 0),
        (VenueFill(CURVE, True, 100, ETH, 1), [(CURVE, MANAGER, 100)], 0),
        (VenueFill(CURVE, False, 100, ETH, 1), [], 0),
    ],
)
def test_of_one_trade_only_a_buy_in_a_v4_pool_leaves_a_claim(
    fill: VenueFill, told_moves: list[tuple[Address, Address, int]], expected: int
) -> None:
    one = TokenTx(TxHash("0x1"), 1, 1, [Move(*move) for move in told_moves], [fill])
    assert trace_transaction(one, PLACES).claimed_raw == expected


# --- everything at once -----------------------------------------------------------------------------


def total(found: list[WalletFlow], what: str) -> int:
    return sum(flow.amount_raw for flow in found if flow.kind == what)


@QUICK
@given(moves(), fills)
def test_flows_add_up_to_what_every_wallet_has_more_or_less(
    told_moves: list[Move], told_fills: list[VenueFill]
) -> None:
    one = TokenTx(TxHash("0x1"), 1, 1, told_moves, told_fills)
    found = flows(one, PLACES)
    left: Counter[Address] = Counter()
    for move in told_moves:
        left[move.sender] -= move.amount_raw
        left[move.recipient] += move.amount_raw
    sums: Counter[Address] = Counter()
    for flow in found:
        gains = flow.kind in ("bought", "withdrawn", "got", "minted")
        sums[flow.wallet] += flow.amount_raw if gains else -flow.amount_raw
    for wallet in (*WALLETS, TOKEN):
        assert sums[wallet] == left[wallet]
    assert all(flow.amount_raw > 0 for flow in found)
    assert not {flow.wallet for flow in found} & (PLACES.pools | PLACES.beside | NOBODY)
    assert all(flow.other not in (None, flow.wallet) for flow in found if flow.kind in ("moved", "got"))
    assert all(flow.other is None for flow in found if flow.kind not in ("moved", "got"))
    assert flows(one, PLACES) == found
    buys, sells = (sum(fill.token_raw for fill in told_fills if fill.buys is way) for way in (True, False))
    assert total(found, "bought") <= buys
    for paid in trace_transaction(one, PLACES).paid:
        assert 0 <= paid.from_raw < paid.to_raw <= paid.of_raw <= sum(fill.token_raw for fill in paid.fills)
    assert total(found, "sold") * BPS <= sells * (BPS + HOOK_TAKES_BPS)


@QUICK
@given(moves(least=1, most=1), fills)
def test_one_transfer_alone_is_what_it_is_among_others(
    told_moves: list[Move], told_fills: list[VenueFill]
) -> None:
    one = TokenTx(TxHash("0x1"), 1, 1, told_moves, told_fills)
    nothing = Move(CAT, DAN, 0)
    alone, among = (
        trace_transaction(one, PLACES),
        trace_transaction(one._replace(moves=[*told_moves, nothing]), PLACES),
    )
    assert alone.flows == flows(one, PLACES)
    assert alone._replace(paid=list(alone.paid)) == among


@dataclass
class Units:
    """The rules once more, for each unit by itself."""

    hands: dict[Address, list[str]] = field(default_factory=dict)
    ended: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def send(self, sender: Address, recipient: Address) -> None:
        stack = self.hands.setdefault(sender, [])
        own = "pool" if sender in PLACES.pools else str(sender)
        origin = stack.pop() if stack else own
        if origin == ZERO_ADDRESS and recipient not in PLACES.beside | PLACES.pools | NOBODY:
            origin = f"minted {recipient}"
        if recipient in PLACES.pools:
            self.ended[("pool", origin, "")] += origin != "pool"
        elif recipient in NOBODY:
            self.ended[("burn", origin, "")] += 1
        elif recipient != origin:
            self.hands.setdefault(recipient, []).append(origin)

    def list_flows(self) -> set[tuple[str, Address, Address | None, int]]:
        """As flows tell it, with no fills."""
        out: Counter[tuple[str, Address, Address | None]] = Counter()
        for holder, stack in self.hands.items():
            for unit in stack:
                self.ended[("hand", unit, holder)] += 1
        for (place, whose, whither), amount in self.ended.items():
            to, who = Address(whither), Address(whose)
            if place == "pool" and whose.startswith("minted"):
                who = Address(whose.split()[1])
                out["minted", who, None] += amount
            if place == "pool":
                out["pooled", who, None] += amount
            elif place == "burn":
                out["burned", who, None] += amount
            elif whose == "pool":
                out["withdrawn", to, None] += amount
            elif whose.startswith("minted") or whose == ZERO_ADDRESS:
                out["minted", to, None] += amount
            else:
                out["moved", who, to] += amount
                out["got", to, who] += amount
        for wallet in (*WALLETS, TOKEN):
            back = min(out["pooled", wallet, None], out["withdrawn", wallet, None])
            out["pooled", wallet, None] -= back
            out["withdrawn", wallet, None] -= back
        wallets = {*WALLETS, TOKEN}
        return {(*key, amount) for key, amount in out.items() if amount and key[1] in wallets}


@QUICK
@given(moves(st.integers(0, 6), most=16))
def test_a_count_of_every_unit_by_itself_tells_the_same(told_moves: list[Move]) -> None:
    units = Units()
    for sender, recipient, amount in told_moves:
        for _ in range(amount if sender != recipient else 0):
            units.send(sender, recipient)
    one = TokenTx(TxHash("0x1"), 1, 1, told_moves)
    assert list_flows(one) == units.list_flows()
    # With fills for everything, what is not handed back is traded.
    everything = [VenueFill(at, way, 1_000, ETH, 1) for way in (True, False) for at in (CURVE, POOL_ID)] * 16
    traded = flows(one._replace(fills=everything), PLACES)
    assert not total(traded, "pooled") + total(traded, "withdrawn")
    assert {flow for flow in traded if flow.kind not in ("bought", "sold")} == {
        flow for flow in flows(one, PLACES) if flow.kind not in ("pooled", "withdrawn")
    }


# --- the worst of all ---------------------------------------------------------------------------------


def test_a_hand_keeps_no_more_origins_apart_than_it_may() -> None:
    many = MAX_LOTS * 2
    givers = [address(0x1000 + number) for number in range(many)]
    gathered = [(giver, BOB, 1) for giver in givers]
    found = list_flows(tx(*gathered, (BOB, CAT, many)))
    assert sum(flow[3] for flow in found if flow[:2] == ("got", CAT)) == many
    kept = {flow[2] for flow in found if flow[:2] == ("got", CAT)} - {BOB}
    assert givers[-1] in kept
    assert givers[0] not in kept
    assert MAX_LOTS // 2 <= len(kept) <= MAX_LOTS
    assert ("moved", givers[0], BOB, 1) in found
    # As many as it may keep apart pass through.
    few = list_flows(tx(*gathered[:MAX_LOTS], (BOB, CAT, MAX_LOTS)))
    assert ("moved", givers[0], CAT, 1) in few
    assert BOB not in {flow[1] for flow in few}


def test_thousands_of_transfers_in_one_transaction_are_followed() -> None:
    ring = [address(0x1000 + number) for number in range(2_500)]
    most = 2**256 - 1
    gathered = [(giver, BOB, most) for giver in ring]
    round_it_goes = [(BOB, ring[0], most * 2_500)]
    round_it_goes += [(ring[at], ring[at + 1], most * 2_500) for at in range(2_499)]
    found = flows(tx(*gathered, *round_it_goes), PLACES)
    assert found
    assert sum(flow.amount_raw for flow in found if flow.kind == "got") == sum(
        flow.amount_raw for flow in found if flow.kind == "moved"
    )
