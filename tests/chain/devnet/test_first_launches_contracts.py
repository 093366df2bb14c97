"""Our launchpad of the first generation is what the public facts say of the real one."""

from collections.abc import Iterator

import pytest
from eth_utils.crypto import keccak

from roundtrip.devnet.deploy import ContractDeployer, calldata
from roundtrip.devnet.launchpad_v1 import LIMITED_BLOCKS, launch_first, pool_buy
from roundtrip.devnet.sync_rpc import RpcFailure, SyncRpc
from roundtrip.devnet.world import Built
from support.wallet import Wallet

ETH = 10**18
THRESHOLD_WEI = 42 * 10**17
SUPPLY_RAW = 10**27


def words(rpc: SyncRpc, to: str, signature: str, *values: object) -> list[int]:
    data = rpc.call("eth_call", {"to": to, "data": calldata(signature, *values)}, "latest")
    return [int(data[at : at + 64], 16) for at in range(2, len(data), 64)]


def at(number: int) -> str:
    return f"0x{number:040x}"


@pytest.fixture
def launcher(rpc: SyncRpc, built: Built) -> ContractDeployer:
    return ContractDeployer(rpc, built.accounts[5])


def launches(launcher: ContractDeployer, factory: str, first_buy_wei: int = 0) -> Iterator[str]:
    while True:
        yield launch_first(launcher, factory, "Both", "BOTH", first_buy_wei)


def of_both_orders(built: Built, launcher: ContractDeployer) -> dict[bool, str]:
    """A launch whose token is its pool's first, and one whose token is the second."""
    found: dict[bool, str] = {}
    for token, _ in zip(launches(launcher, built.contracts["launchpadV1Factories"]), range(64), strict=False):
        found[int(token, 16) < int(built.contracts["weth"], 16)] = token
        if len(found) == 2:
            return found
    raise AssertionError("64 launches lie on one side of weth")


def test_a_launch_is_told_in_a_log_a_record_and_the_tokens_own_words(
    rpc: SyncRpc, built: Built, launcher: ContractDeployer
) -> None:
    factory, contracts = built.contracts["launchpadV1Factories"], built.contracts
    token = launch_first(launcher, factory, "Word", "WRD", ETH // 100)
    receipt = launcher.receipt(launcher.sent[-1])
    block = int(receipt["blockNumber"], 16)
    event = "TokenLaunched(address,address,address,address,address,uint256,uint256,uint256,uint256,uint256)"
    (log,) = (one for one in receipt["logs"] if one["topics"][0] == "0x" + keccak(text=event).hex())
    assert log["address"] == factory
    assert [topic[26:] for topic in log["topics"][1:]] == [
        one[2:] for one in (token, launcher.account, contracts["v3Factory"])
    ]
    answer = [int(log["data"][n : n + 64], 16) for n in range(2, len(log["data"]), 64)]
    record = words(rpc, factory, "getLaunchedToken(address)", token)
    assert [at(record[n]) for n in range(4)] == [
        token, launcher.account, contracts["weth"], contracts["v3PositionManager"],
    ]  # fmt: skip
    first = int(int(token, 16) < int(contracts["weth"], 16))
    bought = words(rpc, token, "balanceOf(address)", launcher.account)[0]
    assert record[5:] == [0, 0, block + LIMITED_BLOCKS, SUPPLY_RAW, first, 10_000, 1, bought]
    assert bought > 0
    pool = words(
        rpc, contracts["v3Factory"], "getPool(address,address,uint24)", token, contracts["weth"], 10_000
    )
    assert answer == [record[2], pool[0], 0, 0, record[4], record[7], bought]
    assert words(rpc, token, "liquidityPool()") == pool
    assert words(rpc, token, "launchBlock()") == [block]
    assert words(rpc, token, "restrictionEndBlock()") == [block + LIMITED_BLOCKS]
    assert words(rpc, token, "maxWalletAmount()") == [SUPPLY_RAW // 20]
    assert [at(word) for word in words(rpc, token, "deployer()")] == [launcher.account]
    owner = words(rpc, contracts["v3PositionManager"], "ownerOf(uint256)", record[4])
    assert at(owner[0]) == contracts["launchpadV1Locker"]


def test_a_token_that_was_not_launched_has_no_record_and_no_status(rpc: SyncRpc, built: Built) -> None:
    factory, other = built.contracts["launchpadV1Factories"], built.tokens["plain"]
    assert words(rpc, factory, "getLaunchedToken(address)", other) == [0] * 13
    with pytest.raises(RpcFailure, match="revert"):
        words(rpc, factory, "graduationStatus(address)", other)


def test_it_graduates_where_it_is_and_back_again_in_either_order(
    rpc: SyncRpc, built: Built, launcher: ContractDeployer
) -> None:
    factory, locker = built.contracts["launchpadV1Factories"], built.contracts["launchpadV1Locker"]
    for token in of_both_orders(built, launcher).values():
        for _ in range(LIMITED_BLOCKS + 1):
            rpc.call("evm_mine")
        assert words(rpc, factory, "graduationStatus(address)", token) == [0, THRESHOLD_WEI, 0]
        buyer = Wallet(rpc, built.contracts, f"buyer of {token}")
        assert buyer.buy(token, "weth", 10_000, 42 * 10**17)
        principal, threshold, graduated = words(rpc, factory, "graduationStatus(address)", token)
        # A hundredth is the pool's fee.
        assert abs(principal - 42 * 10**17 * 99 // 100) < 10**12
        assert (threshold, graduated) == (THRESHOLD_WEI, 0)
        pool_buy(launcher, built.contracts, token, ETH // 10)
        launcher.check_receipts()
        principal, _, graduated = words(rpc, factory, "graduationStatus(address)", token)
        assert principal >= THRESHOLD_WEI
        assert graduated == 1
        assert buyer.sell(token, "weth", 10_000, buyer.tokens(token)).ok
        assert words(rpc, factory, "graduationStatus(address)", token)[2] == 0
        record = words(rpc, factory, "getLaunchedToken(address)", token)
        held = words(rpc, built.contracts["weth"], "balanceOf(address)", launcher.account)[0]
        assert buyer.send(locker, calldata("collect(uint256)", record[4])).ok
        earned = words(rpc, built.contracts["weth"], "balanceOf(address)", launcher.account)[0] - held
        assert abs(earned - 43 * 10**17 // 100) < 10**12


def test_nobody_opens_locks_or_wires_but_who_may(rpc: SyncRpc, built: Built) -> None:
    stranger = Wallet(rpc, built.contracts, "a stranger to the launchpad")
    locker, factory = built.contracts["launchpadV1Locker"], built.contracts["launchpadV1Factories"]
    for to, data in (
        (built.tokens["first_fresh"], calldata("open(address)", stranger.address)),
        (locker, calldata("lock(uint256,address)", 1, stranger.address)),
        (locker, calldata("collect(uint256)", 2**40)),
        (factory, calldata("wire(address)", stranger.address)),
    ):
        assert not stranger.send(to, data).ok
