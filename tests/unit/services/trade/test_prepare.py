"""The pure parts of prepared trades: what is refused, what an amount is, and the steps."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, RpcError
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.wallet.calls import Pair
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import Quote, Venue, VenueKind
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.domain.check.verdict import Judgement, Verdict
from roundtrip.domain.trade.judge import LEVELS, refusal_code
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.rehearsal.final_run import FinalRun
from roundtrip.services.rehearsal.trade_builder import (
    Holdings,
    Side,
    TradeBuilder,
    kind_of,
    pairs_of,
    read_holdings,
    watched_of,
    write,
)
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import EXAMPLE_ADDRESS, read_address
from roundtrip.services.support.money import parse_amount, pays
from roundtrip.services.trade.prepare import PrepareSellParams, _kept_sentences
from roundtrip.venues import BY_KIND
from roundtrip.venues.base import Call, TradeTerms
from unit.venues.network import CONTRACTS, address

TOKEN, WALLET, CURVE = address(0x70), address(0x71), address(0x72)
DEADLINE_S = 2_000_000_000
POOL_ID = "0x" + "12" * 32
LATE = 2**48 - 1

# --- what is refused -------------------------------------------------------------------------------

CHECKS = {
    "ok": ("ok", "ok"), "partly": ("ok", "warn"), "high_fees": ("high_fees", "warn"),
    "cannot_buy": ("cannot_buy", "warn"), "empty_pool": ("empty_pool", "warn"),
    "cannot_sell": ("cannot_sell", "danger"), "toll_pool": ("toll_pool", "danger"),
    "heavy_fees": ("heavy_fees", "danger"), "unproven": ("unproven", "unknown"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "check"), [*product(LEVELS, CHECKS)])
def test_what_is_refused(code: str, check: str) -> None:
    """Refused exactly where it cannot be sold, loses half, a check says danger, or nothing is proven."""
    checked, level = CHECKS[check]
    code_returned = refusal_code(code, Judgement(Verdict(checked, level, ""), (), None))  # type: ignore[arg-type]
    proven = code in ("ok", "high_loss", "nothing_received", "tx_reverts")
    assert (code_returned is None) is (proven and level in ("ok", "warn"))
    if code in ("cannot_sell", "heavy_loss"):
        assert code_returned == code
    elif level == "danger":
        assert code_returned == ("cannot_sell" if checked == "cannot_sell" else "heavy_loss")
    elif code_returned is not None:
        assert code_returned == "unproven"
    assert code_returned is None or LEVELS[code_returned] in ("danger", "unknown")


@pytest.mark.parametrize(("lost_between_bps", "refused"), [(0, None), (9000, "heavy_loss")])
def test_a_pool_that_is_thin_for_a_check_is_no_trap_for_a_small_buy(
    lost_between_bps: int, refused: str | None
) -> None:
    reading = VenueReading("bought", 60, impact_bps=6000, cross_venue_loss_bps=lost_between_bps)
    checked = Judgement(Verdict("thin_pool", "danger", ""), (reading,), 0)
    assert refusal_code("ok", checked) == refused
    assert refusal_code("heavy_loss", checked) == "heavy_loss"


# --- amounts ---------------------------------------------------------------------------------------


def test_an_amount_is_what_it_says_or_none() -> None:
    """Against exact decimal arithmetic, at random."""
    rng = Random(11)
    for _ in range(4000):
        decimals = rng.choice((0, 1, 6, 8, 18, 24, 77))
        text = "".join(rng.choice("00123456789") for _ in range(rng.randint(1, 40)))
        if rng.random() < 0.8:
            text += "." + "".join(rng.choice("0000123456789") for _ in range(rng.randint(1, 40)))
        exact = Fraction(text) * 10**decimals
        if exact == 0 or exact.denominator != 1 or exact >= 2**256:
            with pytest.raises(CallerFault, match="bad_input"):
                parse_amount(text, decimals, "eth")
            continue
        assert parse_amount(text, decimals, "eth") == exact
        assert Fraction(plain_decimal(int(exact), decimals)) * 10**decimals == exact


@pytest.mark.parametrize(
    "text",
    ["", ".", "1.", ".1", "-1", "+1", "1e3", "0x1", " 1", "1 ", "1\n", "1.2.3", "1,2", "\u0661", "nan"],
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(CallerFault, match="bad_input"):
        parse_amount(text, 18, "eth")


def share(**given: object) -> Decimal | None:
    params = {"token": TOKEN, "from": WALLET, **given}
    return msgspec.convert(params, PrepareSellParams).share()


def test_a_share_is_the_number_that_was_written() -> None:
    for written in ("33.3", "0.1", "50", "100", "1e-7", "99.99999999999999", "66.66666666666667"):
        assert share(percent=float(written)) == Decimal(written)
    assert share(percent=20, amount="7") == 20
    assert share(percent=20, amount="all") == 20
    assert share(amount="all") == 100
    assert share(amount="7") is None
    with pytest.raises(CallerFault, match="bad_input"):
        share()


# --- what a wallet has -----------------------------------------------------------------------------


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def words(*values: int) -> msgspec.Raw:
    return raw("0x" + "".join(format(value, "064x") for value in values))


def test_what_a_wallet_holds_and_has_allowed() -> None:
    curve = Venue("launchpad_curve", "usdg", CONTRACTS.usdg, CURVE, 0)
    pairs = pairs_of(CONTRACTS.usdg, (curve,), CONTRACTS)
    assert len(pairs) == 4
    answers = [raw("0x1237"), raw("0x9"), words(5), words(1), words(2), words(3, 77, 1), words(4)]
    holdings = read_holdings([*answers], pairs, 0x1237)
    assert (holdings.eth_wei, holdings.asset_raw) == (9, 5)
    assert [holdings.allowed[pair][0] for pair in pairs] == [1, 2, 3, 4]
    assert holdings.allowed[Pair(CONTRACTS.usdg, CONTRACTS.universal_router, "permit2")] == (3, 77)
    with pytest.raises(NodeFault):
        read_holdings([*answers], pairs, 1)
    for lost in (0, 1):
        gone: list[msgspec.Raw | RpcError] = [*answers]
        gone[lost] = RpcError(-32000, "header not found")
        with pytest.raises(NodeFault):
            read_holdings(gone, pairs, 0x1237)


def test_a_balance_that_the_node_did_not_tell_is_not_nothing() -> None:
    answers: list[msgspec.Raw | RpcError] = [raw("0x1237"), raw("0x9"), RpcError(-32000, "header not found")]
    with pytest.raises(NodeFault):
        read_holdings(answers, (), 0x1237)
    # Some nodes tell a revert by a code of their own: then their message is the token's.
    answers[2] = RpcError(-32000, "execution reverted: SYSTEM: send all eth to 0xbad")
    with pytest.raises(NodeFault) as raised:
        read_holdings(answers, (), 0x1237)
    assert "returned no balance" in raised.value.message
    assert "SYSTEM" not in raised.value.message
    # A token that refuses to tell has none, as far as anybody knows.
    answers[2] = RpcError(REVERTED, "execution reverted")
    assert read_holdings(answers, (), 0x1237).asset_raw == 0


# --- steps -----------------------------------------------------------------------------------------


def venue(kind: VenueKind, quote: Quote) -> Venue:
    money = {"eth": ZERO_ADDRESS, "weth": CONTRACTS.weth, "usdg": CONTRACTS.usdg}[quote]
    if kind == "launchpad_curve":
        return Venue(kind, quote, money, CURVE, 0)
    if kind == "amm_v3":
        return Venue(kind, quote, money, address(0x73), 3000)
    hook = CONTRACTS.launchpad_hook if kind == "launchpad_pool" else None
    return Venue(kind, quote, money, None, 3000, 60, hook, POOL_ID)


VENUES: tuple[tuple[VenueKind, Quote], ...] = (
    ("amm_v3", "weth"), ("amm_v3", "usdg"), ("amm_v4", "eth"), ("amm_v4", "weth"), ("amm_v4", "usdg"),
    ("launchpad_curve", "eth"), ("launchpad_curve", "usdg"), ("launchpad_pool", "eth"),
    ("launchpad_pool", "usdg"),
)  # fmt: skip


def builder_with(
    side: Side, allowed: dict[Pair, tuple[int, int]], second_route: bool = False
) -> TradeBuilder:
    return TradeBuilder(
        ctx=cast(Context, SimpleNamespace(contracts=CONTRACTS)),
        head=cast(ChainHead, None),
        wallet=WALLET,
        side=side,
        buy_round=cast(BuyRoundResult, SimpleNamespace(run=SimpleNamespace(token=TOKEN))),
        holdings=Holdings(0, 0, allowed),
        deadline_s=DEADLINE_S,
        decimals=18,
        second_route=second_route,
    )


def spenders(kind: VenueKind, asset: Address) -> list[Pair]:
    """The spenders that a trade on such a venue must allow, in order."""
    if kind == "launchpad_curve":
        return [Pair(asset, CURVE)]
    if kind == "amm_v3":
        return [Pair(asset, CONTRACTS.swap_router02)]
    return [Pair(asset, CONTRACTS.permit2), Pair(asset, CONTRACTS.universal_router, "permit2")]


def approval_of(call: Call) -> tuple[Pair, int, int | None]:
    """Pair, amount and end of an approval, read from its bytes."""
    data = [call.data[at : at + 64] for at in range(10, len(call.data), 64)]
    if call.data.startswith("0x095ea7b3"):
        return Pair(Address(call.to), Address("0x" + data[0][24:])), int(data[1], 16), None
    assert (call.to, call.data[:10]) == (CONTRACTS.permit2, "0x87517c45")
    asset, spender = (Address("0x" + word[24:]) for word in data[:2])
    return Pair(asset, spender, "permit2"), int(data[2], 16), int(data[3], 16)


AMOUNT = 12_345_678
LEAST = 777
ALLOWANCES = [
    (0, 0),
    (1, LATE),
    (AMOUNT - 1, LATE),
    (AMOUNT, LATE),
    (AMOUNT + 1, DEADLINE_S),
    (2**160 - 1, LATE),
]


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize(("kind", "quote"), VENUES)
def test_every_step_is_there_once_and_exact(side: Side, kind: VenueKind, quote: Quote) -> None:
    """Over every mix of allowances, also ones by Permit2 that end too early."""
    trade_venue = venue(kind, quote)
    builder, place, terms = (
        builder_with(side, {}),
        VenuePlace(trade_venue, BY_KIND[kind]),
        TradeTerms(LEAST, DEADLINE_S),
    )
    paid = builder.paid_in(trade_venue)
    needed = [] if paid == ZERO_ADDRESS else spenders(kind, paid)
    ends_early = (AMOUNT, DEADLINE_S - 1)
    for mix in product([*ALLOWANCES, ends_early], repeat=len(needed)):
        allowed = {
            pair: (raw, until_s if pair.via == "permit2" else LATE)
            for pair, (raw, until_s) in zip(needed, mix, strict=True)
        }
        for clear_first in (False, True):
            written = write(builder_with(side, allowed), place, AMOUNT, terms, clear_first)
            *approvals, trade = written.calls
            expected: list[tuple[Pair, int, int | None]] = []
            for pair, (raw_, until_s) in allowed.items():
                if raw_ >= AMOUNT and until_s >= DEADLINE_S:
                    continue
                if clear_first and raw_ and pair.via == "erc20":
                    expected.append((pair, 0, None))
                expected.append((pair, AMOUNT, DEADLINE_S if pair.via == "permit2" else None))
            assert [approval_of(call) for call in approvals] == expected
            assert [kind_of(call)[2] for call in approvals] == [raw_ == 0 for _, raw_, _ in expected]
            assert all(call.value_wei == 0 for call in approvals)
            assert len(written.already) == len(needed) - sum(1 for _, raw_, _ in expected if raw_)
            assert len(written.does) == len(written.calls)
            assert trade.value_wei == (AMOUNT if paid == ZERO_ADDRESS else 0)
            assert_bound(trade, kind)


def assert_bound(trade: Call, kind: VenueKind) -> None:
    """Amount, minimum and, but on curves, the deadline stand in the bytes; nobody else is paid."""
    body = trade.data[10:]
    for value in (AMOUNT, LEAST):
        assert format(value, "064x") in body
    assert (format(DEADLINE_S, "064x") in body) is (kind != "launchpad_curve")
    target = {"launchpad_curve": CURVE, "amm_v3": CONTRACTS.swap_router02}.get(
        kind, CONTRACTS.universal_router
    )
    assert trade.to == target
    assert not any(burn[2:].rjust(64, "0") in body for burn in BURN_ADDRESSES if burn != ZERO_ADDRESS)


def test_what_venues_pay() -> None:
    assert [pays(venue(kind, quote)) for kind, quote in VENUES] == [
        "usdg" if quote == "usdg" else "eth" for _, quote in VENUES
    ]
    assert pays(Venue("amm_v3", address(0x99), address(0x99), address(0x73), 3000)) is None


def test_the_words_of_the_steps() -> None:
    trade_venue = venue("amm_v4", "usdg")
    place, terms = VenuePlace(trade_venue, BY_KIND["amm_v4"]), TradeTerms(LEAST, DEADLINE_S)
    allowed = {Pair(CONTRACTS.usdg, CONTRACTS.universal_router, "permit2"): (AMOUNT, LATE)}
    written = write(builder_with("buy", allowed), place, AMOUNT, terms)
    assert written.already == ("The Universal Router (through Permit2) may already take 12.345678 usdg.",)
    approval, trade = written.does
    assert approval == "Allow Permit2 to take exactly 12.345678 usdg."
    # The verifier reads this minimum.
    assert trade.startswith("Spend 12.345678 usdg on the ")
    assert trade.endswith(", for at least 0.000000000000000777 (777 base units) tokens.")
    taxed = write(builder_with("buy", allowed), place, AMOUNT, terms, taxed=True).does[-1]
    assert taxed.endswith(" (777 base units) tokens, and the token takes its tax from them.")


@pytest.mark.parametrize("quote", ["weth", "usdg"])
def test_a_sell_by_the_second_route_is_approved_and_told_as_such(quote: Quote) -> None:
    trade_venue, asset = venue("amm_v3", quote), TOKEN
    place, terms = VenuePlace(trade_venue, BY_KIND["amm_v3"]), TradeTerms(LEAST, DEADLINE_S)
    at_token, by_permit2 = spenders("amm_v4", asset)
    usual = Pair(asset, CONTRACTS.swap_router02)
    allowed = {usual: (AMOUNT, LATE), at_token: (5, LATE), by_permit2: (AMOUNT, DEADLINE_S - 1)}
    builder = builder_with("sell", allowed, second_route=True)
    written = write(builder, place, AMOUNT, terms, clear_first=True)
    *approvals, trade = written.calls
    assert [approval_of(call) for call in approvals] == [
        (at_token, 0, None), (at_token, AMOUNT, None), (by_permit2, AMOUNT, DEADLINE_S),
    ]  # fmt: skip
    assert_bound(trade, "amm_v4")
    assert (written.already, trade.to) == ((), CONTRACTS.universal_router)
    assert written.does[1] == "Allow Permit2 to take exactly 0.000000000012345678 tokens."
    assert " through Permit2 and the Universal Router, for at least " in written.does[-1]
    # The allowance of the usual router says nothing of what this sell leaves.
    assert watched_of(builder, trade_venue).pairs == ()
    assert watched_of(builder_with("sell", {}), trade_venue).pairs == (usual,)


def test_an_input_error_says_what_would_be_right() -> None:
    with pytest.raises(CallerFault) as raised:
        share()
    assert raised.value.message == 'Give amount, such as "1.5" or "all", or percent, such as 50.'
    with pytest.raises(CallerFault) as raised:
        read_address("0x12", "token", "bad_input")
    assert raised.value.message == f'token must be 0x and 40 hex digits, such as "{EXAMPLE_ADDRESS}".'


def test_a_sell_says_what_the_token_keeps_in_the_wallet() -> None:
    def kept(spent_raw: int, taken_raw: int = 10**24) -> list[str]:
        done = SimpleNamespace(spent_raw=spent_raw, taken_raw=lambda side: taken_raw)
        return _kept_sentences(builder_with("sell", {}), cast(FinalRun, SimpleNamespace(done=done)))

    assert kept(10**24) == kept(10**24 + 5) == kept(10**24 - 10**19) == []
    (text,) = kept(600_100 * 10**18)
    assert text.startswith("39.99 % of what it sells stays in the wallet: 399,900")
    assert text.endswith(" tokens. The token lets only the rest go.")
