"""What the text says of accounts other than the owner, by what became of the sell after their calls."""

from dataclasses import replace
from typing import Any

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address
from roundtrip.domain.check.account_rights import is_complete
from roundtrip.domain.check.evidence import (
    AccountRights,
    Caller,
    CellOutcome,
    Evidence,
    Missing,
    OwnerCall,
    OwnerCalls,
    RefusedCall,
    RightsGap,
)
from roundtrip.domain.check.outlook import prospects
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import ITS_OWN, NODE, OWNER, POOL, TOKEN_FACTS, evidence, sold, venue
from unit.domain.owner_attempts import known
from unit.domain.owners import call as owners_call

STOPPED = RefusedCall("sell", "paused", 1)
RIGHTS = AccountRights(0, sold(), 2, 5, ())
CONTRACT = Address("0x" + "cc" * 20)


def call(
    outcome: CellOutcome | None, by: Caller = "storage", function: str = "f()", target: Address | None = None
) -> OwnerCall:
    return OwnerCall(function, "", by, OWNER, POOL, ("0x",) if outcome else (), outcome, None, target)


def with_rights(
    rights: AccountRights | Missing | None, owner: Address | None = ZERO_ADDRESS, **more: Any
) -> Evidence:
    return replace(evidence(venue(), facts=replace(TOKEN_FACTS, owner=owner)), account_rights=rights, **more)


def says(rights: AccountRights | Missing, owner: Address | None = ZERO_ADDRESS, **more: Any) -> str:
    """What the text says more, which leaves code and level as they are."""
    before = judge(with_rights(None, owner, **more), POLICY).verdict
    after = judge(with_rights(rights, owner, **more), POLICY).verdict
    assert (after.code, after.level) == (before.code, before.level) == ("ok", "ok")
    return after.text.removeprefix(before.text).lstrip()


@pytest.mark.parametrize(
    ("by", "who"),
    [
        ("deployer", f"its deployer, {OWNER},"),
        ("role", f"an account that its events gave a right, {OWNER},"),
        ("storage", f"an account in its storage, {OWNER},"),
        ("code", f"an account in its code, {OWNER},"),
        ("supply", f"an account with supply, {OWNER},"),
        ("event", f"an account in its events, {OWNER},"),
        ("contract", f"a contract that it names, {OWNER},"),
        ("anyone", "anybody"),
    ],
)
def test_who_can_do_harm_is_named(by: Caller, who: str) -> None:
    stops = replace(RIGHTS, tried=(call(sold(), by), call(STOPPED, by, "pause()")))
    can = f"{who} can stop you from selling (function pause())."
    assert says(stops) == f"Its owner is a burn address, but {can}"
    assert says(stops, None) == f"It names no owner, but {can}"
    assert says(replace(stops, beside_owner=True), OWNER) == f"Beside its owner, {can}"
    dear = replace(RIGHTS, tried=(call(sold(9000), by, "0x12345678(bool)"),))
    assert says(dear) == (
        f"Its owner is a burn address, but {who} can raise your loss to 90.00 % (a function whose name is "
        "not known, 0x12345678)."
    )


def test_more_functions_that_stop_sales_are_named_with_who_may_call_them() -> None:
    other = Address("0x" + "0b" * 20)
    more = (
        call(STOPPED, "role", "pause()"),
        call(STOPPED, "role", "pause()"),
        replace(call(STOPPED, "role", "setBlocked(address,bool)"), sender=other),
        call(STOPPED, "role", "0x12345678(bool)"),
        call(sold(), "role", "unpause()"),
        call(STOPPED, "role", "wipe(address)"),
        call(STOPPED, "contract owner", "upgradeTo(address)", CONTRACT),
        call(STOPPED, "role", "freeze()"),
    )
    assert says(replace(RIGHTS, tried=more), None) == (
        f"It names no owner, but an account that its events gave a right, {OWNER}, can stop you from selling "
        "(function pause()); so can function setBlocked(address,bool) by an account that its events gave a "
        f"right, {other}; function wipe(address); function upgradeTo(address), of {CONTRACT}."
    )


def test_a_function_of_another_contract_is_named_with_it() -> None:
    stops = replace(RIGHTS, tried=(call(STOPPED, "contract owner", "block(address)", CONTRACT),))
    assert says(stops, None) == (
        f"It names no owner, but the owner of a contract that it names, {OWNER}, can stop you from selling "
        f"(function block(address), of {CONTRACT})."
    )


