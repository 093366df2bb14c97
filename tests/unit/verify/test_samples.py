"""Right answers pass, whoever encoded them; the package stands alone."""

import ast
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import roundtrip_verify
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Quote, Venue
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve
from roundtrip.venues.base import Contracts, TradeTerms, VenueFile
from roundtrip_verify import Network, Report, Request, lines, verify
from roundtrip_verify.routers import PoolKey, v3_pool_address, v4_pool_id
from unit.verify.samples import (
    ABOVE,
    BELOW,
    CASES,
    CURVE,
    DEADLINE_S,
    DYNAMIC_FEE,
    NETWORK,
    NETWORK_FILE,
    WALLET,
    ZERO,
    TradeCase,
    address,
    body,
    body_of,
    first,
    launched,
)  # fmt: skip

FOLDER = Path(roundtrip_verify.__file__).parent
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_a_right_answer_passes(case: TradeCase) -> None:
    report = verify(body(case), NETWORK, now_s=DEADLINE_S - 60)
    assert report.findings == ()
    assert report.ok


@every_case
def test_every_step_is_spoken_of(case: TradeCase) -> None:
    report = verify(body(case), NETWORK)
    for n in range(1, len(body(case)["steps"]) + 1):
        assert any(text.startswith(f"step {n} ") for text in report.proven)
    message = " ".join(report.proven)
    assert WALLET in message
    assert f"({case.paid_raw} base units)" in message
    assert f"({case.router_min_raw} base units)" in message


@every_case
def test_what_was_asked_for_is_found_in_the_answer(case: TradeCase) -> None:
    answer = body(case)
    asked = Request(WALLET, case.token.upper().replace("X", "x"), case.side, answer["spend"]["amount"])
    assert verify(answer, NETWORK, asked).ok


_MODULES: dict[str, VenueFile] = {
    "launchpad_curve": launchpad_curve, "amm_v3": amm_v3, "amm_v4": amm_v4, "launchpad_pool": amm_v4,
}  # fmt: skip
_SINGLE = [field.name for field in fields(Contracts) if field.default != ()]
_CONTRACTS = Contracts(
    **{name: Address(getattr(NETWORK, name, address(name))) for name in _SINGLE}  # type: ignore[arg-type]
)


def venue(case: TradeCase) -> Venue:
    token, money = Address(case.token), Address(case.money_address)
    quote: Quote = "eth" if case.quote == "eth" else "weth" if case.quote == "weth" else "usdg"
    if case.kind == "launchpad_curve":
        return launchpad_curve.curve(money, Address(CURVE), _CONTRACTS)
    if case.kind == "amm_v3":
        pool = amm_v3.pool_address(_CONTRACTS.v3_factory, token, money, case.fee)
        return Venue("amm_v3", quote, money, pool, case.fee)
    hook = None if case.hook == ZERO else Address(case.hook)
    return amm_v4.pool("amm_v4", token, quote, money, case.fee, case.spacing, hook)


@pytest.mark.parametrize("case", [case for case in CASES if not case.reset], ids=lambda case: case.name)
def test_what_the_service_writes_passes(case: TradeCase) -> None:
    """Its plans take no allowance away: that is a step that is put in front of them."""
    module, token, wallet = _MODULES[case.kind], Address(case.token), Address(WALLET)
    terms = TradeTerms(case.router_min_raw, DEADLINE_S)
    at = venue(case)
    if case.side == "buy":
        plan = module.plan_buy(at, token, _CONTRACTS, case.paid_raw, wallet, terms)
    else:
        plan_sell = module.plan_second_sell if case.second else module.plan_sell
        plan = plan_sell(at, token, _CONTRACTS, case.paid_raw, wallet, terms=terms)
    answer = body_of(case, [(call.to, bytes.fromhex(call.data[2:])) for call in plan])
    assert [int(step["value"]) for step in answer["steps"]] == [call.value_wei for call in plan]
    assert verify(answer, NETWORK).findings == ()
    assert [step["data"] for step in answer["steps"]] == [step["data"] for step in body(case)["steps"]]


def proven(case: TradeCase) -> str:
    return "\n".join(verify(body(case), NETWORK).proven)


def test_a_sell_by_the_second_route_says_who_may_take_and_who_is_paid() -> None:
    text = proven(TradeCase("amm_v3", "sell", "weth", second=True))
    assert f"lets Permit2 {NETWORK.permit2} take exactly" in text
    assert f"lets the Universal Router {NETWORK.universal_router} take, by Permit2, exactly" in text
    assert f"sends the output only to the wallet that signs the step, {WALLET}" in text
    assert NETWORK.swap_router02 not in text


