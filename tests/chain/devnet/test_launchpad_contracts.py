"""Our launchpad on the real local chain, against sums that the real one's public logs show.

The golden numbers are logs of chain 4663, amounts raw: three first buys on curves, one graduation and the
first swap of its pool. ``Curve`` below is the curve's arithmetic, written down a second time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle

from roundtrip_development.devnet import launchpad, world
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ZERO, ContractDeployer, calldata
from roundtrip_development.devnet.launchpad import LAUNCH_FEE_WEI, NATIVE_TERMS, CurveToken, LaunchRequest
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc

SUPPLY = 10**27
NVDA_TERMS = (16_640_000_000_000_000_000, 41_600_000_000_000_000_000)
SWEPT_QUOTE, SWEPT_TOKENS = 41_600_000_000_000_000_002, 285_714_285_714_285_714_285_714_285
POOL_TOKENS, LIQUIDITY = 204_081_632_653_061_224_492_599_236, 92_140_088_551_983_424_601_325
SWAP_IN, SWAP_OUT = 31_880_381_102_749_799_957_318_148, 5_620_497_268_881_825_819
SWAP_PRICE_X96 = 30_937_564_032_784_793_309_170_036

TABLES = {
    "curve": """buy(uint256,uint256,address) 59a87bc1 sell(uint256,uint256,address) d04c6983
getReserves() 0902f1ac realQuoteReserve() 4f1f58fd trackedQuote() ca52b0b7 trackedTokens() 4c37ef23
feeBps() 24a9d853 creatorTaxBps() c1bb8901 currentSnipeTaxBps(address) d7e1ef39
snipeTaxExempt(address) d44bdfe7 sellableTokens() 808bcddc reservedTokens() 15a55347 graduated() e7c2b772
readyToGraduate() c68360a5 graduationThreshold() 8b0bc501 phantomQuote() c57eadfc pairToken() 3de35b79
isNativeQuote() dc08e094 launchedAt() bf56b371 token() fc0c546a deployer() d5f39488
launchSupply() 3f7ed6b7 buybackEnabled() 160d0da5 CurveBuy ec36bf571f136799 CurveSell 8113d738abdcb6b3
SnipeTaxCharged 3bc39a5562b28f5f SnipeTaxExempted e4b7e48fbd47c2f6 CurveBuyRefunded a69e8258ccc7b9bb
CurveCompleted f8d37a90738ae063 FeesSwept 9f4cd7c4ed99d08a BuybackLocked 5feba9b0d52c92ad""",
    "factory": """getLaunchedToken(address) 3cf28b5a graduate(address) ff6d8d05
createGraduatedPool(address) 2f53ef2f launchToken(T,uint256,address) f35abbcf
launchToken(T,uint256,address,address[]) a72101af
launchTokenFor(T,uint256,address,address,address[]) d6a0eef5 TokenLaunched 8d4aad4953d0ca70
LaunchSwept cdb72f157fd36667 PoolGraduated 0a44ef75df69c534
GraduationTokensPermanentlyLocked a0a18f5bf205bece LaunchForceSwept 52c1a28345695afc""",
    "hook": """launches(bytes32) ad091230 PoolRegistered 01bf263a1db16525
HookFeeCollected c532c43b3423e14e PoolFeesSwept 2f3c43579b9064b6""",
    "router": """launchAndBuy(T,uint256,address,uint256,uint256,address,address[]) f85f8e41