@pytest.mark.parametrize(
    ("owner", "subject"),
    [
        (None, "It names no owner"),
        (ZERO_ADDRESS, "Its owner is a burn address"),
        (BURN_ADDRESS, "Its owner is a burn address"),
        (POOL, "Its owner cannot act"),
    ],
)
def test_without_an_owner_there_is_never_silence(owner: Address | None, subject: str) -> None:
    called = f"{subject}; we called 5 functions as 2 other accounts and as a new wallet"
    assert says(RIGHTS, owner) == f"{called}: no call was accepted."
    assert says(replace(RIGHTS, tried=(call(sold()),)), owner) == (
        f"{called}; 1 function accepted a call, and it did not stop the sell."
    )
    assert says(replace(RIGHTS, accounts=0), owner) == (
        f"{subject}; we know no other account, and called 5 functions as a new wallet: no call was accepted."
    )
    assert says(replace(RIGHTS, functions=0), owner) == (
        f"{subject}, and it has no function that we could test."
    )


@pytest.mark.parametrize("gap", [NODE, ITS_OWN])
@pytest.mark.parametrize("owner", [None, ZERO_ADDRESS])
def test_what_could_not_be_found_out_is_said(gap: Missing, owner: Address | None) -> None:
    text = f"; we could not find out whether other accounts have rights over it: {gap.why}."
    assert says(gap, owner).endswith(text)
    assert says(replace(RIGHTS, control=gap), owner).endswith(text)
    assert says(replace(RIGHTS, control=STOPPED, tried=(call(STOPPED),))).endswith("failed without any call.")
    assert says(gap, OWNER) == (
        f"We could not find out whether accounts other than its owner have rights over it: {gap.why}."
    )
    assert says(gap, OWNER, owner_calls=gap) == "", "the owner's sentence says it already"


def test_what_was_not_tried_is_said() -> None:
    tried = (
        call(sold(), function="a()"),
        call(NODE, function="b()"),
        call(None),
        call(None, target=CONTRACT),
    )
    gaps: tuple[RightsGap, ...] = ("events", "storage", "contracts", "calls")
    partial = replace(RIGHTS, tried=tried, left_out=1, accounts_left_out=3, unread=gaps)
    assert says(partial) == (
        "Its owner is a burn address; we called 5 functions as 2 other accounts and as a new wallet; "
        "1 function accepted a call, and it did not stop the sell; we could not find out what 1 function "
        "would do; 1 function of contracts that it names refused all values that we tried; "
        "1 more function was not tried; 3 more accounts were not tried; we could not read all of its events; "
        "we could not read its storage; a sale may call a contract that we could not try; "
        "not all of the calls could be simulated."
    )
    assert not is_complete(partial)
    assert "no call was accepted" not in says(replace(RIGHTS, tried=(call(NODE),)))


def test_beside_an_owner_only_what_adds_something_is_said() -> None:
    beside = replace(RIGHTS, beside_owner=True)
    also = "We also called 5 functions as 2 other accounts and as a new wallet: no call was accepted."
    assert says(beside, OWNER) == also
    assert says(beside, OWNER, owner_calls=known(owners_call(sold()))) == also
    assert says(beside, OWNER, owner_calls=known(owners_call(STOPPED))) == ""
    assert says(replace(beside, functions=0), OWNER) == ""
    assert says(replace(beside, accounts=0), OWNER) == ""
    assert says(replace(beside, accounts=0, unread=("events",)), OWNER) != ""
    assert says(replace(beside, functions=0, unread=("contracts",)), OWNER) != ""


@pytest.mark.parametrize(
    ("rights", "standing"),
    [
        (NODE, "not_known"),
        (replace(RIGHTS, control=STOPPED), "not_known"),
        (replace(RIGHTS, unread=("events",)), "not_known"),
        (replace(RIGHTS, accounts_left_out=1), "not_known"),
        (replace(RIGHTS, left_out=1), "not_known"),
        (replace(RIGHTS, tried=(call(NODE),)), "not_known"),
        (replace(RIGHTS, tried=(call(STOPPED),)), "can"),
        (replace(RIGHTS, tried=(call(sold()),)), "not_found"),
        (RIGHTS, "not_found"),
    ],
)
def test_it_is_among_what_could_change(rights: AccountRights | Missing, standing: str) -> None:
    shown = with_rights(rights)
    found = [row for row in prospects(shown, judge(shown, POLICY), POLICY) if row.topic == "owner"]
    answer = [row.standing for row in found if "other account" in row.text or "can stop" in row.text]
    assert set(answer) == {standing, "not_found"}
    assert all("no promise" in row.text for row in found if row.standing == "not_found")


def test_nothing_is_said_where_it_was_not_tried() -> None:
    assert says(replace(RIGHTS, beside_owner=True), OWNER, owner_calls=OwnerCalls(0, sold(), ())) != ""
    assert judge(with_rights(None), POLICY).verdict.text == judge(evidence(venue()), POLICY).verdict.text