def test_fees_and_hooks_are_named() -> None:
    assert "with a fee of 0.3 %" in proven(first("amm_v3", "buy", "weth"))
    assert "launchpad's v4 pool" in proven(launched("sell", "eth"))
    hooked = TradeCase("amm_v4", "buy", "eth", fee=DYNAMIC_FEE, hook=address("a hook"))
    assert "a fee set by its hook" in proven(hooked)
    assert any(address("a hook") in note for note in verify(body(hooked), NETWORK).notes)


def test_pools_of_the_real_chain() -> None:
    """Weth and usdg in a v3 pool, and a launch against a stock: made again as public logs show them."""
    factory, weth = "0x1f7d7550b1b028f7571e69a784071f0205fd2efa", "0x0bd7d308f8e1639fab988df18a8011f41eacad73"
    pool = PoolKey("0x5fc5360d0400a0fd4f2af552add042d716f1d168", 100)
    assert v3_pool_address(factory, weth, pool) == "0x52e65b17fb6e5ba00ed806f37afcd2daa50271ca"
    token, hook = "0xc9e9ab90654f82893d7fd18b62f694992e8cef29", 0xE5E702641EA86F4AE6CC3CDAED2B886F976BE044
    launch = PoolKey("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec", 0, 200, hook)
    assert v4_pool_id(token, launch) == "0x6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"


def test_a_taxed_buy_tells_both_minimums() -> None:
    case = TradeCase("amm_v3", "buy", "usdg", taxed=True)
    assert f"({case.router_min_raw} base units)" in proven(case)
    assert f"({case.min_raw} base units)" in proven(case)


def test_a_curve_is_not_said_to_be_proven() -> None:
    report = verify(body(first("launchpad_curve", "buy", "eth")), NETWORK)
    assert report.ok
    assert any("is the curve of" in note and "getLaunchedToken" in note for note in report.notes)
    assert any("has no deadline" in note for note in report.notes)
    assert not any("pays exactly" in text for text in report.proven)


def test_a_refused_trade_has_nothing_to_sign() -> None:
    answer = {**body(first("amm_v3", "buy", "weth")), "refused": True, "steps": []}
    report = verify(answer, NETWORK)
    assert report == Report(True, ("refused: nothing to sign",), (), ())
    assert lines(report)[0] == "REFUSED: there is nothing to sign."
    assert not verify({**answer, "steps": [None]}, NETWORK).ok
    assert not verify({**answer, "refused": False}, NETWORK).ok
    assert not verify(answer, NETWORK, Request(token=ABOVE)).ok


def test_the_lines_for_a_terminal() -> None:
    answer = body(first("amm_v3", "sell", "weth"))
    rows = lines(verify(answer, NETWORK))
    assert rows[0] == "OK: the steps do what the answer says and nothing else."
    answer["token"]["address"] = ABOVE
    wrong = lines(verify(answer, NETWORK))
    assert wrong[0].startswith("DO NOT SIGN")
    assert any(text.startswith("WRONG:") for text in wrong)
    assert "\n".join(rows + wrong).isascii()


def test_the_network_file_may_say_more() -> None:
    assert Network.read(json.loads(json.dumps({**NETWORK_FILE, "tokens": {}}))) == NETWORK
    assert int(BELOW, 16) < int(NETWORK.weth, 16) < int(ABOVE, 16)


def test_the_package_imports_only_itself_keccak_and_the_standard_library() -> None:
    """And of that neither clock nor chance nor environment nor network. Its command has the clock."""
    banned = {"os", "time", "random", "secrets", "socket", "asyncio", "http", "urllib", "ssl", "subprocess"}
    for path in FOLDER.glob("*.py"):
        clock = {"time"} if path.name == "__main__.py" else set()
        allowed = (sys.stdlib_module_names | {"sha3", "Crypto"}) - (banned - clock)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, path
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 1 or (
                    node.level == 0 and (node.module or "").split(".")[0] in allowed
                ), path
            elif isinstance(node, ast.Attribute):
                assert node.attr not in ("now", "today", "utcnow"), path


def test_importing_it_brings_nothing_else_along() -> None:
    source = "import sys, roundtrip_verify; print(*[n for n in sys.modules if n.startswith('roundtrip')])"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert all(name.startswith("roundtrip_verify") for name in done.stdout.split())
