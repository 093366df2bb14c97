"""What an answer claims cannot be changed unnoticed either. What is harmless is listed in ``HARMLESS``."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roundtrip_verify import Request, verify
from unit.verify.samples import (
    ABOVE,
    BELOW,
    CASES,
    CURVE,
    DEADLINE_S,
    NETWORK,
    PREPARED_S,
    STRANGER,
    WALLET,
    Json,
    TradeCase,
    address,
    amount,
    body,
    call,
    caught,
    decimal,
    first,
    iso,
    launched,
)

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

Change = Callable[[Json, TradeCase], None]


def put(path: str, value: Any) -> Change:
    """Puts a value at a dotted path."""

    def change(answer: Json, case: TradeCase) -> None:
        *above, name = path.split(".")
        holder = answer
        for one in above:
            holder = holder[one]
        assert holder[name] != value
        holder[name] = value

    return change


def more(what: str, asset: str, by: int) -> Change:
    """Another amount, the same in both of its forms."""

    def change(answer: Json, case: TradeCase) -> None:
        holder = answer[what]
        name, text = ("minRaw", "min") if asset == "min" else ("raw", "amount")
        raw = int(holder[name]) + by
        holder[name] = str(raw)
        holder[text] = amount(raw, holder["asset"])["amount"]

    return change


def change_amount(by: int) -> Change:
    """Another minimum in the words of the last step."""

    def change(answer: Json, case: TradeCase) -> None:
        raw = case.router_min_raw + by
        text = amount(raw, answer["expect"]["asset"])["amount"]
        answer["steps"][-1]["does"] = f"Trades for at least {text} ({raw} base units)."

    return change


def other_side(answer: Json, case: TradeCase) -> None:
    answer["side"] = "sell" if case.side == "buy" else "buy"


def other_token(answer: Json, case: TradeCase) -> None:
    name = "expect" if case.side == "buy" else "spend"
    answer["token"]["address"] = answer[name]["asset"] = STRANGER


def other_money(answer: Json, case: TradeCase) -> None:
    name = "spend" if case.side == "buy" else "expect"
    money = "usdg" if case.money == "eth" else "eth"
    answer[name] = {**answer[name], **amount(int(answer[name]["raw"]), money)}
    if name == "expect":
        answer[name]["min"] = amount(int(answer[name]["minRaw"]), money)["amount"]
    answer["venue"]["pays"] = money


def repeated(at: int) -> Change:
    def change(answer: Json, case: TradeCase) -> None:
        answer["steps"].insert(at, copy.deepcopy(answer["steps"][at]))
        renumber(answer)

    return change


def dropped(at: int) -> Change:
    def change(answer: Json, case: TradeCase) -> None:
        del answer["steps"][at]
        renumber(answer)

    return change


def reordered(answer: Json, case: TradeCase) -> None:
    answer["steps"].reverse()
    renumber(answer)
    if len(answer["steps"]) == 1:
        answer["steps"][0]["n"] = 2


def renumber(answer: Json) -> None:
    for n, step in enumerate(answer["steps"], 1):
        step["n"] = n


def extra(to: str, data: bytes, value: int = 0, at: int = 0) -> Change:
    """A step more, rightly numbered."""

    def change(answer: Json, case: TradeCase) -> None:
        step = {"does": "helps", "to": to, "data": "0x" + data.hex(), "value": str(value), "gas": 50_000}
        answer["steps"].insert(at, step)
        renumber(answer)

    return change


def claims(name: str, value: object) -> Change:
    def change(answer: Json, case: TradeCase) -> None:
        answer["steps"][0][name] = value

    return change


OTHER_KIND = {
    "launchpad_curve": "amm_v3",
    "amm_v3": "launchpad_curve",
    "amm_v4": "launchpad_pool",
    "launchpad_pool": "amm_v3",
}

CHANGES: dict[str, Change] = {
    "another chain": put("chainId", 1),
    "another wallet": put("from", STRANGER),
    "the zero wallet": put("from", "0x" + "0" * 40),
    "the caller's constant": put("from", "0x" + "1".rjust(40, "0")),
    "another side": other_side,
    "another token, half": put("token.address", STRANGER),
    "another token": other_token,
    "other decimals": put("token.decimals", 10),
    "another money": other_money,
    "other pays": put("venue.pays", "weth"),
    "an unknown kind": put("venue.kind", "nothing"),
    "another kind": lambda answer, case: answer["venue"].update(kind=OTHER_KIND[case.kind]),
    "another pool": lambda answer, case: answer["venue"].update(at=answer["venue"]["at"][:-1] + "x"),
    "another place": lambda answer, case: answer["venue"].update(
        at=f"0x{int(answer['venue']['at'], 16) ^ 1:0{len(answer['venue']['at']) - 2}x}"
    ),
    "more spent": more("spend", "raw", 1),
    "less spent": more("spend", "raw", -1),
    "spend text": lambda answer, case: answer["spend"].update(amount=answer["spend"]["amount"] + "1"),
    "expect text": lambda answer, case: answer["expect"].update(amount="1"),
    "min text": lambda answer, case: answer["expect"].update(min="1"),
    "a lower minimum": more("expect", "min", -3),
    "a minimum of everything": more("expect", "min", 10**12),
    "more expected": more("expect", "raw", 10**16),
    "less expected than the minimum": lambda answer, case: more(
        "expect", "raw", case.min_raw - case.expected_raw - 1
    )(answer, case),
    "less slippage": put("slippageBps", 50),
    "no slippage": put("slippageBps", 0),
    "all slippage": put("slippageBps", 10_000),
    "a lower minimum in words": change_amount(-1),
    "a higher minimum in words": change_amount(1),
    "no minimum in words": lambda answer, case: answer["steps"][-1].update(does="Trades."),
    "two minimums in words": lambda answer, case: answer["steps"][-1].update(
        does=answer["steps"][-1]["does"] + " At least 1 (1 base units)."
    ),
    "refused": put("refused", True),
    "alreadyDone": put("alreadyDone", ["Permit2 may take it already", "", ""]),
    "the first step twice": repeated(0),
    "the last step twice": repeated(-1),
    "the first step dropped": dropped(0),
    "the last step dropped": dropped(-1),
    "steps reordered": reordered,
    "a step number": claims("n", 3),
    "a field for wallets": claims("authorizationList", []),
    "another sender": claims("from", STRANGER),
    "an approval for a stranger": extra(BELOW, call("approve(address,uint256)", STRANGER, 5)),
    "a transfer": extra(BELOW, call("transfer(address,uint256)", STRANGER, 5)),
    "eth for a stranger": extra(STRANGER, b"", 5),
    "a step behind": extra(STRANGER, b"", 5, 9),
    "an empty step behind": extra(WALLET, b"", 0, 9),
}  # fmt: skip


def pays_whoever_calls(case: TradeCase) -> bool:
    """True where the calldata names no wallet: the routers' constant for the caller stands there."""
    return case.second or (case.kind != "launchpad_curve" and (case.kind, case.side) != ("amm_v3", "sell"))


