"""Errors of a trade that no venue takes: they quote the token, never a router."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.trade.text import failure_clause
from roundtrip.services.rehearsal.rehearsal import _with_token_reason, with_smaller_buy
from roundtrip.services.rehearsal.trade_builder import NotEnough, Side

PAUSED = RefusedCall("sell", "paused", 0)


def message(side: Side, given: str | None, direct: RefusedCall | None) -> str:
    """The message where a trade fails with ``given``, and its transfer alone with ``direct``."""
    fault = CallerFault("would_fail", f"The trade would fail{failure_clause(given)}.")
    venue = SimpleNamespace(venue=1, told_on_buy=direct, told_on_sell=direct)
    evidence = SimpleNamespace(venues=(venue,))
    return _with_token_reason(side, fault, cast(Any, evidence), cast(Any, [1])).message


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("code", ["TF", "STF", "TRANSFER_FROM_FAILED"])
def test_a_routers_code_gives_way_to_the_token_reason(side: Side, code: str) -> None:
    assert message(side, code, PAUSED) == 'The trade would fail: the token says "paused".'
    for direct in (None, RefusedCall("sell", None, 0), RefusedCall("sell", "STF", 0)):
        assert message(side, code, direct) == (
            "The trade would fail: the token refused the transfer, and the router gave no reason for it."
        )


def test_a_reason_of_its_own_stays() -> None:
    assert message("sell", "paused", PAUSED) == 'The trade would fail with "paused".'
    assert message("sell", "slippage", PAUSED) == (
        'The trade would fail with "slippage". The token says "paused".'
    )
    assert message("buy", "slippage", PAUSED) == 'The trade would fail with "slippage".'


def test_a_reason_that_looks_like_our_words_stays_quoted() -> None:
    forged = "x: the token refused the transfer, and the router gave no reason for it"
    assert message("buy", forged, PAUSED) == f'The trade would fail with "{forged}".'


@pytest.mark.parametrize(
    ("asked_raw", "fault", "added"),
    [
        (10**18, CallerFault("would_fail", "No."), " A smaller buy, for 0.1 eth, went through in the check."),
        (10**17, CallerFault("would_fail", "No."), ""),
        (10**18, CallerFault("too_small", "No."), ""),
        (10**18, NotEnough("No."), ""),
        (CallerFault("bad_input", ""), CallerFault("would_fail", "No."), ""),
    ],
)
def test_a_buy_that_fails_names_the_smaller_one_that_went_through(
    asked_raw: int | CallerFault, fault: CallerFault, added: str
) -> None:
    venue = cast(Any, SimpleNamespace(quote="weth"))
    trial = SimpleNamespace(
        place=SimpleNamespace(venue=venue),
        main_size=lambda: "probe",
        completed_buy=lambda size: SimpleNamespace(paid_raw=10**17),
    )
    data = SimpleNamespace(venues=[trial])
    builder = cast(Any, SimpleNamespace(buy_round=SimpleNamespace(data=data)))
    # A venue is a key: this one by its identity.
    amounts = cast(Any, SimpleNamespace(get=lambda found: asked_raw if found is venue else None))
    assert with_smaller_buy(builder, fault, amounts).message == f"No.{added}"