Launched dcacba5e347ae7ab""",
}
"""What is public of the real contracts: selectors, and event topics by their first eight bytes."""
GRADUATED, SLIPPAGE, ZERO_AMOUNT = "0x025ac17e", "0x71c4efed", "0x1f2a2005"
VALUE_MISMATCH, UNEXPECTED_VALUE = "0xda52ba9e", "0xe0aeda7d"
BUY, SELL = "buy(uint256,uint256,address)", "sell(uint256,uint256,address)"
KEY = "(address,address,uint24,int24,address)"
CREATOR, STRANGER, FRIEND = ("0x" + pair * 20 for pair in ("c0", "5a", "5b"))


@dataclass
class Curve:
    """The curve's sums; a buy gives (spent, out). ``quote``: what it really holds, no pending fees."""

    phantom: int
    threshold: int
    tax_bps: int = 0
    quote: int = 0
    tokens: int = SUPPLY

    def buy(self, quote_in: int, snipe_bps: int = 0) -> tuple[int, int]:
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
        gross = tokens * (self.phantom + self.quote) // (self.tokens + tokens)
        self.quote, self.tokens = self.quote - gross, self.tokens + tokens
        return gross - gross * 100 // 10_000 - gross * self.tax_bps // 10_000

    def _net(self, spent: int, snipe_bps: int) -> int:
        return spent - sum(spent * bps // 10_000 for bps in (100, self.tax_bps, snipe_bps))


class Pad:
    """The launchpad and the account that made it, with plain ways to ask and to trade."""

    def __init__(self, deployer: ContractDeployer, contracts: dict[str, str], nvda: str) -> None:
        self.deployer, self.contracts, self.nvda = deployer, contracts, nvda
        self.me, parts = deployer.account, ("Factory", "Hook", "Locker", "Escrow")
        self.factory, self.hook, self.locker, self.escrow = (contracts[f"launchpad{p}"] for p in parts)

    def view(self, to: str, signature: str, *values: object) -> list[int]:
        call = {"to": to, "data": calldata(signature, *values)}
        return words(self.deployer.chain.call("eth_call", call, "latest"))

    def held(self, asset: str, account: str) -> int:
        """A balance; the zero address is native eth."""
        if asset == ZERO:
            return int(self.deployer.chain.call("eth_getBalance", account, "latest"), 16)
        return self.view(asset, "balanceOf(address)", account)[0]

    def launch(self, **asked: Any) -> CurveToken:
        """A launch whose token sorts below an ERC-20 quote, as in the golden numbers."""
        wish = LaunchRequest("Meme", "MEME", salt=len(self.deployer.sent), **asked)
        made = launchpad.launch(self.deployer, self.contracts, wish)
        return made if made.quote == ZERO or made.token < made.quote else self.launch(**asked)

    def buy(self, made: CurveToken, quote_in: int, recipient: str | None = None) -> dict[str, Any]:
        return self.deployer.receipt(launchpad.curve_buy(self.deployer, made, quote_in, recipient))

    def swap(self, made: CurveToken, buy: bool, amount: int) -> dict[str, Any]:
        key = launchpad.pool_key(self.contracts, made.token, made.quote)
        source = made.quote if buy else made.token
        return self.deployer.receipt(launchpad.v4_swap(self.deployer, self.contracts, key, source, amount))

    def do(self, to: str, signature: str, *values: object, value_wei: int = 0) -> dict[str, Any]:
        return self.deployer.receipt(self.deployer.send(to, calldata(signature, *values), value_wei))

    def refused(self, to: str, signature: str, *values: object, value_wei: int = 0, by: str = "") -> str:
        """The bytes with which a call is refused."""
        call = {"from": by or self.me, "to": to, "data": calldata(signature, *values)}
        calls = [call | {"value": hex(value_wei), "gas": hex(5_000_000)}]
        asked = {"blockStateCalls": [{"calls": calls}]}
        (block,) = self.deployer.chain.call("eth_simulateV1", asked, "latest")
        assert block["calls"][0]["status"] == "0x0"
        return str(block["calls"][0]["returnData"])


def words(data: str) -> list[int]:
    return [int(data[at : at + 64], 16) for at in range(2, len(data), 64)]


def log(receipt: dict[str, Any], event: str) -> list[int]:
    """The unindexed words of the one log of an event, whose topic the tables above give."""
    table = "\n".join(TABLES.values()).split()
    topic = "0x" + table[table.index(event) + 1]
    (found,) = (entry for entry in receipt["logs"] if entry["topics"][0].startswith(topic))
    return words(found["data"])


@pytest.fixture(scope="module")
def standing(places: world.DevnetFolders, built: world.Built) -> Iterator[Pad]:
    """The launchpad on a chain of this module's own."""
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as chain:
        deployer = ContractDeployer(chain, built.accounts[0])
        sources = places.project / "contracts"
        made = launchpad.deploy_launchpad(deployer, built.contracts, sources)
        code = compile_contract(sources / "tokens/plain.vy")
        nvda = deployer.create(code, ["string", "string", "uint256"], ["NVDA", "NVDA", 10**24]).lower()
        launchpad.approve_quote(deployer, made["launchpadFactory"], nvda, *NVDA_TERMS)
        deployer.check_receipts()
        yield Pad(deployer, built.contracts | made, nvda)


@pytest.fixture
def pad(standing: Pad) -> Iterator[Pad]:
    chain = standing.deployer.chain
    snapshot = chain.call("evm_snapshot")
    yield standing
    standing.deployer.sent.clear()
    chain.call("evm_mine")
    assert chain.call("evm_revert", snapshot)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_selectors_and_topics_are_the_real_ones(places: world.DevnetFolders, name: str) -> None:
    source, formats = places.project / f"contracts/launchpad/{name}.vy", ["abi", "method_identifiers"]
    bundle, table = FilesystemInputBundle([source.parent]), TABLES[name].split()
    out = compile_from_file_input(bundle.load_file(source.name), input_bundle=bundle, output_formats=formats)
    ours = {
        k.replace(launchpad.LAUNCH_TUPLE, "T"): v[2:].zfill(8) for k, v in out["method_identifiers"].items()
    }
    for event in (entry for entry in out["abi"] if entry["type"] == "event"):
        types = ",".join(argument["type"] for argument in event["inputs"])
        ours[event["name"]] = keccak(text=f"{event['name']}({types})").hex()[:16]
    expected = dict(zip(table[::2], table[1::2], strict=True))
    assert expected == {key: ours.get(key) for key in expected}


@pytest.mark.parametrize(
    ("native", "tax_bps", "paid", "out", "fee", "tax"),
    [
        (False, 0, 352_696_917_677_647_859, 20_552_501_950_319_369_479_600_566, 3_526_969_176_776_478, 0),
        (False, 0, 28_716_771_876_358_226, 1_705_595_837_924_855_733_224_858, 287_167_718_763_582, 0),
        (True, 100, 58 * 10**16, 252_801_992_528_019_925_280_199_252, 58 * 10**14, 58 * 10**14),
    ],
)
def test_golden_first_buys(
    pad: Pad, native: bool, tax_bps: int, paid: int, out: int, fee: int, tax: int
) -> None:
    made = pad.launch(quote=ZERO if native else pad.nvda, creator_tax_bps=tax_bps)
    assert log(pad.buy(made, paid), "CurveBuy") == [paid, out, fee, tax]
    assert (pad.held(made.token, pad.me), pad.held(made.quote, made.curve)) == (out, paid)
    (phantom,) = pad.view(made.curve, "phantomQuote()")
    assert pad.view(made.curve, "getReserves()") == [phantom + paid - fee - tax, SUPPLY - out]


def test_buys_and_sells_follow_the_curve(pad: Pad) -> None:
    made, curve = pad.launch(creator_tax_bps=250), Curve(*NATIVE_TERMS, tax_bps=250)
    for quote_in, tokens in ((10**18, 10**26), (123_456_789, 987_654_321_987), (3 * 10**17, 10**26 + 7)):
        spent, out = curve.buy(quote_in)
        assert log(pad.buy(made, quote_in), "CurveBuy")[:2] == [spent, out] == [quote_in, out]
        sold = pad.deployer.receipt(launchpad.curve_sell(pad.deployer, made, tokens))
        tokens_in, paid, fee, tax = log(sold, "CurveSell")
        assert (tokens_in, paid) == (tokens, curve.sell(tokens))
        assert (fee, tax) == ((paid + fee + tax) * 100 // 10_000, (paid + fee + tax) * 250 // 10_000)
        assert pad.view(made.curve, "realQuoteReserve()") == [curve.quote]
        assert pad.view(made.curve, "trackedTokens()") == [curve.tokens]
    assert [pad.held(ZERO, made.curve)] == pad.view(made.curve, "trackedQuote()")


@pytest.mark.parametrize(
    ("native", "offered", "sniper"), [(True, 10**17, True), (True, 10**20, False), (False, 10**20, False)]
)
def test_launch_and_buy_in_one(pad: Pad, native: bool, offered: int, sniper: bool) -> None:
    """A stranger who receives in the launch itself keeps one percent; what the curve gives back comes on."""
    asked = LaunchRequest("Both", "BOTH", quote=ZERO if native else pad.nvda)
    spent, out = Curve(*(NATIVE_TERMS if native else NVDA_TERMS)).buy(offered, 9800 if sniper else 0)
    recipient, before = STRANGER if sniper else pad.me, pad.held(pad.nvda, pad.me)
    made = launchpad.launch_and_buy(pad.deployer, pad.contracts, asked, offered, recipient)
    receipt = pad.deployer.receipt(pad.deployer.sent[-1])
    assert log(receipt, "Launched") == [int(pad.me, 16), spent, out]
    assert pad.held(made.quote, pad.contracts["launchpadRouter"]) == 0
    assert before - pad.held(pad.nvda, pad.me) == (0 if native else spent)
    if sniper:
        assert log(receipt, "SnipeTaxCharged") == [offered * 98 // 100]
        assert pad.view(made.curve, "currentSnipeTaxBps(address)", STRANGER) == [9900]


@pytest.mark.parametrize(("elapsed_s", "bps"), [(1, 618), (2, 19), (3, 0)])
def test_snipe_tax_by_recipient(pad: Pad, elapsed_s: int, bps: int) -> None:
    made, amount = pad.launch(exempt=(FRIEND,)), 10**17
    then_s = pad.view(made.curve, "launchedAt()")[0] + elapsed_s
    pad.deployer.chain.call("evm_setNextBlockTimestamp", hex(then_s))
    _, out = Curve(*NATIVE_TERMS).buy(amount, bps)
    receipt = pad.buy(made, amount, STRANGER)
    assert log(receipt, "CurveBuy") == [amount, out, amount * (100 + bps) // 10_000, 0]
    if bps:
        assert log(receipt, "SnipeTaxCharged") == [amount * bps // 10_000]
    shown = [pad.view(made.curve, "currentSnipeTaxBps(address)", a)[0] for a in (STRANGER, FRIEND, pad.me)]
    assert shown == [bps, 0, 0]


@pytest.mark.parametrize("native", [True, False])
def test_the_last_buy_stops_at_the_reserve_and_gets_the_rest_back(pad: Pad, native: bool) -> None:
    terms = NATIVE_TERMS if native else NVDA_TERMS
    made, curve = pad.launch(quote=ZERO if native else pad.nvda), Curve(*terms)
    offered = 3 * terms[1]
    spent, out = curve.buy(offered)
    value_wei, bound = (offered if native else 0), out * offered // spent
    if not native:
        pad.do(made.quote, "approve(address,uint256)", made.curve, offered)
    tight = pad.refused(made.curve, BUY, offered, bound + 1, pad.me, value_wei=value_wei)
    assert tight == SLIPPAGE + encode(["uint256"] * 2, [out, bound + 1]).hex()
    bought = pad.do(made.curve, BUY, offered, bound, pad.me, value_wei=value_wei)
    assert log(bought, "CurveBuy")[:2] == [spent, out]
    assert log(bought, "CurveBuyRefunded") == [offered - spent]
    assert log(bought, "CurveCompleted") == [int(made.token, 16), curve.quote, SWEPT_TOKENS]
    assert pad.held(made.quote, made.curve) == spent
    assert pad.view(made.curve, "readyToGraduate()") == [1]


def test_refusals_carry_the_real_bytes(pad: Pad) -> None:
    made, other = pad.launch(), pad.launch(quote=pad.nvda, creator_tax_bps=1)
    assert pad.refused(made.curve, BUY, 0, 0, pad.me) == ZERO_AMOUNT
    assert pad.refused(made.curve, SELL, 0, 0, pad.me) == ZERO_AMOUNT
    assert pad.refused(made.curve, BUY, 5, 0, pad.me, value_wei=4) == VALUE_MISMATCH
    assert pad.refused(other.curve, BUY, 5, 0, pad.me, value_wei=5) == UNEXPECTED_VALUE
    _, out = Curve(*NATIVE_TERMS).buy(10**18)
    refused = pad.refused(made.curve, BUY, 10**18, out + 1, pad.me, value_wei=10**18)
    assert refused == SLIPPAGE + encode(["uint256"] * 2, [out, out + 1]).hex()
    for fee in (LAUNCH_FEE_WEI - 1, LAUNCH_FEE_WEI + 1):
        refused = pad.refused(
            pad.factory, launchpad.LAUNCH, LaunchRequest("x", "x").as_tuple(), 0, ZERO, [], value_wei=fee
        )
        assert refused == VALUE_MISMATCH
    pad.buy(made, 10**19)
    for after in ("sold out", "swept"):
        assert pad.refused(made.curve, BUY, 5, 0, pad.me, value_wei=5) == GRADUATED, after
        assert pad.refused(made.curve, SELL, 5, 0, pad.me) == GRADUATED, after
        if after == "sold out":
            pad.do(pad.factory, "graduate(address)", made.token)


def test_golden_graduation_and_first_swap(pad: Pad) -> None:
    made = pad.launch(quote=pad.nvda)
    pad.buy(made, 10**20)
    swept = log(pad.do(pad.factory, "graduate(address)", made.token), "LaunchSwept")
    assert swept == [SWEPT_QUOTE, SWEPT_TOKENS]
    known = pad.view(pad.factory, "getLaunchedToken(address)", made.token)
    assert known[:5] == [int(a, 16) for a in (made.token, made.curve, pad.me, pad.me, pad.nvda)]
    assert known[5:13] == [NVDA_TERMS[1], 0, 200, 0, 0, 1, SWEPT_QUOTE, SWEPT_TOKENS]
    pooled = pad.do(pad.factory, "createGraduatedPool(address)", made.token)
    position, *amounts = log(pooled, "PoolGraduated")
    assert amounts == [POOL_TOKENS, SWEPT_QUOTE]
    assert log(pooled, "GraduationTokensPermanentlyLocked") == [SWEPT_TOKENS - POOL_TOKENS]
    positions, state = pad.contracts["v4PositionManager"], pad.contracts["v4StateView"]
    assert pad.view(positions, "ownerOf(uint256)", position) == [int(pad.locker, 16)]
    pool = launchpad.pool_id(launchpad.pool_key(pad.contracts, pad.nvda, made.token))
    assert pad.view(state, "getLiquidity(bytes32)", pool) == [LIQUIDITY]
    before = pad.held(pad.nvda, pad.me)
    pad.swap(made, False, SWAP_IN)
    assert pad.view(state, "getSlot0(bytes32)", pool)[0] == SWAP_PRICE_X96
    assert pad.held(pad.nvda, pad.me) - before == SWAP_OUT - SWAP_OUT * 100 // 10_000


def test_golden_pool_id() -> None:
    token, quote = "0xc9e9ab90654f82893d7fd18b62f694992e8cef29", "0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec"
    key = launchpad.pool_key({"launchpadHook": "0xe5e702641ea86f4ae6cc3cdaed2b886f976be044"}, quote, token)
    assert launchpad.pool_id(key).hex() == "6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"


@pytest.mark.parametrize(("native", "tax_bps"), [(True, 0), (True, 1000), (False, 37)])
def test_the_hook_takes_its_share_of_the_output(pad: Pad, native: bool, tax_bps: int) -> None:
    made = pad.launch(quote=ZERO if native else pad.nvda, creator_tax_bps=tax_bps, buyback=not native)
    pad.buy(made, 10**20)
    pool = launchpad.graduate(pad.deployer, pad.contracts, made.token)
    topic = "0x" + keccak(text="Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)").hex()
    for buy, amount in ((True, 10**16), (False, 10**24)):
        target = made.token if buy else made.quote
        before, kept, sent = pad.held(target, pad.me), pad.held(target, pad.hook), len(pad.deployer.sent)
        done = pad.swap(made, buy, amount)
        (swapped,) = (entry for entry in done["logs"] if entry["topics"][0] == topic)
        moved = min(words(swapped["data"])[:2])  # the other one is negative
        shares = [moved * 100 // 10_000, moved * tax_bps // 10_000]
        assert log(done, "HookFeeCollected") == [int(target, 16), *shares]
        receipts = [pad.deployer.receipt(h) for h in pad.deployer.sent[sent:]] if target == ZERO else []
        gas_wei = sum(int(r["gasUsed"], 16) * int(r["effectiveGasPrice"], 16) for r in receipts)
        assert pad.held(target, pad.me) - before + gas_wei == moved - sum(shares)
        assert pad.held(target, pad.hook) - kept == sum(shares)
    before = pad.held(made.quote, pad.escrow)
    done = pad.do(pad.hook, "sweepPoolFees(bytes32)", bytes.fromhex(pool[2:]))
    protocol, creator, sold, locked = log(done, "PoolFeesSwept")
    assert pad.held(made.quote, pad.escrow) - before == protocol + creator
    assert locked == (0 if native else pytest.approx(sold))
    assert (pad.held(made.token, pad.hook), pad.held(made.quote, pad.hook)) == (0, 0)


@pytest.mark.parametrize("buyback", [False, True])
def test_fees_reach_their_owners_once(pad: Pad, buyback: bool) -> None:
    made = pad.launch(quote=pad.nvda, creator=CREATOR, creator_tax_bps=300, buyback=buyback)
    pad.buy(made, 10**18)
    protocol, creators = 3 * 10**15, 7 * 10**15 + 3 * 10**16
    quote, tokens = pad.view(made.curve, "getReserves()")
    spent = creators // 2 if buyback else 0
    swept = pad.do(made.curve, "sweepFees()")
    assert log(swept, "FeesSwept") == [protocol, creators - spent, spent]
    for account, share in ((CREATOR, creators - spent), (pad.me, protocol)):
        assert pad.view(pad.escrow, "balances(address,address)", account, pad.nvda) == [share]
    locked = spent * tokens // (quote + spent)
    if buyback:
        assert log(swept, "BuybackLocked") == [spent, locked]
    assert pad.held(made.token, pad.locker) == locked
    assert pad.view(made.curve, "getReserves()") == [quote + spent, tokens - locked]
    assert [pad.held(pad.nvda, made.curve)] == pad.view(made.curve, "trackedQuote()")
    before = pad.held(pad.nvda, pad.me)
    for _ in range(2):
        pad.do(pad.escrow, "claim(address)", pad.nvda)
    assert pad.held(pad.nvda, pad.me) - before == protocol


@pytest.mark.parametrize("swept", [False, True])
def test_the_owner_rescues_what_cannot_graduate(pad: Pad, swept: bool) -> None:
    made = pad.launch()
    pad.buy(made, 10**19 if swept else 10**17)
    if swept:
        pad.do(pad.factory, "graduate(address)", made.token)
    assert log(pad.do(pad.factory, "forceSweep(address)", made.token), "LaunchForceSwept") == []
    known = pad.view(pad.factory, "getLaunchedToken(address)", made.token)
    assert known[10] == 3
    assert pad.view(pad.escrow, "balances(address,address)", pad.me, made.token) == [known[12]]


def test_doors_that_stay_shut(pad: Pad) -> None:
    made, ready, wish = pad.launch(), pad.launch(), LaunchRequest("x", "x").as_tuple()
    pad.buy(ready, 10**19)
    key = launchpad.pool_key(pad.contracts, made.token, ZERO)
    register = f"register({KEY},(address,address,address,uint256,bool))"
    swap = f"afterSwap(address,{KEY},(bool,int256,uint160),int256,bytes)"
    launch_for = f"launchTokenFor({launchpad.LAUNCH_TUPLE},uint256,address,address,address[])"
    shut: list[tuple[str, str, str, list[object]]] = [
        ("wrong phase", pad.factory, "createGraduatedPool(address)", [made.token]),
        ("not ready", pad.factory, "graduate(address)", [made.token]),
        ("not the owner", pad.factory, "forceSweep(address)", [made.token]),
        ("not the owner", pad.factory, "wire(address,address,address)", [ZERO] * 3),
        ("not the owner", pad.factory, "setQuoteTerms(address,uint256,uint256,bool)", [ZERO, 1, 1, True]),
        ("not the factory", ready.curve, "release(bool)", [False]),
        ("not the factory", pad.locker, f"lock({KEY},uint256,uint256)", [key, 0, 0]),
        ("not the factory", pad.hook, register, [key, (ZERO, ZERO, ZERO, 0, False)]),
        ("not the factory", pad.contracts["v4PoolManager"], f"initialize({KEY},uint160)", [key, 2**96]),
        ("not the manager", pad.hook, "unlockCallback(bytes)", [bytes(64)]),
        ("not the manager", pad.hook, swap, [ZERO, key, (True, 1, 1), 1, b""]),
        ("not the forwarder", pad.factory, launch_for, [wish, 0, ZERO, ZERO, []]),
    ]
    for reason, to, signature, values in shut:
        assert reason.encode().hex() in pad.refused(to, signature, *values, by=STRANGER), signature
