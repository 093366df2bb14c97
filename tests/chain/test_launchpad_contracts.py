"""Our launchpad on the real local chain, against sums that the real one's public logs show.

The golden numbers are logs of chain 4663, amounts raw: three first buys on curves, one graduation and the
first swap of its pool. ``Curve`` below is the curve's arithmetic, written down a second time.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak
from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle

from roundtrip.devnet import launchpad, world
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import ZERO, Deployer, calldata
from roundtrip.devnet.launchpad import Launch, Launched
from roundtrip.devnet.node import NodeOptions
from roundtrip.devnet.wire import SyncRpc

SUPPLY = 10**27
NVDA_TERMS = (16_640_000_000_000_000_000, 41_600_000_000_000_000_000)
SWEPT_QUOTE, SWEPT_TOKENS = 41_600_000_000_000_000_002, 285_714_285_714_285_714_285_714_285
POOL_TOKENS = 204_081_632_653_061_224_492_599_236
LIQUIDITY = 92_140_088_551_983_424_601_325
SWAP_IN, SWAP_OUT = 31_880_381_102_749_799_957_318_148, 5_620_497_268_881_825_819
SWAP_PRICE_X96 = 30_937_564_032_784_793_309_170_036

CURVE = """buy(uint256,uint256,address) 59a87bc1 sell(uint256,uint256,address) d04c6983 getReserves() 0902f1ac
realQuoteReserve() 4f1f58fd trackedQuote() ca52b0b7 trackedTokens() 4c37ef23 feeBps() 24a9d853
creatorTaxBps() c1bb8901 currentSnipeTaxBps(address) d7e1ef39 snipeTaxExempt(address) d44bdfe7
sellableTokens() 808bcddc reservedTokens() 15a55347 graduated() e7c2b772 readyToGraduate() c68360a5
graduationThreshold() 8b0bc501 phantomQuote() c57eadfc pairToken() 3de35b79 isNativeQuote() dc08e094
launchedAt() bf56b371 token() fc0c546a deployer() d5f39488 launchSupply() 3f7ed6b7 buybackEnabled() 160d0da5
CurveBuy ec36bf571f136799e8dc0b0b8bea4b04d8bd3d43de838aab0d5fc21d4cbfc455
CurveSell 8113d738abdcb6b38357e9d53a54a7157861a09031b453651f0fe7fe151f59df
SnipeTaxCharged 3bc39a5562b28f5fe8f36cecabfbaa12bb969acf05717994709225fc412a9934
SnipeTaxExempted e4b7e48fbd47c2f602bacadee76ad33b16542ddb4997cfc0de04c311adcfa8c7
CurveBuyRefunded a69e8258ccc7b9bbb70ab953fc2d1062b4ee28b8ca827534097e1732e87b0262
CurveCompleted f8d37a90738ae063b8b8058b66f5880cf3cf7ab0c5d4fa78219696591dfbfb67
FeesSwept 9f4cd7c4ed99d08a797804560c9c5d71d2cf7e101f2e3b5e7d1ca8a24c370e4f
BuybackLocked 5feba9b0d52c92ada4b9c571c2bee52390c54f2947208ab250221e6ee32f12ff"""
FACTORY = """getLaunchedToken(address) 3cf28b5a
graduate(address) ff6d8d05 createGraduatedPool(address) 2f53ef2f
launchToken(T,uint256,address) f35abbcf launchToken(T,uint256,address,address[]) a72101af
launchTokenFor(T,uint256,address,address,address[]) d6a0eef5
TokenLaunched 8d4aad4953d0ca700d468f3753aa14432d1b35b43ec6409f051fb6aa43a89607
LaunchSwept cdb72f157fd3666758a6ce201387ffb52038c7562e4fff352828da1096c4b6b4
PoolGraduated 0a44ef75df69c534f43cd6c1aa3ef8983065fe5fe79ef9e79f6494e6f258c259
GraduationTokensPermanentlyLocked a0a18f5bf205becee8b268d7cf69addab8548ae8ef361791464cf0e0e17c1361
LaunchForceSwept 52c1a28345695afc7f6b7629133124dec5d61ee745affd65e4fd2a776bc05840"""
HOOK = """launches(bytes32) ad091230
PoolRegistered 01bf263a1db1652580721573296e1a1fa70b3d4c87f61d02a69c4e1109d2d573
HookFeeCollected c532c43b3423e14ef72748f1c8291238829ca0af8ba9b67975ad1483485a4b4d
PoolFeesSwept 2f3c43579b9064b6f28edcf41608f3815792d274a56afe024359703cb4ea9b30"""
ROUTER = """launchAndBuy(T,uint256,address,uint256,uint256,address,address[]) f85f8e41
Launched dcacba5e347ae7abd91cb519eb877af8fa7774e347b85dd3ddcd24a2ba8cdf37"""
ERRORS = {
    "CurveGraduated()": "0x025ac17e",
    "SlippageExceeded(uint256,uint256)": "0x71c4efed",
    "ZeroAmount()": "0x1f2a2005",
    "NativeValueMismatch()": "0xda52ba9e",
    "UnexpectedNativeValue()": "0xe0aeda7d",
}


@dataclass
class Curve:
    """The curve's sums. ``quote``: what it really holds, without pending fees."""

    phantom: int
    threshold: int
    tax_bps: int = 0
    quote: int = 0
    tokens: int = SUPPLY

    def buy(self, quote_in: int, snipe_bps: int = 0) -> tuple[int, int]:
        """What was spent and what came out."""
        reserved = SUPPLY * self.phantom // (self.phantom + self.threshold)
        reserve, sellable, spent = self.phantom + self.quote, self.tokens - reserved, quote_in
        net = self._net(spent, snipe_bps)
        out = net * self.tokens // (reserve + net)
        if out > sellable:
            needed = -(-reserve * sellable // reserved)
            out, spent = sellable, -(-needed * 10_000 // (10_000 - 100 - self.tax_bps - snipe_bps))
            net = self._net(spent, snipe_bps)
        self.quote, self.tokens = self.quote + net, self.tokens - out
        return spent, out

    def sell(self, tokens: int) -> int:
        """What was paid."""
        gross = tokens * (self.phantom + self.quote) // (self.tokens + tokens)
        self.quote, self.tokens = self.quote - gross, self.tokens + tokens
        return gross - gross * 100 // 10_000 - gross * self.tax_bps // 10_000

    def _net(self, spent: int, snipe_bps: int) -> int:
        return spent - sum(spent * bps // 10_000 for bps in (100, self.tax_bps, snipe_bps))


class Pad:
    """The launchpad and the account that made it, with plain ways to ask and to trade."""

    def __init__(self, deployer: Deployer, contracts: dict[str, str], nvda: str) -> None:
        self.deployer, self.contracts, self.nvda = deployer, contracts, nvda
        self.factory = contracts["launchpadFactory"]

    def ask(self, to: str, signature: str, answer: str, *values: object) -> Any:
        """One value of a view."""
        call = {"to": to, "data": calldata(signature, *values)}
        data = bytes.fromhex(self.deployer.chain.call("eth_call", call, "latest")[2:])
        found = decode([answer], data)
        return found[0]

    def held(self, asset: str, account: str) -> int:
        """A balance; the zero address is native eth."""
        if asset == ZERO:
            return int(self.deployer.chain.call("eth_getBalance", account, "latest"), 16)
        return int(self.ask(asset, "balanceOf(address)", "uint256", account))

    def launch(self, **asked: Any) -> Launched:
        """A launch whose token sorts below an ERC-20 quote, as in the golden numbers."""
        for salt in itertools.count(len(self.deployer.sent)):
            snapshot = self.deployer.chain.call("evm_snapshot")
            made = launchpad.launch(self.deployer, self.contracts, Launch("Meme", "MEME", salt=salt, **asked))
            if made.quote == ZERO or int(made.token, 16) < int(made.quote, 16):
                return made
            self.deployer.chain.call("evm_revert", snapshot)
        raise AssertionError("no salt gave a low address")

    def buy(self, curve: Launched, quote_in: int, recipient: str | None = None) -> dict[str, Any]:
        """The receipt of a buy."""
        return self.deployer.receipt(launchpad.curve_buy(self.deployer, curve, quote_in, recipient))

    def refused(
        self, to: str, signature: str, *values: object, value_wei: int = 0, caller: str | None = None
    ) -> str:
        """The bytes with which a call is refused."""
        call = {"from": caller or self.deployer.account, "to": to, "data": calldata(signature, *values)}
        calls = [call | {"value": hex(value_wei), "gas": hex(5_000_000)}]
        asked = {"blockStateCalls": [{"calls": calls}]}
        (block,) = self.deployer.chain.call("eth_simulateV1", asked, "latest")
        assert block["calls"][0]["status"] == "0x0"
        return str(block["calls"][0]["returnData"])

    def swap(self, made: Launched, buy: bool, amount: int) -> dict[str, Any]:
        """The receipt of a swap in the pool."""
        return self.deployer.receipt(launchpad.pool_swap(self.deployer, self.contracts, made, buy, amount))

    def do(self, to: str, signature: str, *values: object) -> dict[str, Any]:
        """The receipt of any call. Raises DeployError when it is refused."""
        return self.deployer.receipt(self.deployer.send(to, calldata(signature, *values)))


def log(receipt: dict[str, Any], event: str, types: str) -> tuple[Any, ...]:
    """The unindexed values of the one log of an event, whose topic the tables above give."""
    table = "\n".join((CURVE, FACTORY, HOOK, ROUTER)).split()
    topic = "0x" + table[table.index(event) + 1]
    (found,) = (entry for entry in receipt["logs"] if entry["topics"][0] == topic)
    return tuple(decode(types.split(), bytes.fromhex(found["data"][2:])))


@pytest.fixture(scope="module")
def standing(places: world.Places, built: world.Built) -> Iterator[Pad]:
    """The launchpad on a chain of this module's own."""
    with world.started(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as chain:
        deployer = Deployer(chain, built.accounts[0])
        sources = places.project / "contracts"
        made = launchpad.deploy_launchpad(deployer, built.contracts, sources)
        code = compile_contract(sources / "tokens/plain.vy")
        nvda = deployer.create(code, ["string", "string", "uint256"], ["NVDA", "NVDA", 10**24]).lower()
        launchpad.approve_quote(deployer, made["launchpadFactory"], nvda, *NVDA_TERMS)
        deployer.settle()
        yield Pad(deployer, built.contracts | made, nvda)


@pytest.fixture
def pad(standing: Pad) -> Iterator[Pad]:
    chain = standing.deployer.chain
    snapshot = chain.call("evm_snapshot")
    yield standing
    standing.deployer.sent.clear()
    assert chain.call("evm_revert", snapshot)


@pytest.mark.parametrize(
    ("name", "table"), [("curve", CURVE), ("factory", FACTORY), ("hook", HOOK), ("router", ROUTER)]
)
def test_selectors_and_topics_are_the_real_ones(places: world.Places, name: str, table: str) -> None:
    source = places.project / f"contracts/launchpad/{name}.vy"
    bundle = FilesystemInputBundle([source.parent])
    abi = compile_from_file_input(bundle.load_file(source.name), input_bundle=bundle, output_formats=["abi"])[
        "abi"
    ]
    ours = {}
    for entry in abi:
        if entry["type"] in ("function", "event"):
            signature = f"{entry['name']}({','.join(map(typed, entry['inputs']))})"
            digest = keccak(text=signature).hex()
            short = signature.replace(launchpad.WISH, "T")
            ours[entry["name"] if entry["type"] == "event" else short] = (
                digest if entry["type"] == "event" else digest[:8]
            )
    words = table.split()
    for key, expected in zip(words[::2], words[1::2], strict=True):
        assert ours[key] == expected, key


def typed(entry: dict[str, Any]) -> str:
    if entry["type"] == "tuple":
        return f"({','.join(map(typed, entry['components']))})"
    return str(entry["type"])


@pytest.mark.parametrize(
    ("native", "tax_bps", "paid", "fee", "tax", "out"),
    [
        (False, 0, 352_696_917_677_647_859, 3_526_969_176_776_478, 0, 20_552_501_950_319_369_479_600_566),
        (False, 0, 28_716_771_876_358_226, 287_167_718_763_582, 0, 1_705_595_837_924_855_733_224_858),
        (True, 100, 580 * 10**15, 5_800 * 10**12, 5_800 * 10**12, 252_801_992_528_019_925_280_199_252),
    ],
)
def test_golden_first_buys(
    pad: Pad, native: bool, tax_bps: int, paid: int, fee: int, tax: int, out: int
) -> None:
    made = pad.launch(quote=ZERO if native else pad.nvda, creator_tax_bps=tax_bps)
    bought = pad.buy(made, paid)
    assert log(bought, "CurveBuy", "uint256 uint256 uint256 uint256") == (paid, out, fee, tax)
    assert pad.held(made.token, pad.deployer.account) == out
    assert pad.held(made.quote, made.curve) == pad.ask(made.curve, "trackedQuote()", "uint256") == paid
    assert pad.ask(made.curve, "realQuoteReserve()", "uint256") == paid - fee - tax
    phantom = pad.ask(made.curve, "phantomQuote()", "uint256")
    reserves = pad.ask(made.curve, "getReserves()", "(uint256,uint256)")
    assert reserves == (phantom + paid - fee - tax, SUPPLY - out)


def test_buys_and_sells_follow_the_curve(pad: Pad) -> None:
    made, curve = pad.launch(creator_tax_bps=250), Curve(*launchpad.NATIVE_TERMS, tax_bps=250)
    for quote_in, tokens in ((10**18, 10**26), (123_456_789, 987_654_321_987), (3 * 10**17, 10**26 + 7)):
        spent, out = curve.buy(quote_in)
        found = log(pad.buy(made, quote_in), "CurveBuy", "uint256 uint256 uint256 uint256")
        assert found[:2] == (spent, out) == (quote_in, out)
        gross_fee_free = curve.sell(tokens)
        sold = pad.deployer.receipt(launchpad.curve_sell(pad.deployer, made, tokens))
        tokens_in, paid, fee, tax = log(sold, "CurveSell", "uint256 uint256 uint256 uint256")
        assert (tokens_in, paid) == (tokens, gross_fee_free)
        assert (fee, tax) == ((paid + fee + tax) * 100 // 10_000, (paid + fee + tax) * 250 // 10_000)
        assert pad.ask(made.curve, "realQuoteReserve()", "uint256") == curve.quote
        assert pad.ask(made.curve, "trackedTokens()", "uint256") == curve.tokens
    assert pad.held(ZERO, made.curve) == pad.ask(made.curve, "trackedQuote()", "uint256")


@pytest.mark.parametrize(
    ("elapsed_s", "shown", "taken"), [(0, 9900, 9800), (1, 618, 618), (2, 19, 19), (3, 0, 0)]
)
def test_snipe_tax_by_recipient(pad: Pad, elapsed_s: int, shown: int, taken: int) -> None:
    """At second 0 the router buys in the launch itself: the buyer keeps one percent."""
    chain, stranger, friend = pad.deployer.chain, "0x" + "5a" * 20, "0x" + "5b" * 20
    asked, amount = Launch("Snipe", "SNIPE", exempt=(friend,)), 10**17
    _, out = Curve(*launchpad.NATIVE_TERMS).buy(amount, taken)
    made = launchpad.launch_and_buy(
        pad.deployer, pad.contracts, asked, amount if elapsed_s == 0 else 1000, stranger
    )
    receipt = pad.deployer.receipt(pad.deployer.sent[-1])
    if elapsed_s == 0:
        assert log(receipt, "Launched", "address uint256 uint256") == (pad.deployer.account, amount, out)
        assert pad.ask(made.curve, "currentSnipeTaxBps(address)", "uint256", stranger) == shown
    else:
        launched_at = pad.ask(made.curve, "launchedAt()", "uint256")
        chain.call("evm_setNextBlockTimestamp", hex(launched_at + elapsed_s))
        before = pad.held(made.token, stranger)
        receipt = pad.buy(made, amount, stranger)
        assert (
            log(receipt, "CurveBuy", "uint256 uint256 uint256 uint256")[2] == amount * (100 + taken) // 10_000
        )
        assert pad.held(made.token, stranger) - before == pytest.approx(out, rel=1e-12)
    if taken:
        assert log(receipt, "SnipeTaxCharged", "uint256") == (amount * taken // 10_000,)
    for account in (friend, pad.deployer.account):
        assert pad.ask(made.curve, "currentSnipeTaxBps(address)", "uint256", account) == 0


@pytest.mark.parametrize("native", [True, False])
def test_the_last_buy_stops_at_the_reserve_and_gets_the_rest_back(pad: Pad, native: bool) -> None:
    terms = launchpad.NATIVE_TERMS if native else NVDA_TERMS
    made, curve = pad.launch(quote=ZERO if native else pad.nvda), Curve(*terms)
    offered = 3 * terms[1]
    spent, out = curve.buy(offered)
    bound = calldata("buy(uint256,uint256,address)", offered, out * offered // spent, pad.deployer.account)
    tight = ("buy(uint256,uint256,address)", offered, out * offered // spent + 1, pad.deployer.account)
    if not native:
        pad.do(made.quote, "approve(address,uint256)", made.curve, offered)
    value_wei = offered if native else 0
    assert (
        pad.refused(made.curve, *tight, value_wei=value_wei)[:10]
        == ERRORS["SlippageExceeded(uint256,uint256)"]
    )
    bought = pad.deployer.receipt(pad.deployer.send(made.curve, bound, value_wei))
    assert log(bought, "CurveBuy", "uint256 uint256 uint256 uint256")[:2] == (spent, out)
    assert log(bought, "CurveBuyRefunded", "uint256") == (offered - spent,)
    assert log(bought, "CurveCompleted", "address uint256 uint256") == (made.token, curve.quote, curve.tokens)
    assert curve.tokens == pad.ask(made.curve, "reservedTokens()", "uint256") == SWEPT_TOKENS
    assert pad.held(made.quote, made.curve) == spent
    assert pad.ask(made.curve, "readyToGraduate()", "bool")


def test_refusals_carry_the_real_bytes(pad: Pad) -> None:
    buy, sell, me = "buy(uint256,uint256,address)", "sell(uint256,uint256,address)", pad.deployer.account
    made, other = pad.launch(), pad.launch(quote=pad.nvda, creator_tax_bps=1)
    assert [error for error in ERRORS if "0x" + keccak(text=error).hex()[:8] != ERRORS[error]] == []
    assert pad.refused(made.curve, buy, 0, 0, me) == ERRORS["ZeroAmount()"]
    assert pad.refused(made.curve, sell, 0, 0, me) == ERRORS["ZeroAmount()"]
    assert pad.refused(made.curve, buy, 5, 0, me, value_wei=4) == ERRORS["NativeValueMismatch()"]
    assert pad.refused(other.curve, buy, 5, 0, me, value_wei=5) == ERRORS["UnexpectedNativeValue()"]
    _, out = Curve(*launchpad.NATIVE_TERMS).buy(10**18)
    expected = ERRORS["SlippageExceeded(uint256,uint256)"] + encode(["uint256"] * 2, [out, out + 1]).hex()
    assert pad.refused(made.curve, buy, 10**18, out + 1, me, value_wei=10**18) == expected
    fee = launchpad.LAUNCH_FEE_WEI
    launch = (launchpad.LAUNCH, Launch("x", "x").wish(), 0, ZERO, [])
    for value_wei in (fee - 1, fee + 1):
        assert pad.refused(pad.factory, *launch, value_wei=value_wei) == ERRORS["NativeValueMismatch()"]
    pad.buy(made, 10**19)
    for after in ("sold out", "swept"):
        assert pad.refused(made.curve, buy, 5, 0, me, value_wei=5) == ERRORS["CurveGraduated()"], after
        assert pad.refused(made.curve, sell, 5, 0, me) == ERRORS["CurveGraduated()"], after
        if after == "sold out":
            pad.do(pad.factory, "graduate(address)", made.token)


KNOWN = f"({'address,' * 5}uint256,uint24,int24,uint16,bool,uint8,uint256,uint256,uint256,bool)"


def test_golden_graduation_and_first_swap(pad: Pad) -> None:
    made, owner = pad.launch(quote=pad.nvda), pad.deployer.account
    pad.buy(made, 10**20)
    swept = pad.do(pad.factory, "graduate(address)", made.token)
    assert log(swept, "LaunchSwept", "uint256 uint256") == (SWEPT_QUOTE, SWEPT_TOKENS)
    known = pad.ask(pad.factory, "getLaunchedToken(address)", KNOWN, made.token)
    assert known[:5] == (made.token, made.curve, owner, owner, pad.nvda)
    assert known[5:13] == (NVDA_TERMS[1], 0, 200, 0, False, 1, SWEPT_QUOTE, SWEPT_TOKENS)
    pooled = pad.do(pad.factory, "createGraduatedPool(address)", made.token)
    position, *amounts = log(pooled, "PoolGraduated", "uint256 uint256 uint256")
    assert amounts == [POOL_TOKENS, SWEPT_QUOTE]
    locked = log(pooled, "GraduationTokensPermanentlyLocked", "uint256")
    assert locked == (SWEPT_TOKENS - POOL_TOKENS,)
    manager, locker = pad.contracts["v4PositionManager"], pad.contracts["launchpadLocker"]
    assert pad.ask(manager, "ownerOf(uint256)", "address", position) == locker
    pool = pool_id(launchpad.pool_key(pad.contracts, made.token, pad.nvda))
    view = pad.contracts["v4StateView"]
    assert pad.ask(view, "getLiquidity(bytes32)", "uint128", pool) == LIQUIDITY
    pad.swap(made, False, SWAP_IN)
    assert pad.ask(view, "getSlot0(bytes32)", "uint160", pool) == SWAP_PRICE_X96
    received = pad.held(pad.nvda, owner) + SWEPT_QUOTE + pad.ask(made.curve, "trackedQuote()", "uint256")
    escrowed = pad.held(pad.nvda, pad.contracts["launchpadEscrow"])
    assert received + escrowed == 10**24 + SWAP_OUT - SWAP_OUT * 100 // 10_000


def test_golden_pool_id() -> None:
    key = (
        "0xc9e9ab90654f82893d7fd18b62f694992e8cef29",
        "0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec",
        0,
        200,
        "0xe5e702641ea86f4ae6cc3cdaed2b886f976be044",
    )
    assert pool_id(key).hex() == "6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"


def pool_id(key: tuple[Any, ...]) -> bytes:
    return keccak(encode(["address", "address", "uint24", "int24", "address"], key))


@pytest.mark.parametrize(("native", "tax_bps"), [(True, 0), (True, 1000), (False, 37)])
def test_the_hook_takes_its_share_of_the_output(pad: Pad, native: bool, tax_bps: int) -> None:
    made = pad.launch(quote=ZERO if native else pad.nvda, creator_tax_bps=tax_bps, creator="0x" + "c0" * 20)
    pad.buy(made, 10**20)
    pool = launchpad.graduate(pad.deployer, pad.contracts, made.token)
    hook, owner = pad.contracts["launchpadHook"], pad.deployer.account
    escrow = pad.contracts["launchpadEscrow"]
    for buy, amount in ((True, 10**16), (False, 10**24)):
        target = made.token if buy else made.quote
        before, kept = pad.held(target, owner), pad.held(target, hook)
        done = pad.swap(made, buy, amount)
        topic = "0x" + keccak(text="Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)").hex()
        (swapped,) = (entry for entry in done["logs"] if entry["topics"][0] == topic)
        moved = max(decode(["int128", "int128"], bytes.fromhex(swapped["data"][2:])))
        shares = (moved * 100 // 10_000, moved * tax_bps // 10_000)
        currency, *found = log(done, "HookFeeCollected", "address uint256 uint256")
        assert (currency, tuple(found)) == (target, shares)
        gas_wei = int(done["gasUsed"], 16) * int(done["effectiveGasPrice"], 16) if target == ZERO else 0
        if target != ZERO:
            assert pad.held(target, owner) - before == moved - sum(shares)
        else:
            assert pad.held(target, owner) - before + gas_wei <= moved - sum(shares)
        assert pad.held(target, hook) - kept == sum(shares)
    before = pad.held(made.quote, escrow)
    done = pad.do(hook, "sweepPoolFees(bytes32)", bytes.fromhex(pool[2:]))
    swept = log(done, "PoolFeesSwept", "uint256 " * 4)
    assert pad.held(made.quote, escrow) - before == swept[0] + swept[1]
    assert (pad.held(made.token, hook), pad.held(made.quote, hook)) == (0, 0)


@pytest.mark.parametrize("buyback", [False, True])
def test_fees_reach_their_owners_once(pad: Pad, buyback: bool) -> None:
    creator, escrow, locker = (
        "0x" + "c0" * 20,
        pad.contracts["launchpadEscrow"],
        pad.contracts["launchpadLocker"],
    )
    made = pad.launch(quote=pad.nvda, creator=creator, creator_tax_bps=300, buyback=buyback)
    pad.buy(made, 10**18)
    held = "balances(address,address)"
    fee, tax = 10**16, 3 * 10**16
    creators = fee - fee * 3000 // 10_000 + tax
    spent = creators // 2 if buyback else 0
    quote, tokens = pad.ask(made.curve, "getReserves()", "(uint256,uint256)")
    swept = pad.do(made.curve, "sweepFees()")
    assert log(swept, "FeesSwept", "uint256 " * 3) == (fee * 3000 // 10_000, creators - spent, spent)
    assert pad.ask(escrow, held, "uint256", creator, pad.nvda) == creators - spent
    assert pad.ask(escrow, held, "uint256", pad.deployer.account, pad.nvda) == fee * 3000 // 10_000
    if buyback:
        locked = spent * tokens // (quote + spent)
        assert log(swept, "BuybackLocked", "uint256 uint256") == (spent, locked)
        assert pad.held(made.token, locker) == locked
    assert pad.ask(made.curve, "getReserves()", "(uint256,uint256)")[0] == quote + spent
    assert pad.held(pad.nvda, made.curve) == pad.ask(made.curve, "trackedQuote()", "uint256")
    before = pad.held(pad.nvda, pad.deployer.account)
    for _ in range(2):
        pad.do(escrow, "claim(address)", pad.nvda)
    assert pad.held(pad.nvda, pad.deployer.account) - before == fee * 3000 // 10_000


@pytest.mark.parametrize("swept", [False, True])
def test_the_owner_rescues_what_cannot_graduate(pad: Pad, swept: bool) -> None:
    made, owner = pad.launch(), pad.deployer.account
    pad.buy(made, 10**19 if swept else 10**17)
    if swept:
        pad.do(pad.factory, "graduate(address)", made.token)
    done = pad.do(pad.factory, "forceSweep(address)", made.token)
    assert log(done, "LaunchForceSwept", "") == ()
    known = pad.ask(pad.factory, "getLaunchedToken(address)", KNOWN, made.token)
    escrowed = pad.ask(
        pad.contracts["launchpadEscrow"], "balances(address,address)", "uint256", owner, made.token
    )
    assert (known[10], known[12]) == (3, escrowed)
    assert pad.ask(made.curve, "graduated()", "bool")


def test_doors_that_stay_shut(pad: Pad) -> None:
    made, ready, stranger = pad.launch(), pad.launch(), "0x" + "5a" * 20
    pad.buy(ready, 10**19)
    key = launchpad.pool_key(pad.contracts, made.token, ZERO)
    hook, locker, shape = (
        pad.contracts["launchpadHook"],
        pad.contracts["launchpadLocker"],
        "(address,address,uint24,int24,address)",
    )
    wish = Launch("x", "x").wish()
    told = (*wish[:8], b"\1" * 32, wish[9])
    fee, swap = launchpad.LAUNCH_FEE_WEI, f"afterSwap(address,{shape},(bool,int256,uint160),int256,bytes)"
    shut = {
        "wrong phase": [(pad.factory, "createGraduatedPool(address)", made.token)],
        "not ready": [(pad.factory, "graduate(address)", made.token)],
        "not the owner": [
            (pad.factory, "forceSweep(address)", made.token),
            (pad.factory, "wire(address,address,address)", ZERO, ZERO, ZERO),
            (pad.factory, "setQuoteTerms(address,uint256,uint256,bool)", ZERO, 1, 1, True),
        ],
        "not the factory": [
            (ready.curve, "release(bool)", False),
            (locker, f"lock({shape},uint256,uint256)", key, 0, 0),
            (
                hook,
                f"register({shape},(address,address,address,uint256,bool))",
                key,
                (ZERO, ZERO, ZERO, 0, False),
            ),
        ],
        "not the manager": [
            (hook, "unlockCallback(bytes)", bytes(64)),
            (hook, swap, ZERO, key, (True, 1, 1), 1, b""),
        ],
        "not the forwarder": [
            (
                pad.factory,
                f"launchTokenFor({launchpad.WISH},uint256,address,address,address[])",
                wish,
                0,
                ZERO,
                ZERO,
                [],
            ),
        ],
    }
    for reason, calls in shut.items():
        for call in calls:
            assert reason.encode().hex() in pad.refused(*call, caller=stranger), call
    opened = pad.refused(pad.contracts["v4PoolManager"], f"initialize({shape},uint160)", key, 2**96)
    assert b"not the factory".hex() in opened
    changed = pad.refused(pad.factory, launchpad.LAUNCH, told, 0, ZERO, [], value_wei=fee)
    assert b"terms changed".hex() in changed
