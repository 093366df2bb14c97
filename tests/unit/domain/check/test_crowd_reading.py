"""Which wallets of a crowd met something else, and which difference alone leads to it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_reading import MainSells, differing, read_crowd, taken_bps
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CrowdSale,
    CrowdTrade,
    Difference,
    Missing,
    NotTried,
    RefusedCall,
    Sold,
)
from roundtrip.domain.check.sales import SellResult
from unit.domain.builders import sold
from unit.domain.crowds import (
    CHOICES,
    FATES,
    GONE,
    ITS_OWN,
    MAIN,
    NO_BUY,
    PAUSED,
    crowd,
    crowd_sale,
    findings,
    isolated,
    main,
    read,
    sale,
    trade,
    wallet,
)

MARGIN = POLICY.crowd_margin_bps
EDGE = 60 + MARGIN
"""The main wallet loses 0.60 %."""
NOTHING_SOLD = replace(sold(), sold_raw=0)


def differs(met: CrowdTrade, than: MainSells = MAIN) -> bool:
    return differing(crowd(met, count=3), than, POLICY) == [0]


# --- what a sale shows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "taken"),
    [
        (CrowdSale(100, 100, 100, 100, 50, 50), 0),
        (CrowdSale(100, 90, 90, 90, 50, 50), 1000),
        (CrowdSale(100, 100, 100, 70, 50, 50), 3000),
        (CrowdSale(100, 100, 100, 100, 50, 45), 1000),
        (CrowdSale(100, 50, 50, 25, 50, 25), 8750),
        (CrowdSale(100, 100, 100, 0, 0, 0), BPS),
        (CrowdSale(100, 0, 100, 0, 0, 0), BPS),
        (CrowdSale(100, 100, 100, 100, 50, -9), BPS),
        # More than the venue gave is no gain that makes up for a tax.
        (CrowdSale(100, 300, 300, 150, 50, 50), 5000),
        # A fee that a hook sets for each swap, alone and beside a tax of a tenth.
        (CrowdSale(100, 100, 100, 100, 50, 50, pool_bps=3000), 3000),
        (CrowdSale(100, 100, 100, 100, 50, 45, pool_bps=3000), 3700),
        # What the venue does not report counts as taken.
        (CrowdSale(0, 100, 100, 100, 50, 50), BPS),
    ],
)
def test_what_the_token_took_is_read_from_the_pairs(actual: CrowdSale, taken: int) -> None:
    assert taken_bps(actual) == taken


@settings(max_examples=100, deadline=None)
@given(st.tuples(*[st.integers(0, 10**30)] * 6))
def test_what_was_taken_is_a_share(amounts: tuple[int, ...]) -> None:
    assert 0 <= taken_bps(CrowdSale(*amounts)) <= BPS


# --- what is expected ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_s", "expected"),
    [
        (1, 10),
        (13, 10),
        (14, 20),
        (3599, 20),
        (3600, 20),
        (3601, 30),
        (86_399, 30),
        (86_400, 30),
        (86_413, 30),
    ],
)
def test_the_main_sells_around_a_moment_bound_the_loss(after_s: int, expected: int) -> None:
    than = MainSells(sale(10), sale(20), sale(30))
    assert than.expected_loss_bps(wallet(after_s=after_s), POLICY) == expected
    falling = MainSells(sale(30), sale(20), sale(10))
    by = {10: 30, 20: 20, 30: 10}
    between = 30 if 13 < after_s < 3600 else 20 if 3600 < after_s < 86_400 else by[expected]
    assert falling.expected_loss_bps(wallet(after_s=after_s), POLICY) == between


@pytest.mark.parametrize("after_s", [13, 100, 3600, 86_400])
def test_where_only_pieces_sold_a_sale_of_a_piece_must_not_be_refused(after_s: int) -> None:
    than = MainSells(PAUSED, PAUSED, PAUSED, only_pieces=True)
    piece_wei = POLICY.probe_wei // POLICY.small_pieces
    assert differs(trade(PAUSED, size_wei=piece_wei, after_s=after_s), than)
    assert differs(trade(PAUSED, size_wei=piece_wei, again_wei=piece_wei, share_bps=5000), than)
    assert not differs(trade(PAUSED, size_wei=piece_wei + 1, after_s=after_s), than)
    assert not differs(trade(PAUSED, size_wei=piece_wei, again_wei=piece_wei, share_bps=5001), than)
    # Of its loss nothing is known.
    assert not differs(trade(crowd_sale(9000), size_wei=piece_wei), than)
    assert not differs(trade(PAUSED, size_wei=piece_wei), replace(than, only_pieces=False))


def test_of_a_capped_token_those_that_sell_too_much_are_not_counted() -> None:
    than = MainSells(PAUSED, PAUSED, PAUSED, only_pieces=True)
    small = trade(PAUSED, size_wei=POLICY.probe_wei // POLICY.small_pieces)
    actual = read(crowd(small, trade(PAUSED), tries=isolated(wallet=PAUSED)), than)
    assert (actual.differing, actual.refused, actual.trapped) == (1, 1, True)


def test_where_the_main_wallet_sold_a_part_the_rest_counts_as_lost() -> None:
    """As it does for a wallet of the crowd: it sold 70 % for a loss of 10 %."""
    than = replace(MAIN, soon=sale(1000, 7000, whole=False))
    assert than.expected_loss_bps(wallet(), POLICY) == BPS - 6300
    assert not differs(trade(crowd_sale(BPS - 6300 + MARGIN)), than)
    assert differs(trade(crowd_sale(BPS - 6300 + MARGIN + 1)), than)
    assert differs(trade(PAUSED), than)


@pytest.mark.parametrize("bad", [PAUSED, GONE, None], ids=["no", "gone", "none"])
@pytest.mark.parametrize(
    ("at", "known"), [("soon", (3600, 3601, 86_400)), ("hour", (13, 86_400)), ("day", (13, 100, 3600))]
)
def test_around_a_moment_at_which_the_main_wallet_did_not_sell_nothing_is_expected(
    bad: SellResult, at: str, known: tuple[int, ...]
) -> None:
    than = replace(MAIN, **{at: bad})  # type: ignore[arg-type]
    for after_s in (13, 100, 3600, 3601, 86_400):
        expected = than.expected_loss_bps(wallet(after_s=after_s), POLICY)
        assert expected == (60 if after_s in known else None)
    assert than.expected_loss_bps(wallet(way="pieces"), POLICY) is None


def test_pieces_are_expected_to_lose_as_much_as_any_of_the_three() -> None:
    for losses in ((90, 1, 2), (1, 90, 2), (1, 2, 90)):
        main = MainSells(*(sale(loss) for loss in losses))  # type: ignore[arg-type]
        assert main.expected_loss_bps(wallet(way="pieces"), POLICY) == 90


@pytest.mark.parametrize(
    ("loss_bps", "grown_bps", "expected_bps"),
    [(-366, 25_600, 5951), (60, 20_000, 5030), (60, 10_000, 60), (60, 5_000, 60), (-100, 10_100, 0)],
)
def test_what_growth_gave_the_main_wallet_back_is_expected_to_be_lost(
    loss_bps: int, grown_bps: int, expected_bps: int
) -> None:
    """A wallet of the crowd sells no more than it bought, at the same price."""
    main = replace(MAIN, day=sale(loss_bps), grown_bps=(BPS, BPS, grown_bps))
    assert main.expected_loss_bps(wallet(after_s=86_400), POLICY) == expected_bps
    assert main.expected_loss_bps(wallet(after_s=3600), POLICY) == 60


# --- which differ -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (crowd_sale(), False),
        (crowd_sale(EDGE), False),
        (crowd_sale(EDGE + 1), True),
        (crowd_sale(arrived_bps=BPS - EDGE), False),
        (crowd_sale(arrived_bps=BPS - EDGE - 1), True),
        (crowd_sale(back_bps=BPS - EDGE - 1), True),
        (crowd_sale(planned_bps=5000), False),
        (replace(crowd_sale(), received_raw=12 * 10**23), False),
        (PAUSED, True),
        (RefusedCall("sell", None, 1), True),
        (RefusedCall("approve", "no", 1), True),
        (RefusedCall("arrive", "nothing", 1), True),
        (ITS_OWN, True),
        # Costs nothing, or is not known, or is a tax that is named as one.
        (NO_BUY, False),
        (RefusedCall("fund", None, 1), False),
        (GONE, False),
        (RefusedCall("sell", "CurrencyNotSettled", 1), True),
    ],
    ids=["sold", "at the edge", "beyond it", "arrived at the edge", "arrived beyond", "back beyond", "half",
         "grown", "refused", "no reason", "approval", "nothing arrived", "its own fault",
         "no buy", "no money", "the node's fault", "settled short"],
)  # fmt: skip
def test_a_wallet_differs_that_met_something_else(outcome: object, expected: bool) -> None:
    assert differs(trade(outcome)) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("step", "way", "expected"), [
    ("sell", "second route", False), ("approve", "second route", True), ("sell", "pieces", True),
])  # fmt: skip
def test_only_the_second_routes_own_reason_is_a_tax(step: str, way: str, expected: bool) -> None:
    short = RefusedCall(step, "CurrencyNotSettled", 1)  # type: ignore[arg-type]
    assert differs(trade(short, way=way)) is expected


def test_where_the_main_wallet_loses_much_a_wallet_may_too() -> None:
    assert not differs(trade(crowd_sale(3000)), main(soon=sale(2500)))
    assert differs(trade(crowd_sale(3001)), main(soon=sale(2500)))


def test_a_gain_of_the_main_wallet_is_not_expected_of_others() -> None:
    assert not differs(trade(crowd_sale(MARGIN)), main(soon=sale(-900)))
    assert differs(trade(crowd_sale(MARGIN + 1)), main(soon=sale(-900)))


@pytest.mark.parametrize("after_s", [13, 100, 3600, 4000, 86_400])
def test_where_the_main_wallet_did_not_sell_around_it_none_differs(after_s: int) -> None:
    than = MainSells(PAUSED, PAUSED, PAUSED)
    assert not differs(trade(PAUSED, after_s=after_s), than)


def test_the_numbers_of_those_that_differ_are_in_order() -> None:
    known = crowd(trade(), trade(PAUSED), trade(NO_BUY), trade(crowd_sale(9000)))
    assert differing(known, MAIN, POLICY) == [1, 3]


# --- causes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [*FATES, *CHOICES])
def test_one_difference_that_is_refused_is_the_cause(cause: Difference) -> None:
    actual = isolated(as_drawn=PAUSED, **{cause.replace(" ", "_"): PAUSED})
    (finding,) = findings(trade(PAUSED), tries=actual)
    assert (finding.cause, finding.refused, finding.loss_bps) == (cause, True, BPS)
    assert finding.refusal == PAUSED
    assert finding.trade == trade(PAUSED)


def test_of_a_token_that_sells_only_soon_the_blocks_say_no_more_than_the_time() -> None:
    """Alone, a wallet of the crowd sells a little later than the main wallet did."""
    known = crowd(trade(PAUSED), tries=isolated(blocks=PAUSED, wallet=PAUSED))
    causes = {}
    for later in (sale(), PAUSED):
        than = MainSells(sale(), later, PAUSED)
        reading = read_crowd(known, than, POLICY)
        causes[later] = (reading.findings[0].cause, reading.trapped)
    assert causes == {sale(): ("blocks", True), PAUSED: ("time", False)}


@pytest.mark.parametrize("cause", [*FATES, *CHOICES])
def test_one_difference_that_costs_more_is_the_cause(cause: Difference) -> None:
    (finding,) = findings(
        trade(crowd_sale(9000)), tries=isolated(**{cause.replace(" ", "_"): sold(EDGE + 1)})
    )
    # What it lost in company for what it is, or for what others did, counts, however mild it is alone.
    loss_bps = 9000 if cause in FATES else EDGE + 1
    assert (finding.cause, finding.refused, finding.loss_bps) == (cause, False, loss_bps)
    assert finding.refusal is None
    (other,) = findings(trade(crowd_sale(9000)), tries=isolated(**{cause.replace(" ", "_"): sold(EDGE)}))
    assert other.cause == "not alone"


def test_causes_have_an_order() -> None:
    """Of several the first: what a wallet does not choose, before what it does."""
    order = [*FATES, *CHOICES]
    for n, cause in enumerate(order):
        bad: dict[str, CellOutcome] = {later.replace(" ", "_"): PAUSED for later in order[n:]}
        (finding,) = findings(trade(PAUSED), tries=isolated(**bad))
        assert finding.cause == cause


def test_the_expected_loss_alone_is_the_worst_of_the_main_sells() -> None:
    known = crowd(trade(PAUSED), tries=isolated(tip=sold(900)))
    assert read(known, main(day=sale(400))).findings[0].cause == "not alone"
    assert read(known, main(day=sale(399))).findings[0].cause == "tip"


@pytest.mark.parametrize(
    ("outcome", "cause", "refused"),
    [
        (NOTHING_SOLD, "size", True),
        (replace(sold(), sold_raw=4 * 10**23, back_raw=4 * 10**16), "size", True),
        (replace(sold(), sold_raw=6 * 10**23, back_raw=6 * 10**16), "size", False),
        (replace(sold(), sold_raw=9 * 10**23, back_raw=9 * 10**16), "not alone", True),
        (NO_BUY, "not alone", True),
        (RefusedCall("fund", None, 1), "not alone", True),
        (RefusedCall("approve", "no", 1), "size", True),
    ],
    ids=["nothing moved", "short", "half short", "a tenth short", "buy", "fund", "approval"],
)
def test_what_counts_as_bad_alone(outcome: Sold | RefusedCall, cause: str, refused: bool) -> None:
    (finding,) = findings(trade(PAUSED), tries=isolated(size=outcome))
    assert (finding.cause, finding.refused) == (cause, refused)


@pytest.mark.parametrize(("sold_bps", "cause"), [(5000, "not alone"), (3999, "size")])
def test_a_sale_is_short_where_it_sells_a_smaller_part_than_the_main_one(sold_bps: int, cause: str) -> None:
    share = 10**24 * sold_bps // BPS
    tries = isolated(size=replace(sold(), sold_raw=share, back_raw=share // 10**7))
    (finding,) = read(crowd(trade(PAUSED), tries=tries), main(day=sale(60, 5000, whole=False))).findings
    assert finding.cause == cause


@pytest.mark.parametrize(("share_bps", "cause"), [(8999, "pieces"), (9000, "not alone"), (BPS, "not alone")])
def test_pieces_are_the_cause_where_one_of_them_failed(share_bps: int, cause: str) -> None:
    actual = isolated(pieces=sold(60, share_bps))
    (finding,) = findings(trade(PAUSED, way="pieces"), tries=actual)
    assert (finding.cause, finding.refused) == (cause, True)


def test_a_part_by_share_is_no_short_sale() -> None:
    (finding,) = findings(trade(PAUSED, share_bps=5000), tries=isolated(share=sold(60, 5000)))
    assert finding.cause == "not alone"


def test_what_no_single_difference_shows_several_together_may() -> None:
    (finding,) = findings(trade(PAUSED), tries=isolated(as_drawn=PAUSED))
    assert (finding.cause, finding.refused, finding.loss_bps) == ("together", True, BPS)
    (finding,) = findings(trade(crowd_sale(4000)), tries=isolated(as_drawn=sold(4000)))
    assert (finding.cause, finding.refused, finding.loss_bps) == ("together", False, 4000)


@pytest.mark.parametrize(
    ("outcome", "refused", "refusal"), [(PAUSED, True, PAUSED), (crowd_sale(4000), False, None)]
)
def test_what_was_not_met_alone_is_named_so(outcome: object, refused: bool, refusal: object) -> None:
    (finding,) = findings(trade(outcome), tries=isolated())  # type: ignore[arg-type]
    assert (finding.cause, finding.refused, finding.refusal) == ("not alone", refused, refusal)
    assert finding.loss_bps == 0


def test_what_is_met_only_after_the_whole_crowds_buys_was_marked_at_the_buy() -> None:
    (finding,) = findings(trade(PAUSED), tries=isolated(in_company=PAUSED))
    assert (finding.cause, finding.refused, finding.loss_bps) == ("company", True, BPS)
    (finding,) = findings(trade(crowd_sale(4000)), tries=isolated(in_company=sold(4000)))
    assert (finding.cause, finding.refused, finding.loss_bps) == ("company", False, 4000)
    (finding,) = findings(trade(PAUSED), tries=isolated(as_drawn=PAUSED, in_company=PAUSED))
    assert finding.cause == "together"


def test_a_wallet_that_is_marked_at_its_buy_is_in_a_trap() -> None:
    actual = read(crowd(trade(PAUSED), tries=isolated(in_company=PAUSED)))
    assert (actual.trapped, actual.loss_bps) == (True, BPS)
    actual = read(crowd(trade(crowd_sale(4000)), tries=isolated(in_company=sold(4000))))
    assert (actual.trapped, actual.loss_bps) == (False, 4000)
    assert read(crowd(trade(PAUSED), tries=isolated(in_company=GONE))).trapped == GONE


def test_several_wallets_have_a_finding_each() -> None:
    odd = trade(PAUSED, number=0), trade(number=1), trade(crowd_sale(4000), number=2)
    actual = isolated(0, wallet=PAUSED) + isolated(2, tip=sold(4000))
    assert [(f.trade, f.cause) for f in findings(*odd, tries=actual)] == [(odd[0], "wallet"), (odd[2], "tip")]


# --- the crowd as a whole -----------------------------------------------------------------------------


def test_a_sound_crowd_shows_nothing() -> None:
    actual = read(crowd(untried=7))
    assert (actual.traded, actual.differing, actual.drawn) == (20, 0, 27)
    assert (actual.findings, actual.trapped, actual.loss_bps) == ((), False, 0)
    assert not actual.warns()
    assert actual.trap() is None


@pytest.mark.parametrize(("traded", "refused", "untried", "warns"), [(10, 5, 5, False), (9, 5, 5, True)])
def test_a_crowd_of_which_few_could_trade_warns(traded: int, refused: int, untried: int, warns: bool) -> None:
    """It found nothing, which is no pass."""
    no_buys = tuple(trade(NO_BUY) for _ in range(refused))
    actual = read(crowd(*no_buys, count=traded + refused, untried=untried))
    assert (actual.traded, actual.drawn) == (traded, traded + refused + untried)
    assert actual.warns() is warns


def test_a_crowd_that_lacks_gas_warns() -> None:
    """A token may burn gas to keep it away."""
    dear = tuple(trade(NotTried("gas")) for _ in range(20))
    assert read(crowd(*dear, count=39)).warns()
    assert not read(crowd(*dear, count=40)).warns()


@pytest.mark.parametrize("cause", [*FATES, *CHOICES])
def test_only_what_nobody_chooses_is_a_trap(cause: Difference) -> None:
    actual = read(crowd(trade(PAUSED), tries=isolated(**{cause.replace(" ", "_"): PAUSED})))
    assert actual.trapped is (cause in FATES)
    assert actual.warns()
    assert actual.loss_bps == (BPS if cause in FATES else 0)
    assert actual.trap() == (actual.findings[0] if cause in FATES else None)


@pytest.mark.parametrize("cause", [*FATES, "size", "time", "tip"])
def test_a_loss_counts_where_nobody_chooses_it_and_at_any_time(cause: Difference) -> None:
    known = crowd(trade(crowd_sale(4000)), tries=isolated(**{cause.replace(" ", "_"): sold(4000)}))
    actual = read(known)
    assert actual.trapped is False
    assert actual.loss_bps == (4000 if cause in (*FATES, "time") else 0)


def test_the_worst_of_several_losses_counts() -> None:
    odd = trade(crowd_sale(4000)), trade(crowd_sale(4000))
    actual = read(crowd(*odd, tries=isolated(0, wallet=sold(3000)) + isolated(1, others=sold(4000))))
    assert actual.loss_bps == 4000


def test_what_differs_and_was_not_tried_alone_is_not_known() -> None:
    actual = read(crowd(trade(PAUSED)))
    assert isinstance(actual.trapped, Missing)
    assert actual.trapped.fault == "node"
    assert (actual.differing, actual.findings) == (1, ())


@pytest.mark.parametrize("gap", [GONE, ITS_OWN])
def test_a_try_alone_of_unknown_result_is_not_known(gap: Missing) -> None:
    for cause in ("wallet", "others_sold", "size", "tip"):
        actual = read(crowd(trade(PAUSED), tries=isolated(**{cause: gap})))
        assert (actual.trapped, actual.findings) == (gap, ())


def test_a_known_cause_comes_before_an_unknown_one_after_it() -> None:
    actual = read(crowd(trade(PAUSED), tries=isolated(wallet=PAUSED, others=GONE)))
    assert actual.trapped is True
    actual = read(crowd(trade(PAUSED), tries=isolated(wallet=GONE, others=PAUSED)))
    assert actual.trapped == GONE


def test_others_are_not_blamed_where_a_little_less_alone_is_refused_too() -> None:
    """Such a token may have a least amount of a sale: then a smaller size is refused."""
    outcomes = {"nearly_all": PAUSED, "others": PAUSED, "others_sold": PAUSED, "size": PAUSED}
    actual = read(crowd(trade(PAUSED), tries=isolated(**outcomes)))
    assert (actual.trapped, [finding.cause for finding in actual.findings]) == (False, ["size"])


@pytest.mark.parametrize(("again_wei", "cause"), [(0, "wallet"), (10**16, "size")])
def test_nor_is_a_wallet_that_bought_twice(again_wei: int, cause: str) -> None:
    """Only of those a little less is tried."""
    odd = trade(PAUSED, again_wei=again_wei)
    actual = read(crowd(odd, tries=isolated(nearly_all=PAUSED, wallet=PAUSED, size=PAUSED)))
    assert [finding.cause for finding in actual.findings] == [cause]


def test_a_trap_is_one_whatever_else_is_unknown() -> None:
    odd = trade(PAUSED), trade(PAUSED), trade(GONE)
    actual = read(crowd(*odd, tries=isolated(0, wallet=GONE) + isolated(1, others=PAUSED)))
    assert actual.trapped is True


def test_a_wallet_that_the_node_lost_is_not_known() -> None:
    assert read(crowd(trade(), trade(GONE))).trapped == GONE


def test_wallets_of_unknown_result_did_not_trade_and_refused_ones_did() -> None:
    actual = read(crowd(trade(GONE), trade(ITS_OWN), trade(NO_BUY), trade(PAUSED)))
    assert (actual.traded, actual.differing) == (17, 2)


def test_who_sold_and_who_could_not_are_counted_apart() -> None:
    odd = (trade(PAUSED), trade(crowd_sale(5001)), trade(crowd_sale(5000)), trade(NO_BUY), trade(GONE))
    actual = read(crowd(*odd, count=7))
    assert (actual.traded, actual.differing, actual.refused, actual.sold) == (5, 3, 2, 3)


def test_the_largest_size_is_of_what_sold_whole_at_once() -> None:
    odd = (
        trade(size_wei=10**18, again_wei=5 * 10**17),
        trade(PAUSED, size_wei=2 * 10**18),
        trade(size_wei=3 * 10**18, way="pieces"),
        trade(size_wei=4 * 10**18, share_bps=5000),
        trade(crowd_sale(9000), size_wei=5 * 10**18),
    )
    assert read(crowd(*odd, count=5)).largest_wei == 15 * 10**17
    assert read(crowd(trade(PAUSED), count=1)).largest_wei == 0
