"""Approvals of prepared trades: exact, left out where they were given, taken back where they cannot rise."""

from dataclasses import replace
from pathlib import Path

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.signing import Done, Prepared, Signer, prepared
from support.wallet import calldata

NOW_S = 2_000_000_000
"""Far ahead of the local chain's clock, so that the deadline is known."""
DEADLINE_S = NOW_S + 1200
UNIT, MAX, LATE = 10**18, 2**256 - 1, 2**40
SOLD = "1000"
SOLD_RAW = 1000 * UNIT
PAID = "100"
PAID_RAW = 100 * 10**6

STUBBORN = """# pragma version 0.4.3
# pragma evm-version cancun
name: public(String[64])
symbol: public(String[32])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
from_zero: immutable(bool)

@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, only_from_zero: bool):
    self.name = name
    self.symbol = symbol
    self.decimals = 18
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply
    from_zero = only_from_zero

@internal
def _move(source: address, to: address, amount: uint256):
    self.balanceOf[source] -= amount
    self.balanceOf[to] += amount

@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True

@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self.allowance[source][msg.sender] -= amount
    self._move(source, to, amount)
    return True

@external
def approve(spender: address, amount: uint256) -> bool:
    if from_zero:
        assert amount == 0 or self.allowance[msg.sender][spender] == 0, "from zero only"
    else:
        assert amount != 0, "not to zero"
    self.allowance[msg.sender][spender] = amount
    return True
"""
"""A token whose allowances cannot be raised, or cannot be taken back."""

POOLS = {3: PoolPlan(), 4: PoolPlan("eth", version=4)}


@pytest.fixture(scope="session")
def stubborn_code(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("stubborn") / "stubborn.vy"
    path.write_text(STUBBORN)
    return compile_contract(path)


@pytest.fixture
def clocked(ctx: Context) -> Context:
    """The service at a known time."""
    return replace(ctx, now_s=lambda: float(NOW_S))


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Signer:
    """Holds usdg and eth."""
    made = Signer(rpc, built.contracts, "approver")
    made.fill_usdg(8000 * 10**6)
    return made


def given(rpc: SyncRpc, built: Built, token: str, to: str, raw: int) -> None:
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(token, calldata("transfer(address,uint256)", to, raw)))


def stubborn(rpc: SyncRpc, built: Built, code: str, version: int, from_zero: bool) -> str:
    story = Story(
        "", "", "", "Stubborn", "STB", pools=(POOLS[version],), extra_types=("bool",),
        extra_values=(int(from_zero),),
    )  # fmt: skip
    owner = ContractDeployer(rpc, built.accounts[0])
    token = put_token(owner, built.contracts, story, code)
    owner.check_receipts()
    return token


def allow(wallet: Signer, asset: str, spender: str, raw: int) -> None:
    assert wallet.send(asset, calldata("approve(address,uint256)", spender, raw)).ok


def allow_by_permit2(wallet: Signer, built: Built, asset: str, raw: int, until_s: int = LATE) -> None:
    router = built.contracts["universalRouter"]
    data = calldata("approve(address,address,uint160,uint48)", asset, router, raw, until_s)
    assert wallet.send(built.contracts["permit2"], data).ok


def took(trade: Prepared, done: Done) -> None:
    """It went through, for exactly what was told."""
    assert done.ok
    came, went = done.token_raw, -done.money_raw
    if trade.answer["side"] == "sell":
        came, went = -went, -came
    assert (came, went) == (trade.raw, trade.spend_raw)


# --- the form of an approval -----------------------------------------------------------------------


def words(data: str) -> list[int]:
    return [int(data[at : at + 64], 16) for at in range(10, len(data), 64)]


async def test_approvals_are_exact_and_go_to_the_right_spender(
    clocked: Context, built: Built, wallet: Signer
) -> None:
    usdg, contracts, zero = built.contracts["usdg"], built.contracts, "0x" + "0" * 40
    for key, spender in (("usdg_pool", "swapRouter02"), ("v4_usdg", "permit2"), ("curve_usdg", "")):
        trade = await prepared(clocked, "buy", built.tokens[key], wallet.address, amount=PAID)
        at = contracts[spender] if spender else trade.answer["venue"]["at"]
        first = trade.steps[0]
        assert (first["to"], first["value"]) == (usdg, "0")
        assert first["data"] == calldata("approve(address,uint256)", at, PAID_RAW)
        assert "exactly 100 usdg" in first["does"]
        assert trade.answer["alreadyDone"] == []
        if key == "v4_usdg":
            second = trade.steps[1]
            assert second["to"] == contracts["permit2"]
            args = (usdg, contracts["universalRouter"], PAID_RAW, DEADLINE_S)
            assert second["data"] == calldata("approve(address,address,uint160,uint48)", *args)
        assert all(step["to"] != zero for step in trade.steps)