HARMLESS: dict[str, Callable[[TradeCase], bool]] = {
    "another wallet": pays_whoever_calls,
    "another token": lambda case: case.kind == "launchpad_curve" and case.side == "buy",
    "the first step dropped": lambda case: case.reset,
}
"""What passes unless the reader says what they asked for, and in which cases. The wallet: whoever signs is
paid. The token of a curve: nothing in the calldata or in an address names it, as a note says. The first step:
that takes an old allowance away, and where it is missing the exact one is given all the same."""


@pytest.mark.parametrize("change", CHANGES)
def test_every_other_claim_is_caught(change: str) -> None:
    for case in CASES:
        answer = body(case)
        CHANGES[change](answer, case)
        harmless = change in HARMLESS and HARMLESS[change](case)
        assert caught(answer) is not harmless, case


def test_what_is_not_in_the_calldata_is_caught_by_what_was_asked_for() -> None:
    for case in CASES:
        for change in ("another wallet", "another token"):
            answer = body(case)
            CHANGES[change](answer, case)
            assert not verify(answer, NETWORK, Request(wallet=WALLET, token=case.token)).ok
        if pays_whoever_calls(case):
            assert all(WALLET[2:] not in step["data"] for step in body(case)["steps"])
        if HARMLESS["another token"](case):
            assert all(case.token[2:] not in step["data"] for step in body(case)["steps"])
            assert any("is the curve of" in note for note in verify(body(case), NETWORK).notes)


@every_case
def test_another_time_is_caught(case: TradeCase) -> None:
    """But for curves, which know none."""
    for by_s in (-1, 1, 86_400):
        later = {**body(case), "validUntil": iso(DEADLINE_S + by_s)}
        assert caught(later) is (case.kind != "launchpad_curve")
    assert not caught({**body(case), "validUntil": iso(DEADLINE_S, ".999999")})


def test_what_is_harmless_among_claims() -> None:
    """A minimum two base units lower, for the rounding; what was prepared when is only noted."""
    taxed = TradeCase("amm_v3", "buy", "usdg", taxed=True)
    for by, harmless in ((-2, True), (-3, False)):
        answer = body(taxed)
        more("expect", "min", by)(answer, taxed)
        assert caught(answer) is not harmless
    late = {**body(taxed), "preparedAt": iso(PREPARED_S - 3600)}
    assert any("twenty minutes" in note for note in verify(late, NETWORK).notes)
    assert not caught(late)


APPROVED = [case for case in CASES if case.side == "sell" or case.money == "usdg"]


@pytest.mark.parametrize("case", APPROVED, ids=lambda case: case.name)
@pytest.mark.parametrize("amount_raw", [2**256 - 1, 2**160 - 1, 1, 0])
def test_only_the_exact_amount_may_be_approved(case: TradeCase, amount_raw: int) -> None:
    for step in body(case)["steps"][:-1]:
        answer = body(case)
        size = 160 if step["data"].startswith("0x87517c45") else 256
        at = 2 + 2 * (4 + 32 * (2 if size == 160 else 1))
        if int(step["data"][at : at + 64], 16) == amount_raw:
            continue
        data = step["data"][:at] + f"{min(amount_raw, 2**size - 1):064x}" + step["data"][at + 64 :]
        answer["steps"][step["n"] - 1]["data"] = data
        assert caught(answer)


