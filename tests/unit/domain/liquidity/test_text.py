"""The sentences about liquidity: the figure that matters first, and no pass where something is not known."""

from dataclasses import replace

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.depth import Lock, TokenDepth
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal, describe, format_time
from unit.domain.liquidity.test_depth import held, pool

_WALLET = Address("0x" + "a" * 40)


def _exit(
    depth: TokenDepth, loss_bps: int | None, reason: str | None = None, missing: str = ""
) -> ExitAfterWithdrawal:
    return ExitAfterWithdrawal(depth.free_parties()[0], 60, loss_bps, reason, missing)


def test_what_a_wallet_can_withdraw_comes_first() -> None:
    depth = TokenDepth.of([pool(100, 10**18, held(92, "free", _WALLET), held(8, "burned"))])
    assert describe(depth, _exit(depth, 9400), {_WALLET: ("deployer",)}) == (
        "One wallet, the deployer's, can withdraw 92.00 % of the liquidity at any moment; you would then get "
        "6.00 % of your money back.",
        "8.00 % of the liquidity is at a burn address.",
    )


def test_a_tag_that_says_not_whose_wallet_it_is_leaves_its_address() -> None:
    depth = TokenDepth.of([pool(100, 10**18, held(100, "free", _WALLET))])
    assert describe(depth, _exit(depth, 0), {_WALLET: ("sniper",)})[0].startswith(f"One wallet, {_WALLET},")
    description = describe(depth, _exit(depth, 0), {_WALLET: ("sniper", "deployer")})
    assert description[0].startswith("One wallet, the deployer's,")


def test_a_refused_sell_and_a_missing_one_differ() -> None:
    depth = TokenDepth.of([pool(100, 10**18, held(100, "free", _WALLET))])
    start = f"One wallet, {_WALLET}, can withdraw 100.00 % of the liquidity at any moment; "
    refused = f"{start}you could then not sell at all"
    assert describe(depth, _exit(depth, None, "no"), {})[0] == f'{refused} ("no").'
    assert describe(depth, _exit(depth, None, "SPL"), {})[0] == (
        f'{refused} ("SPL": the price is already past the limit of the swap, as where the pool has nothing '
        "left to give)."
    )
    assert describe(depth, _exit(depth, None), {})[0] == f"{start}you could then not sell at all."
    assert describe(depth, _exit(depth, None, missing="no buy succeeds"), {})[0] == (
        f"{start}we could not find out what you would then get back: no buy succeeds."
    )


def test_a_refused_withdrawal_is_told_as_one() -> None:
    depth = TokenDepth.of([pool(100, 10**18, held(100, "free", _WALLET))])
    refused = replace(_exit(depth, None, missing="not all of it could be simulated"), is_refused=True)
    assert describe(depth, refused, {_WALLET: ("deployer",)}) == (
        "One wallet, the deployer's, has 100.00 % of the liquidity. We simulated its withdrawal, which is "
        "refused now: a hook or the token may let it pass later.",
    )


def test_what_is_not_known_is_no_pass() -> None:
    part = TokenDepth.of([pool(100, 10**18, held(70, "burned"))])
    assert describe(part, None, {})[0] == (
        "We could not find out who can withdraw 30.00 % of its liquidity: this is not a pass."
    )
    nothing = TokenDepth.of([pool(100, 10**18)], "We do not know its positions")
    assert describe(nothing, None, {}) == ("We do not know its positions: this is not a pass.",)


def test_a_lock_is_named_with_its_end_and_a_strangers_contract_is_no_lock() -> None:
    locked = held(100, "locked")
    locked = type(locked)(locked.position, True, "locked", lock=Lock(1_795_000_000, True, _WALLET))
    depth = TokenDepth.of([pool(100, 10**18, locked)])
    assert describe(depth, None, {}) == (
        "We found nobody who can withdraw any of its liquidity before 18 Nov 2026 11:06 UTC.",
        "100.00 % of the liquidity is locked until 18 Nov 2026 11:06 UTC.",
    )
    strange = type(locked)(locked.position, True, "contract", lock=Lock(1_795_000_000, False, _WALLET))
    text = describe(TokenDepth.of([pool(100, 10**18, strange)]), None, {})
    assert text == (
        "100.00 % of the liquidity is in contracts that we do not know: nobody that we tried can withdraw it "
        "now, nor before 18 Nov 2026 11:06 UTC. This is not a pass.",
    )