async def test_eth_needs_no_approval(clocked: Context, built: Built, wallet: Signer) -> None:
    for key in ("plain", "v4_eth", "v4_weth", "curve", "graduated"):
        trade = await prepared(clocked, "buy", built.tokens[key], wallet.address, amount="0.1")
        (step,) = trade.steps
        assert (step["value"], trade.answer["alreadyDone"]) == (str(10**17), [])


# --- given already ---------------------------------------------------------------------------------

ALLOWED = {"none": 0, "one less": PAID_RAW - 1, "exact": PAID_RAW, "more": 3 * PAID_RAW, "all": MAX}


@pytest.mark.parametrize("there", ALLOWED)
@pytest.mark.parametrize("key", ["usdg_pool", "curve_usdg"])
async def test_what_was_allowed_the_venue_itself(
    clocked: Context, built: Built, wallet: Signer, key: str, there: str
) -> None:
    usdg, token, raw = built.contracts["usdg"], built.tokens[key], ALLOWED[there]
    plain = await prepared(clocked, "buy", token, wallet.address, amount=PAID)
    spender = built.contracts["swapRouter02"] if key == "usdg_pool" else plain.answer["venue"]["at"]
    if raw:
        allow(wallet, usdg, spender, raw)
    trade = await prepared(clocked, "buy", token, wallet.address, amount=PAID)
    enough = raw >= PAID_RAW
    assert len(trade.steps) == (1 if enough else 2)
    assert len(trade.answer["alreadyDone"]) == enough
    if enough:
        assert "may already take 100 usdg" in trade.answer["alreadyDone"][0]
    assert [step["n"] for step in trade.steps] == [*range(1, len(trade.steps) + 1)]
    took(trade, wallet.trade(trade))
    left = max(raw, PAID_RAW) - PAID_RAW
    # A token may leave an allowance without a bound as it is.
    assert wallet.allowed(usdg, spender) in ({left, MAX} if raw == MAX else {left})


@pytest.mark.parametrize("to_permit2", ["none", "one less", "exact", "more", "all"])
@pytest.mark.parametrize(
    ("to_router", "until_s"),
    [
        (0, 0), (PAID_RAW, LATE), (2 * PAID_RAW, DEADLINE_S), (PAID_RAW - 1, LATE),
        (2 * PAID_RAW, DEADLINE_S - 1), (2**160 - 1, 1_700_000_000), (2**160 - 1, 2**48 - 1),
    ],
)  # fmt: skip
async def test_what_was_allowed_by_way_of_permit2(
    clocked: Context, built: Built, wallet: Signer, to_permit2: str, to_router: int, until_s: int
) -> None:
    usdg, raw = built.contracts["usdg"], ALLOWED[to_permit2]
    if raw:
        allow(wallet, usdg, built.contracts["permit2"], raw)
    if to_router:
        allow_by_permit2(wallet, built, usdg, to_router, until_s)
    trade = await prepared(clocked, "buy", built.tokens["v4_usdg"], wallet.address, amount=PAID)
    first, second = raw >= PAID_RAW, to_router >= PAID_RAW and until_s >= DEADLINE_S
    assert len(trade.steps) == 3 - first - second
    assert len(trade.answer["alreadyDone"]) == first + second
    targets = [step["to"] for step in trade.steps[:-1]]
    assert targets == [usdg] * (not first) + [built.contracts["permit2"]] * (not second)
    took(trade, wallet.trade(trade))
    if to_router != 2**160 - 1 or not second:
        assert wallet.allowed_by_permit2(usdg) == (to_router if second else PAID_RAW) - PAID_RAW


@pytest.mark.parametrize("key", ["plain", "v4_fee_on_sell", "curve", "graduated_usdg"])
async def test_a_sell_uses_what_was_allowed(
    clocked: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str
) -> None:
    token = built.tokens[key]
    amount = "100" if "usdg" in key else "0.05"
    took(buy := await prepared(clocked, "buy", token, wallet.address, amount=amount), wallet.trade(buy))
    whole = await prepared(clocked, "sell", token, wallet.address, amount="all")
    *approvals, _ = whole.steps
    assert len(approvals) == (2 if key in ("v4_fee_on_sell", "graduated_usdg") else 1)
    assert all(receipt.ok for receipt in wallet.sign_and_send(approvals))
    again = await prepared(clocked, "sell", token, wallet.address, amount="all")
    assert len(again.steps) == 1
    assert len(again.answer["alreadyDone"]) == len(approvals)
    assert (again.raw, again.min_raw) == (whole.raw, whole.min_raw)
    took(again, wallet.trade(again))
    curve = again.answer["venue"]["at"] if key == "curve" else None
    assert wallet.leftovers([token, built.contracts["usdg"]], curve) == {}
    assert wallet.tokens(token) == 0