@pytest.mark.parametrize("case", APPROVED, ids=lambda case: case.name)
def test_approvals_that_were_given_may_be_left_out(case: TradeCase) -> None:
    answer = body(case)
    given = [step for step in answer["steps"][:-1] if not case.reset]
    answer["steps"] = answer["steps"][-1:]
    renumber(answer)
    assert caught(answer)
    answer["alreadyDone"] = ["given"] * (
        len(given) or (2 if case.second or case.kind.endswith(("v4", "pool")) else 1)
    )
    assert not caught(answer)
    assert any("alreadyDone" in note for note in verify(answer, NETWORK).notes)


def addresses(answer: Json) -> Iterator[tuple[int, int]]:
    """Step and place of every word of calldata that is an address, or a router's name for one."""
    known = {int(one, 16) for one in (*NETWORK.contracts(), WALLET, CURVE, BELOW, ABOVE, address("a hook"))}
    for at, step in enumerate(answer["steps"]):
        for begin in range(2, len(step["data"]) - 63, 2):
            if int(step["data"][begin : begin + 64], 16) in known | {1, 2}:
                yield at, begin


@every_case
def test_no_address_in_calldata_can_be_a_strangers(case: TradeCase) -> None:
    places = list(addresses(body(case)))
    assert places
    for at, begin in places:
        answer = body(case)
        step = answer["steps"][at]
        step["data"] = step["data"][:begin] + STRANGER[2:].rjust(64, "0") + step["data"][begin + 64 :]
        assert caught(answer)


def test_a_pool_with_another_hook_is_not_the_launchpads() -> None:
    """Honest about its id, and yet not what it is called."""
    for quote in ("eth", "weth", "usdg"):
        answer = body(TradeCase("launchpad_pool", "buy", quote, hook=address("a hook")))
        assert any("hook is not the launchpad's" in text for text in verify(answer, NETWORK).findings)
    answer = body(launched("buy", "eth"))
    answer["venue"]["kind"] = "amm_v4"
    assert verify(answer, NETWORK).ok


def test_an_honest_swap_of_another_token_is_caught() -> None:
    """All of it fits together, but for the token that is claimed."""
    for case in (
        first("amm_v3", "buy", "weth"),
        first("amm_v4", "buy", "eth"),
        first("amm_v4", "buy", "usdg"),
    ):
        answer, wrong = body(case), body(TradeCase(case.kind, case.side, case.quote, STRANGER))
        answer["steps"] = wrong["steps"]
        assert caught(answer)
        answer["venue"] = wrong["venue"]
        assert caught(answer)


def test_what_the_reader_asked_for_is_compared() -> None:
    case = first("amm_v3", "buy", "usdg")
    wrong = (
        Request(wallet=STRANGER), Request(token=STRANGER), Request(side="sell"), Request(amount="250"),
        Request(amount_raw=250), Request(amount="much"), Request(slippage_bps=50), Request(asset="eth"),
    )  # fmt: skip
    for asked in wrong:
        assert not verify(body(case), NETWORK, asked).ok
    right = Request(WALLET, BELOW, "buy", decimal(case.paid_raw, 6), case.paid_raw, 100, "usdg")
    assert verify(body(case), NETWORK, right).ok


def test_a_curve_may_take_less_than_asked_and_never_more() -> None:
    case = first("launchpad_curve", "buy", "eth")
    assert verify(body(case), NETWORK, Request(amount="0.2")).ok
    assert not verify(body(case), NETWORK, Request(amount="0.1")).ok


def test_selling_all_is_noted() -> None:
    report = verify(body(first("amm_v3", "sell", "usdg")), NETWORK, Request(amount="all"))
    assert report.ok
    assert any("all that the wallet holds" in note for note in report.notes)


def test_a_deadline_that_is_past_is_found() -> None:
    for case in (first("amm_v4", "buy", "eth"), first("launchpad_curve", "buy", "eth")):
        assert verify(body(case), NETWORK, now_s=DEADLINE_S).ok
        assert not verify(body(case), NETWORK, now_s=DEADLINE_S + 1).ok
        early = verify(body(case), NETWORK, now_s=DEADLINE_S - 86_400)
        assert any("longer than twenty minutes" in note for note in early.notes)


def test_findings_say_which_field_is_wrong() -> None:
    answer = body(first("amm_v3", "sell", "usdg"))
    answer["steps"][-1]["data"] = answer["steps"][-1]["data"].replace(WALLET[2:], STRANGER[2:])
    (finding,) = verify(answer, NETWORK).findings
    assert finding == f"step 2: the recipient is {STRANGER}, but must be {WALLET}"
