"""What logs say, by figures of the real chain: swaps, curve buys, a pool's key and a graduation of
chain 4663, a v3 pool of Ethereum's. Where a source tells no address, another stands for it."""

import pkgutil
from dataclasses import dataclass, replace
from importlib import import_module

import pytest

from roundtrip import venues
from roundtrip.domain.base.events import (
    CurveBoughtBack,
    CurveTraded,
    Event,
    HookFeeTaken,
    LaunchedToken,
    LaunchMoved,
    LiquidityMoved,
    Operated,
    OperationsBegin,
    PoolOpened,
    PositionMoved,
    PositionNumbered,
    Priced,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues import DECODERS
from roundtrip.venues.base import Contracts, Log, LogDecoder
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS
from unit.venues import logs
from unit.venues.logs import NETWORK, STRANGER
from unit.venues.network import address

TOKEN = Address("0xc9e9ab90654f82893d7fd18b62f694992e8cef29")
NVDA = Address("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec")
HOOK = Address("0xe5e702641ea86f4ae6cc3cdaed2b886f976be044")
POOL_ID = "0x6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"
SWAPPER = Address("0x65050a9b7e5075a2ba5ced7b1b64ee66262c40dc")
USDC = Address("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")
WETH = Address("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
ETHEREUM_FACTORY = Address("0x1f98431c8ad98523631ae4a59f267346ea31f984")
USDC_WETH = Address("0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640")

CONTRACTS = replace(NETWORK, v3_factory=ETHEREUM_FACTORY, launchpad_hook=HOOK)
"""A network with the real launchpad's hook and Ethereum's v3 factory."""
MANAGER, FACTORY = CONTRACTS.v4_pool_manager, CONTRACTS.launchpad_factory or ZERO_ADDRESS
V3_POSITIONS, V4_POSITIONS = CONTRACTS.v3_position_manager, CONTRACTS.v4_position_manager
CURVE, BUYER, RECIPIENT, OWNER = address(0xC04), address(0xB0), address(0x4EC), address(0x0E4)
ENTRY_POINT = min(ENTRY_POINTS)
WORD = bytes(range(32))
PLAIN_ID = logs.pool_id(ZERO_ADDRESS, TOKEN, 3000, 60, ZERO_ADDRESS)


@dataclass(frozen=True)
class LogCase:
    """A log, and what it says."""

    name: str
    log: Log
    says: Event


CASES = (
    LogCase(
        "a v3 pool",
        logs.V3_CREATED.log(ETHEREUM_FACTORY, USDC, WETH, 500, 10, USDC_WETH),
        PoolOpened(USDC_WETH, "amm_v3", USDC, WETH, 500, 10, None),
    ),
    LogCase(
        "a v3 pool's first price",
        logs.V3_INITIALIZE.log(USDC_WETH, 2**160 - 1, -887272),
        Priced(USDC_WETH, 2**160 - 1, -887272),
    ),
    LogCase(
        "a v3 swap: the first was paid in",
        logs.V3_SWAP.log(USDC_WETH, BUYER, RECIPIENT, 3, -(2**255), 2**160 - 1, 2**128 - 1, -887272),
        Swapped(USDC_WETH, 3, -(2**255), 2**160 - 1, 2**128 - 1, -887272, BUYER, RECIPIENT),
    ),
    LogCase(
        "v3 liquidity added",
        logs.V3_MINT.log(USDC_WETH, BUYER, OWNER, -887270, 887270, 2**128 - 1, 2**256 - 1, 5),
        LiquidityMoved(USDC_WETH, OWNER, -887270, 887270, 2**128 - 1, 2**256 - 1, 5),
    ),
    LogCase(
        "v3 liquidity taken away",
        logs.V3_BURN.log(USDC_WETH, OWNER, -60, 120, 7, 11, 13),
        LiquidityMoved(USDC_WETH, OWNER, -60, 120, -7, -11, -13),
    ),
    LogCase(
        "v3 fees counted",
        logs.V3_BURN.log(USDC_WETH, OWNER, -60, 120, 0, 0, 0),
        LiquidityMoved(USDC_WETH, OWNER, -60, 120, 0, 0, 0),
    ),
    LogCase(
        "the graduated curve's pool",
        logs.V4_INITIALIZE.log(
            MANAGER, bytes.fromhex(POOL_ID[2:]), TOKEN, NVDA, 0, 200, HOOK, 2**160 - 1, -156971
        ),
        PoolOpened(POOL_ID, "launchpad_pool", TOKEN, NVDA, 0, 200, HOOK, -156971),
    ),
    LogCase(
        "a v4 pool without a hook, for eth",
        logs.V4_INITIALIZE.log(
            MANAGER, PLAIN_ID, ZERO_ADDRESS, TOKEN, 3000, 60, ZERO_ADDRESS, 2**96, 0
        ),
        PoolOpened("0x" + PLAIN_ID.hex(), "amm_v4", ZERO_ADDRESS, TOKEN, 3000, 60, None, 0),
    ),
    LogCase(
        "a v4 swap: 31.88M tokens paid in, 5.62 NVDA paid out",
        logs.V4_SWAP.log(
            MANAGER, bytes.fromhex(POOL_ID[2:]), SWAPPER, -31880381102749799957318148, 5620497268881825819,
            30937564032784793309170036, 92140088551983424601325, -156971, 0,
        ),
        Swapped(
            POOL_ID, 31880381102749799957318148, -5620497268881825819, 30937564032784793309170036,
            92140088551983424601325, -156971, SWAPPER, None, 0,
        ),
    ),
    LogCase(
        "v4 liquidity",
        logs.V4_MODIFY.log(MANAGER, bytes.fromhex(POOL_ID[2:]), OWNER, -887200, 887200, -(10**22), WORD),
        LiquidityMoved(
            POOL_ID, OWNER, -887200, 887200, -(10**22), None, None, int.from_bytes(WORD, "big")
        ),
    ),
    LogCase(
        "a v3 position's number",
        logs.V3_INCREASED.log(V3_POSITIONS, 815, 2**128 - 1, 2**256 - 1, 5),
        PositionNumbered(V3_POSITIONS, 815, 2**128 - 1, 2**256 - 1, 5),
    ),
    LogCase(
        "the number of a v3 position that is taken away from",
        logs.V3_DECREASED.log(V3_POSITIONS, 815, 7, 11, 13),
        PositionNumbered(V3_POSITIONS, 815, -7, -11, -13),
    ),
    LogCase(
        "a launch on a curve",
        logs.LAUNCHED.log(FACTORY, TOKEN, CURVE, OWNER, NVDA, 3, 41600000000000000000),
        LaunchedToken(TOKEN, OWNER, NVDA, CURVE, 2, 41600000000000000000),
    ),
    LogCase(
        "a launch for eth",
        logs.LAUNCHED.log(FACTORY, TOKEN, CURVE, OWNER, ZERO_ADDRESS, 0, 42 * 10**17),
        LaunchedToken(TOKEN, OWNER, ZERO_ADDRESS, CURVE, 2, 42 * 10**17),
    ),
    LogCase(
        "a curve's first buy",
        logs.CURVE_BUY.log(
            CURVE, BUYER, RECIPIENT, 580000000000000000, 252801992528019925280199252, 5800000000000000,
            5800000000000001,
        ),
        CurveTraded(
            CURVE, True, BUYER, RECIPIENT, 580000000000000000, 252801992528019925280199252, 5800000000000000,
            5800000000000001,
        ),
    ),
    LogCase(
        "a curve's sell",
        logs.CURVE_SELL.log(CURVE, BUYER, RECIPIENT, 20552501950319369479600566, 349169948500871381, 17, 19),
        CurveTraded(CURVE, False, BUYER, RECIPIENT, 349169948500871381, 20552501950319369479600566, 17, 19),
    ),
    LogCase(
        "a curve that bought back",
        logs.BUYBACK.log(CURVE, 2**256 - 1, 11),
        CurveBoughtBack(CURVE, 2**256 - 1),
    ),
    LogCase(
        "a curve emptied",
        logs.SWEPT.log(FACTORY, TOKEN, 41600000000000000002, 285714285714285714285714285),
        LaunchMoved(TOKEN, "swept", 41600000000000000002, 285714285714285714285714285),
    ),
    LogCase(
        "a curve become a pool",
        logs.GRADUATED.log(FACTORY, TOKEN, 466254, 204081632653061224492599236, 41600000000000000002),
        LaunchMoved(TOKEN, "pooled", 41600000000000000002, 204081632653061224492599236),
    ),
    LogCase(
        "a curve taken off",
        logs.FORCE_SWEPT.log(FACTORY, TOKEN),
        LaunchMoved(TOKEN, "rescued", None, None),
    ),
    LogCase(
        "the hook's fee and tax",
        logs.HOOK_FEE.log(HOOK, bytes.fromhex(POOL_ID[2:]), NVDA, 2**256 - 1, 3),
        HookFeeTaken(POOL_ID, NVDA, 2**256 + 2),
    ),
    LogCase(
        "a launch into a pool",
        logs.V1_LAUNCHED.log(
            logs.V1_FACTORIES[0], TOKEN, OWNER, ETHEREUM_FACTORY, WETH, USDC_WETH, 1, 2, 3, 4, 5
        ),
        LaunchedToken(TOKEN, OWNER, WETH, USDC_WETH, 1, None),
    ),
    LogCase(
        "a transfer",
        logs.TRANSFER.log(TOKEN, BUYER, RECIPIENT, 2**256 - 1),
        Transferred(TOKEN, BUYER, RECIPIENT, 2**256 - 1),
    ),
    LogCase(
        "a v3 position that is minted",
        logs.NFT_TRANSFER.log(V3_POSITIONS, ZERO_ADDRESS, OWNER, 815),
        PositionMoved(V3_POSITIONS, 815, ZERO_ADDRESS, OWNER),
    ),
    LogCase(
        "a v4 position that is given away",
        logs.NFT_TRANSFER.log(V4_POSITIONS, OWNER, BUYER, 2**256 - 1),
        PositionMoved(V4_POSITIONS, 2**256 - 1, OWNER, BUYER),
    ),
    LogCase(
        "operations validated, to be run",
        logs.EXECUTING.log(ENTRY_POINT),
        OperationsBegin(ENTRY_POINT),
    ),
    LogCase(
        "a group of operations to be run",
        logs.AGGREGATOR.log(ENTRY_POINT, OWNER),
        OperationsBegin(ENTRY_POINT),
    ),
    LogCase(
        "an operation that failed, of an account that pays itself",
        logs.OPERATION.log(ENTRY_POINT, WORD, OWNER, ZERO_ADDRESS, 2**256 - 1, False, 5, 6),
        Operated(ENTRY_POINT, OWNER),
    ),
    LogCase(
        "an operation that a paymaster paid",
        logs.OPERATION.log(ENTRY_POINT, WORD, OWNER, BUYER, 0, True, 5, 6),
        Operated(ENTRY_POINT, OWNER),
    ),
)  # fmt: skip

ROWS = [row for file in DECODERS for row in file.decoders(CONTRACTS)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_log_says_what_happened(case: LogCase) -> None:
    found = Decoder(CONTRACTS)(case.log)
    assert found == case.says
    assert type(found) is type(case.says)


def test_every_row_of_the_table_is_tried_here() -> None:
    """And no case here is of none."""
    assert {case.log.topics[0] for case in CASES} == {row.topic for row in ROWS}
    assert {row.topic for row in ROWS} == Decoder(CONTRACTS).topics


def test_every_file_that_reads_logs_is_in_the_table() -> None:
    modules = [import_module(f"roundtrip.venues.{one.name}") for one in pkgutil.iter_modules(venues.__path__)]
    assert {one.__name__ for one in modules if hasattr(one, "decoders")} == {
        file.__name__ for file in DECODERS  # type: ignore[attr-defined]
    }  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.topic[:10]} {row.emitter}")
def test_a_log_counts_only_from_who_must_have_sent_it(row: LogDecoder) -> None:
    """Of every emitter that a row names, and of nobody else; a pool's or a curve's log may be anybody's."""
    read = Decoder(CONTRACTS)
    cases = [case.log for case in CASES if case.log.topics[0] == row.topic]
    log = min(cases, key=lambda log: log.address != row.emitter)
    assert read(log._replace(address=row.emitter or STRANGER)) is not None
    assert (read(log._replace(address=STRANGER)) is None) is (row.emitter is not None)


def test_pools_and_curves_and_tokens_may_be_anybodys_and_nothing_else_may() -> None:
    open_to_all = {row.topic for row in ROWS if row.emitter is None}
    shapes = (
        logs.V3_INITIALIZE, logs.V3_SWAP, logs.V3_MINT, logs.V3_BURN, logs.CURVE_BUY, logs.CURVE_SELL,
        logs.BUYBACK, logs.TRANSFER,
    )  # fmt: skip
    assert open_to_all == {shape.topic for shape in shapes}
    by_topic: dict[str, set[Address | None]] = {}
    for row in ROWS:
        by_topic.setdefault(row.topic, set()).add(row.emitter)
    assert by_topic[logs.V3_CREATED.topic] == {ETHEREUM_FACTORY}
    for shape in (logs.V3_INCREASED, logs.V3_DECREASED):
        assert by_topic[shape.topic] == {V3_POSITIONS}
    assert by_topic[logs.TRANSFER.topic] == {None, V3_POSITIONS, V4_POSITIONS}
    for shape in (logs.V4_INITIALIZE, logs.V4_SWAP, logs.V4_MODIFY):
        assert by_topic[shape.topic] == {MANAGER}
    for shape in (logs.LAUNCHED, logs.SWEPT, logs.GRADUATED, logs.FORCE_SWEPT):
        assert by_topic[shape.topic] == {FACTORY}
    assert by_topic[logs.HOOK_FEE.topic] == {HOOK}
    assert by_topic[logs.V1_LAUNCHED.topic] == set(logs.V1_FACTORIES)
    for shape in (logs.EXECUTING, logs.AGGREGATOR, logs.OPERATION):
        assert by_topic[shape.topic] == {
            "0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789",
            "0x0000000071727de22e5e9d8baf0edac6f37da032",
            "0x4337084d9e255ff0702461cf8895ce9e3b5ff108",
        }


def test_a_network_without_launchpads_reads_none_of_their_logs() -> None:
    bare: Contracts = replace(
        CONTRACTS, launchpad_factory=None, launchpad_hook=None, launchpad_v1_factories=()
    )
    shapes = (
        logs.LAUNCHED, logs.V1_LAUNCHED, logs.CURVE_BUY, logs.CURVE_SELL, logs.SWEPT, logs.GRADUATED,
        logs.FORCE_SWEPT, logs.HOOK_FEE, logs.BUYBACK,
    )  # fmt: skip
    read = Decoder(bare)
    assert Decoder(CONTRACTS).topics - read.topics == {shape.topic for shape in shapes}
    hooked = next(case for case in CASES if case.name == "the graduated curve's pool")
    assert isinstance(hooked.says, PoolOpened)
    assert read(hooked.log) == hooked.says._replace(kind="amm_v4")


def test_a_factory_that_is_named_twice_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="read in two ways"):
        Decoder(replace(CONTRACTS, launchpad_v1_factories=(OWNER, OWNER)))


def test_a_log_without_topics_or_with_a_strangers_is_nobodys() -> None:
    read = Decoder(CONTRACTS)
    assert read(Log(MANAGER, (), WORD)) is None
    assert read(Log(MANAGER, ("0x" + "11" * 32,), WORD)) is None


# --- what is not believed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "fee", "expected"),
    [
        (USDC, WETH, 500, Address("0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5641")),
        (USDC, WETH, 501, USDC_WETH),
        (WETH, USDC, 500, USDC_WETH),
        (USDC, USDC, 500, logs.v3_pool(ETHEREUM_FACTORY, USDC, USDC, 500)),
    ],
)
def test_a_v3_pool_that_is_not_its_keys_is_none(
    low: Address, high: Address, fee: int, expected: Address
) -> None:
    log = logs.V3_CREATED.log(ETHEREUM_FACTORY, low, high, fee, 10, expected)
    assert Decoder(CONTRACTS)(log) is None