async def test_what_others_were_allowed_does_not_count(
    clocked: Context, rpc: SyncRpc, built: Built, wallet: Signer
) -> None:
    """Another wallet's allowance, another token's and another spender's."""
    usdg, router = built.contracts["usdg"], built.contracts["swapRouter02"]
    other = Signer(rpc, built.contracts, "other")
    allow(other, usdg, router, MAX)
    allow(wallet, built.tokens["plain"], router, MAX)
    allow(wallet, usdg, built.contracts["universalRouter"], MAX)
    allow(wallet, usdg, built.contracts["permit2"], MAX)
    trade = await prepared(clocked, "buy", built.tokens["usdg_pool"], wallet.address, amount=PAID)
    assert (len(trade.steps), trade.answer["alreadyDone"]) == (2, [])
    took(trade, wallet.trade(trade))


# --- allowances that cannot be raised --------------------------------------------------------------


@pytest.mark.parametrize("allowed", [0, 5, SOLD_RAW - 1, SOLD_RAW, SOLD_RAW + 1])
@pytest.mark.parametrize("version", POOLS)
async def test_a_token_whose_allowances_cannot_be_raised(
    clocked: Context,
    rpc: SyncRpc,
    built: Built,
    wallet: Signer,
    stubborn_code: str,
    version: int,
    allowed: int,
) -> None:
    token = stubborn(rpc, built, stubborn_code, version, from_zero=True)
    spender = built.contracts["swapRouter02" if version == 3 else "permit2"]
    given(rpc, built, token, wallet.address, SOLD_RAW)
    if allowed:
        allow(wallet, token, spender, allowed)
    trade = await prepared(clocked, "sell", token, wallet.address, amount=SOLD)
    mine = [step for step in trade.steps if step["to"] == token]
    exact = calldata("approve(address,uint256)", spender, SOLD_RAW)
    nothing = calldata("approve(address,uint256)", spender, 0)
    expected = [] if allowed >= SOLD_RAW else [exact] if allowed == 0 else [nothing, exact]
    assert [step["data"] for step in mine] == expected
    assert len(trade.steps) == len(expected) + (1 if version == 3 else 2)
    assert ("to zero" in trade.does[0]) is (0 < allowed < SOLD_RAW)
    took(trade, wallet.trade(trade))
    assert wallet.allowed(token, spender) == max(0, allowed - SOLD_RAW)
    assert wallet.tokens(token) == 0


@pytest.mark.parametrize("key", ["plain", "no_return_value", "v4_fee_on_sell"])
async def test_what_can_be_raised_is_not_taken_back(
    clocked: Context, rpc: SyncRpc, built: Built, wallet: Signer, key: str
) -> None:
    token, v4 = built.tokens[key], key == "v4_fee_on_sell"
    spender = built.contracts["permit2" if v4 else "swapRouter02"]
    given(rpc, built, token, wallet.address, SOLD_RAW)
    allow(wallet, token, spender, 7)
    trade = await prepared(clocked, "sell", token, wallet.address, amount=SOLD)
    assert len(trade.steps) == (3 if v4 else 2)
    assert trade.steps[0]["data"] == calldata("approve(address,uint256)", spender, SOLD_RAW)
    took(trade, wallet.trade(trade))
    assert wallet.leftovers([token]) == {}


@pytest.mark.parametrize("version", POOLS)
async def test_a_token_that_cannot_be_taken_back_is_raised(
    clocked: Context, rpc: SyncRpc, built: Built, wallet: Signer, stubborn_code: str, version: int
) -> None:
    token = stubborn(rpc, built, stubborn_code, version, from_zero=False)
    given(rpc, built, token, wallet.address, SOLD_RAW)
    allow(wallet, token, built.contracts["swapRouter02" if version == 3 else "permit2"], 5)
    trade = await prepared(clocked, "sell", token, wallet.address, amount=SOLD)
    assert len(trade.steps) == version - 1
    took(trade, wallet.trade(trade))


# --- and a curve that takes less -------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [0, 100 * 10**6, 6000 * 10**6, MAX])
async def test_what_was_allowed_is_held_against_what_the_curve_takes(
    clocked: Context, built: Built, wallet: Signer, allowed: int
) -> None:
    """7000 usdg are offered and 5720 taken: 6000 are enough."""
    usdg, token = built.contracts["usdg"], built.tokens["curve_usdg"]
    plain = await prepared(clocked, "buy", token, wallet.address, amount="7000")
    assert 5700 * 10**6 < plain.spend_raw < 5800 * 10**6
    assert "The venue takes at most" in plain.text
    curve = plain.answer["venue"]["at"]
    if allowed:
        allow(wallet, usdg, curve, allowed)
    trade = await prepared(clocked, "buy", token, wallet.address, amount="7000")
    assert trade.spend_raw == plain.spend_raw
    assert len(trade.steps) == (1 if allowed >= plain.spend_raw else 2)
    took(trade, wallet.trade(trade))
    if allowed < plain.spend_raw:
        assert wallet.allowed(usdg, curve) == 0
