"""What is tried alone of a wallet that met something else: one difference at a time."""

from dataclasses import replace

import pytest
from msgspec import structs

from roundtrip.chain.simulate.crowd_outcomes import MemberBuys
from roundtrip.chain.simulate.crowd_plans import Attempt
from roundtrip.chain.simulate.request import StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_reading import CHOICES, MainSells
from roundtrip.domain.check.evidence import (
    Crowd,
    CrowdTrade,
    CrowdWallet,
    IsolatedTrade,
    Missing,
    NotTried,
    RefusedCall,
)
from roundtrip.domain.check.sales import Sale
from roundtrip.services.engine.crowd_sells import (
    CrowdSells,
    Isolation,
    choose_sellers,
    isolation_plan,
    isolations,
    measure_sellers,
    read_crowd_sells,
    read_isolation,
)
from unit.chain.crowds import traded
from unit.chain.samples import did, error_string, refused
from unit.chain.trades import WETH
from unit.domain.builders import NODE
from unit.domain.crowds import MAIN, PAUSED, crowd_sale
from unit.services.engine.crowds import bought, bought_on, drawn, session

RECEIVED = 10**18
BUY = bought(RECEIVED)
MAIN_RAW = RECEIVED * 9990 // BPS
DAY = tuple(Attempt(at_s, MAIN_RAW) for at_s in (13, 3600, 86_400))


def _sellers() -> CrowdSells:
    sells = choose_sellers(session(), bought_on(), None, BUY)
    assert isinstance(sells, CrowdSells)
    return sells


SELLS = _sellers()