def test_a_v3_pool_of_another_factory_is_none_even_from_the_known_one() -> None:
    log = logs.V3_CREATED.log(NETWORK.v3_factory, USDC, WETH, 500, 10, USDC_WETH)
    assert Decoder(NETWORK)(log) is None
    own = logs.v3_pool(NETWORK.v3_factory, USDC, WETH, 500)
    answer = logs.V3_CREATED.log(NETWORK.v3_factory, USDC, WETH, 500, 10, own)
    assert Decoder(NETWORK)(answer) == PoolOpened(own, "amm_v3", USDC, WETH, 500, 10, None)


@pytest.mark.parametrize("changed", range(5))
def test_a_v4_pool_whose_id_is_not_its_keys_is_none(changed: int) -> None:
    key = [TOKEN, NVDA, 0, 200, HOOK]
    other = [BUYER, Address("0x" + "ff" * 20), 1, 199, ZERO_ADDRESS]
    key[changed] = other[changed]
    log = logs.V4_INITIALIZE.log(MANAGER, bytes.fromhex(POOL_ID[2:]), *key, 2**96, 0)
    assert Decoder(CONTRACTS)(log) is None


@pytest.mark.parametrize(("low", "high"), [(NVDA, TOKEN), (TOKEN, TOKEN)])
def test_a_v4_key_whose_currencies_are_out_of_order_is_none(low: Address, high: Address) -> None:
    own = logs.pool_id(low, high, 0, 200, HOOK)
    assert Decoder(CONTRACTS)(logs.V4_INITIALIZE.log(MANAGER, own, low, high, 0, 200, HOOK, 2**96, 0)) is None


def test_a_first_price_of_nothing_is_none() -> None:
    assert Decoder(CONTRACTS)(logs.V3_INITIALIZE.log(USDC_WETH, 0, 0)) is None


def test_a_collections_transfer_is_no_transfer() -> None:
    """An ERC-721's has the same topic, and its item indexed."""
    log = logs.shape("Transfer(address*,address*,uint256*)").log(TOKEN, BUYER, RECIPIENT, 7)
    assert Decoder(CONTRACTS)(log) is None
    assert Decoder(CONTRACTS)(log._replace(data=WORD)) is None


def test_a_transfer_that_indexes_nothing_is_no_transfer() -> None:
    log = logs.shape("Transfer(address,address,uint256)").log(TOKEN, BUYER, RECIPIENT, 7)
    assert Decoder(CONTRACTS)(log) is None