def test_wallets_that_share_the_liquidity_are_told_together() -> None:
    others = [Address(f"0x{2**140 + number:040x}") for number in range(1500)]
    shares = (held(1, "free", one) for one in (*others, *[_WALLET] * 10))
    depth = TokenDepth.of([pool(1510, 10**18, *shares)])
    assert describe(depth, _exit(depth, 100), {_WALLET: ("deployer",)}) == (
        "1,501 wallets can withdraw 100.00 % of the liquidity at any moment. The largest, the deployer's, "
        "can withdraw 0.66 % of the liquidity at any moment; you would then get 99.00 % of your money back.",
    )


def test_the_largest_share_that_is_no_pass_comes_first() -> None:
    strange = held(60, "contract")
    depth = TokenDepth.of([pool(100, 10**18, held(10, "free", _WALLET), strange)])
    starts = ["60.00 % of the liquidity is in contracts", "We could not find out", "One wallet"]
    description = describe(depth, _exit(depth, 100), {})
    assert [text.startswith(start) for text, start in zip(description, starts, strict=True)] == [True] * 3


def test_money_out_of_range_is_told_with_what_is_in_range() -> None:
    aside = replace(held(10**6, "free", _WALLET, is_active=False), money_wei=99 * 10**16)
    narrow = replace(held(100, "burned"), money_wei=10**16)
    depth = TokenDepth.of([pool(100, 10**18, narrow, aside)])
    assert describe(depth, _exit(depth, 9000), {}) == (
        f"One wallet, {_WALLET}, can withdraw 99.00 % of the money in its pools (0.00 % of the liquidity in "
        "range) at any moment; you would then get 10.00 % of your money back.",
        "100.00 % of the liquidity in range is at a burn address.",
    )
    hidden = replace(aside, held_by="contract", withdrawal=None)
    assert describe(TokenDepth.of([pool(100, 10**18, narrow, hidden)]), None, {})[0] == (
        "99.00 % of the money in its pools (0.00 % of the liquidity in range) is in contracts that we do not "
        "know: nobody that we tried can withdraw it now. This is not a pass."
    )


def test_a_time_beyond_all_dates_is_the_last_one() -> None:
    assert format_time(2**255) == "31 Dec 9999 23:59 UTC"


def test_tokens_without_a_pool_or_without_depth() -> None:
    assert describe(TokenDepth.of([]), None, {}) == (
        "No v3 or v4 pool trades it, so there is no liquidity to withdraw.",
    )
    assert describe(TokenDepth.of([], absence="There is none."), None, {}) == ("There is none.",)
    assert describe(TokenDepth.of([pool(0, 0)]), None, {}) == ("Its pools have no liquidity in range.",)
    new_curve = TokenDepth.of([pool(0, 0, is_curve=True)])
    assert describe(new_curve, None, {})[1:] == ("The launchpad keeps 100.00 % of the liquidity.",)


def test_who_can_withdraw_what_is_out_of_range_is_said() -> None:
    free, burned = held(30, "free", _WALLET, is_active=False), held(10, "burned", is_active=False)
    depth = TokenDepth.of([pool(0, 0, free, burned)])
    assert describe(depth, _exit(depth, 10_000), {_WALLET: ("deployer",)}) == (
        "One wallet, the deployer's, can withdraw 75.00 % of the liquidity at any moment; you would then get "
        "0.00 % of your money back.",
        "We could not find out who can withdraw 25.00 % of its liquidity: this is not a pass.",
        "None of it is in range at the price now: the next trade may reach it.",
    )


def test_what_is_kept_out_of_range_is_no_pass() -> None:
    """A position that the index does not know may lie beside it."""
    depth = TokenDepth.of([pool(0, 0, held(10, "burned", is_active=False))])
    assert describe(depth, None, {})[0] == (
        "We could not find out who can withdraw 100.00 % of its liquidity: this is not a pass."
    )