def odd(**changes: object) -> CrowdWallet:
    """The smallest wallet of the crowd, in all else like the main one."""
    plain = replace(
        drawn()[0], again_wei=0, tip_wei=0, approves_all=False, after_s=13, share_bps=BPS, way="usual"
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def tried(*odds: CrowdWallet, outcome: object = PAUSED, later: tuple[int, ...] = ()) -> list[Isolation]:
    """What is tried of a crowd in which these differ, of which the first is a member."""
    members = (structs.replace(SELLS.members[0], wallet=odds[0]), *SELLS.members[1:])
    trades = tuple(CrowdTrade(drawn_wallet, outcome, 4) for drawn_wallet in odds)  # type: ignore[arg-type]
    sells = replace(SELLS, members=members)
    return isolations(session(), Crowd(trades), [sells], MAIN, ("probe", bought(RECEIVED, 1, *later)))


def by(actual: list[Isolation]) -> dict[str, Isolation]:
    return {isolation.difference: isolation for isolation in actual}


def test_where_none_differs_nothing_is_tried() -> None:
    assert tried(odd(), outcome=crowd_sale()) == []


def test_of_a_wallet_that_chose_nothing_only_its_size_its_moment_and_its_fate_are_tried() -> None:
    fates = ["blocks", "wallet", "nearly all", "others", "others sold"]
    assert list(by(tried(odd()))) == ["as drawn", *fates, "size", "time"]


@pytest.mark.parametrize(
    ("changes", "choice"),
    [
        ({"share_bps": 5000}, "share"),
        ({"way": "pieces"}, "pieces"),
        ({"way": "second route"}, "route"),
        ({"approves_all": True}, "approval"),
        ({"tip_wei": 5}, "tip"),
        ({"delegates": True}, "code"),
    ],
)
def test_each_choice_is_tried_where_the_wallet_made_it(changes: dict[str, object], choice: str) -> None:
    actual = by(tried(odd(**changes)))
    assert [name for name in CHOICES if name in actual] == [
        name for name in CHOICES if name in ("size", "time", choice)
    ]
    assert ("as drawn" in actual) is (choice != "pieces")


@pytest.mark.parametrize("after_s", [13, 100, 3600, 86_400])
def test_it_is_tried_as_late_as_it_sold_among_others(after_s: int) -> None:
    """It waited for the last of the buys, four seconds."""
    actual = by(tried(odd(after_s=after_s)))
    assert [attempt.after_s for attempt in actual["time"].attempts] == [after_s + 4]
    assert [attempt.after_s for attempt in actual["as drawn"].attempts] == [after_s + 4]


def test_a_choice_is_tried_at_a_moment_at_which_the_main_wallet_sold() -> None:
    crowd = Crowd((CrowdTrade(odd(after_s=3600, tip_wei=5), PAUSED, 4),))
    than = replace(MAIN, soon=PAUSED, day=PAUSED)
    actual = by(isolations(session(), crowd, [SELLS], than, ("probe", BUY)))
    moments = {name: [attempt.after_s for attempt in actual[name].attempts] for name in ("size", "tip")}
    assert moments == {"size": [3600], "tip": [3600]}


def test_where_only_pieces_sold_pieces_are_tried_alone() -> None:
    than = MainSells(PAUSED, PAUSED, PAUSED, only_pieces=True)
    small = odd(size_wei=10**15, share_bps=5000, after_s=100)
    sells = replace(SELLS, members=(structs.replace(SELLS.members[0], wallet=small), *SELLS.members[1:]))
    crowd = Crowd((CrowdTrade(small, PAUSED, 4),))
    actual = by(isolations(session(), crowd, [sells], than, ("probe", bought(RECEIVED))))
    piece_raw = RECEIVED // 50
    for difference in ("blocks", "wallet"):
        # Of both sizes: a small piece may be less than the token lets go.
        assert [attempt.raw for attempt in actual[difference].attempts] == [piece_raw, RECEIVED // 10] * 3
    assert [attempt.raw for attempt in actual["time"].attempts] == [piece_raw]
    assert [attempt.raw for attempt in actual["share"].attempts] == [piece_raw // 2]
    # Of its own size it sells all that it has.
    assert [attempt.raw for attempt in actual["size"].attempts] == [SELLS.members[0].held_raw]


def test_where_the_main_wallet_sold_a_part_all_and_that_part_are_tried_alone() -> None:
    than = replace(MAIN, hour=Sale(60, 7000, False, 7 * 10**17))
    crowd = Crowd((CrowdTrade(odd(), PAUSED, 4),))
    actual = by(isolations(session(), crowd, [SELLS], than, ("probe", bought(RECEIVED))))
    tried_raw = [(attempt.after_s, attempt.raw) for attempt in actual["blocks"].attempts]
    assert tried_raw == [(13, RECEIVED), (3600, RECEIVED), (3600, 7 * 10**17), (86_400, RECEIVED)]


def test_a_wallet_that_is_no_member_sold_at_no_moment_of_its_own() -> None:
    actual = by(isolations(session(), Crowd((CrowdTrade(odd(), PAUSED),)), [SELLS], MAIN, ("probe", BUY)))
    assert "time" not in actual


def test_each_try_keeps_one_difference() -> None:
    drawn_wallet = odd(
        size_wei=3 * 10**17, again_wei=10**17, tip_wei=9, approves_all=True, after_s=100, share_bps=5000,
        way="second route", purse_wei=10**18,
    )  # fmt: skip
    actual = by(tried(drawn_wallet))
    held = SELLS.members[0].held_raw
    plain = actual["others"].seller.wallet
    assert (plain.size_wei, plain.again_wei, plain.share_bps, plain.way) == (10**17, 0, BPS, "usual")
    assert (plain.tip_wei, plain.approves_all, plain.weth_wei, plain.usdg_raw) == (0, False, 0, 0)
    assert (actual["as drawn"].seller.wallet, actual["as drawn"].attempts) == (
        drawn_wallet,
        # Its second buy came a second after its first.
        (Attempt(105, held // 2),),
    )
    usual = replace(
        drawn_wallet,
        size_wei=75 * 10**15,
        again_wei=25 * 10**15,
        tip_wei=0,
        approves_all=False,
        share_bps=BPS,
        way="usual",
    )
    # A token may count a day from its last buy.
    assert (actual["wallet"].seller.wallet, actual["wallet"].attempts) == (
        usual,
        (*DAY, Attempt(86_401, MAIN_RAW)),
    )
    soon = (Attempt(13, RECEIVED),)
    assert {
        name: (actual[name].seller.wallet, actual[name].attempts) for name in CHOICES if name in actual
    } == {
        "size": (
            replace(plain, size_wei=3 * 10**17, again_wei=10**17),
            (Attempt(13, held), Attempt(14, held)),
        ),
        "time": (plain, (Attempt(104, RECEIVED),)),
        "share": (replace(plain, share_bps=5000), (Attempt(13, RECEIVED // 2),)),
        "route": (replace(plain, way="second route"), soon),
        "approval": (replace(plain, approves_all=True), soon),
        "tip": (replace(plain, tip_wei=9), soon),
    }


def test_a_wallet_that_bought_once_buys_the_probe_at_once_alone() -> None:
    usual = by(tried(odd(size_wei=10**18)))["wallet"].seller.wallet
    assert (usual.size_wei, usual.again_wei) == (POLICY.probe_wei, 0)


@pytest.mark.parametrize("difference", ["others", "others sold"])
def test_the_others_are_all_but_the_wallet(difference: str) -> None:
    actual = by(tried(odd()))[difference]
    assert [member.number for member in actual.others] == list(range(1, 26))
    assert actual.attempts == DAY
    sold = [step.label for block in isolation_plan(session(), WETH, actual).blocks for step in block.steps]
    assert any(label.startswith("m1-sell-") for label in sold) is (difference == "others sold")


def test_a_token_that_shrinks_leaves_less_to_try_with() -> None:
    actual = by(tried(odd(), later=(RECEIVED, RECEIVED, RECEIVED // 2)))
    assert [attempt.raw for attempt in actual["wallet"].attempts] == [RECEIVED, RECEIVED, RECEIVED // 2]


def test_three_wallets_are_tried_refused_ones_first_and_the_plainest_of_them() -> None:
    fancy, plain = odd(tip_wei=9, approves_all=True), odd()
    trades = (
        CrowdTrade(plain, crowd_sale(9000)),
        CrowdTrade(fancy, PAUSED),
        CrowdTrade(plain, PAUSED),
        CrowdTrade(fancy, crowd_sale(9000)),
        CrowdTrade(plain, crowd_sale()),
    )
    actual = isolations(session(), Crowd(trades), [SELLS], MAIN, ("probe", BUY))
    assert list(dict.fromkeys(isolation.of for isolation in actual)) == [2, 1, 0]


def test_pieces_are_tried_as_the_main_wallets_probe() -> None:
    actual = by(tried(odd(way="pieces")))
    assert actual["pieces"].attempts == ()


# --- results that did not run -------------------------------------------------------------------------


def test_a_try_that_did_not_run_is_not_known_and_one_too_large_is_refused() -> None:
    isolation = tried(odd())[0]
    assert read_isolation(session(), bought_on(), isolation, NODE) == IsolatedTrade(0, "as drawn", NODE)
    too_large = RefusedCall("buy", "too large", 0)
    expected = IsolatedTrade(0, "as drawn", RefusedCall("sell", "too large", 0))
    assert read_isolation(session(), bought_on(), isolation, too_large) == expected


def test_a_crowd_that_did_not_run_is_not_known() -> None:
    assert read_crowd_sells(session(), WETH, SELLS, NODE) == NODE
    actual = read_crowd_sells(session(), WETH, SELLS, RefusedCall("buy", "too large", 0))
    assert (actual.fault, actual.why) == ("token", "too large")  # type: ignore[union-attr]


# --- what the crowd met -------------------------------------------------------------------------------


def met(number: int, given_raw: int) -> dict[str, StepResult]:
    """A buy that brought so much; the sell was refused, and all of it is left."""
    name = f"m{number}"
    return {
        f"{name}-buy": traded(WETH, given_raw, 10**17, 150_000),
        f"{name}-before-quote": did(10**18),
        f"{name}-after-quote": did(10**18),
        f"{name}-token": did(given_raw),
        f"{name}-sell-0": refused(error_string("paused")),
    }


def test_who_could_not_buy_is_kept_and_who_was_given_less_is_left_out() -> None:
    usual = [replace(odd(), wallet=member.wallet.wallet) for member in SELLS.members[:3]]
    members = tuple(
        structs.replace(member, wallet=wallet, held_raw=1000)
        for member, wallet in zip(SELLS.members, usual, strict=False)
    )
    no_buy = CrowdTrade(odd(), RefusedCall("buy", "not you", 1))
    sells = CrowdSells(members[:2], (MemberBuys(1000, 1000, 1),) * 2, (no_buy,))
    actual = read_crowd_sells(session(), WETH, sells, met(0, 1000) | met(1, 999))
    refusal, less = RefusedCall("sell", "paused", 30_000), NotTried("pool")
    assert actual == Crowd((CrowdTrade(usual[0], refusal, 4), CrowdTrade(usual[1], less, 4), no_buy))


def test_a_crowd_that_was_mostly_given_less_is_not_left_out() -> None:
    """A token that moves the price while others buy would hide its refusals so."""
    members = tuple(
        structs.replace(member, wallet=replace(odd(), wallet=member.wallet.wallet), held_raw=1000)
        for member in SELLS.members[:2]
    )
    sells = CrowdSells(members, (MemberBuys(1000, 1000, 1),) * 2, ())
    actual = read_crowd_sells(session(), WETH, sells, met(0, 999) | met(1, 999))
    assert isinstance(actual, Crowd)
    assert [trade.outcome for trade in actual.trades] == [
        Missing("token", "the venue gave less than its formula says")
    ] * 2


UNKNOWN = replace(bought_on(), main_given_raw=0)


def test_who_was_given_less_is_measured_for_another_try() -> None:
    usual = [replace(odd(), wallet=member.wallet.wallet) for member in SELLS.members[:2]]
    members = tuple(
        structs.replace(member, wallet=wallet, held_raw=1000)
        for member, wallet in zip(SELLS.members, usual, strict=False)
    )
    sells = CrowdSells(members, (MemberBuys(1000, 1000, 1),) * 2, ())
    actual = measure_sellers(session(), UNKNOWN, sells, BUY, met(0, 1000) | met(1, 990))
    assert actual is not None
    assert [member.held_raw for member in actual.members] == [1000, 990]
    assert [buys.given_raw for buys in actual.buys] == [1000, 990]


def test_who_got_what_was_expected_is_not_measured() -> None:
    wallet = replace(odd(), wallet=SELLS.members[0].wallet.wallet)
    member = structs.replace(SELLS.members[0], wallet=wallet, held_raw=1000)
    sells = CrowdSells((member,), (MemberBuys(1000, 1000, 1),), ())
    assert measure_sellers(session(), UNKNOWN, sells, BUY, met(0, 1000)) is None
