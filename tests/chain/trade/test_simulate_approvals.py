"""A wallet's own calls: what they allow, how they fail, and odd senders and targets."""

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip.venues import abi
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.simulated import ALLOW, LATE, MAX, Strangers, approve, pay, simulated
from support.simulating import ETH, SOMEBODY, usdg
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata


async def test_an_unlimited_approval_opens_the_text(ctx: Context, built: Built, wallet: Wallet) -> None:
    router = built.contracts["swapRouter02"]
    result = await simulated(ctx, wallet.address, approve(usdg(built), router))
    assert result.answer["approvals"] == [
        {"token": usdg(built), "spender": router, "amount": None, "unlimited": True}
    ]
    assert result.text.startswith(f"It lets the swap router ({router}) take all you hold of ")
    assert (result.code, result.level) == ("ok", "ok")
    assert result.trips <= 2


async def test_an_approval_to_a_stranger_is_warned_of(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    contract = strangers.mover()
    await ctx.heads.refresh()
    for spender in (SOMEBODY, contract):
        for raw in (1, MAX):
            result = await simulated(ctx, wallet.address, approve(usdg(built), spender, raw))
            assert (result.code, result.level) == ("ok", "warn"), result.text
            assert result.text.startswith(f"It lets {spender}")
    buys = wallet.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
    result = await simulated(ctx, wallet.address, *buys, approve(built.tokens["plain"], SOMEBODY))
    assert (result.code, result.level) == ("ok", "warn"), result.text
    assert "sold straight back" in result.text


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("permit2", "Permit2"),
        ("swapRouter02", "the swap router"),
        ("universalRouter", "the Universal Router"),
        ("v4PositionManager", "the v4 position manager"),
    ],
)
async def test_an_approval_to_a_known_contract_is_named_and_not_warned_of(
    ctx: Context, built: Built, wallet: Wallet, key: str, name: str
) -> None:
    for raw in (10**6, MAX):
        result = await simulated(ctx, wallet.address, approve(usdg(built), built.contracts[key], raw))
        assert (result.code, result.level) == ("ok", "ok"), result.text
        assert result.text.startswith(f"It lets {name} ({built.contracts[key]}) take ")


@pytest.mark.parametrize("raw", [2**256 - 1, 2**160, 2**128, 2**96 - 1])
async def test_what_stands_for_no_bound(ctx: Context, built: Built, wallet: Wallet, raw: int) -> None:
    result = await simulated(ctx, wallet.address, approve(usdg(built), built.contracts["permit2"], raw))
    assert result.approvals() == {(usdg(built), built.contracts["permit2"], True)}


async def test_a_bounded_approval_to_a_person_opens_the_text(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    result = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 1_500_000))
    assert result.answer["approvals"] == [
        {"token": usdg(built), "spender": SOMEBODY, "amount": "1.5", "unlimited": False}
    ]
    assert result.text.startswith(f"It lets {SOMEBODY}, an address that we do not know")


async def test_a_strangers_token_is_no_spender_whose_code_is_known(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """Anybody can write a token and make a pool of it."""
    spender = built.tokens["owner_only_sell"]
    result = await simulated(ctx, wallet.address, approve(usdg(built), spender, 10**12))
    assert result.approvals() == {(usdg(built), spender, False)}
    assert result.text.startswith(f"It lets {spender}"), result.text


async def test_an_approval_taken_back_is_none(ctx: Context, built: Built, wallet: Wallet) -> None:
    steps = (approve(usdg(built), SOMEBODY), approve(usdg(built), SOMEBODY, 0))
    result = await simulated(ctx, wallet.address, *steps)
    assert result.approvals() == set()
    assert result.text.startswith("It goes through")
    assert (result.code, result.level) == ("ok", "ok")


async def test_an_approval_that_was_there_is_not_new(ctx: Context, built: Built, wallet: Wallet) -> None:
    assert wallet.send(usdg(built), approve(usdg(built), SOMEBODY, 500).data).ok
    await ctx.heads.refresh()
    assert (await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 400))).approvals() == set()
    assert (await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 500))).approvals() == set()
    result = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 501))
    assert result.approvals() == {(usdg(built), SOMEBODY, False)}


async def test_what_is_taken_back_or_given_again_is_told(ctx: Context, built: Built, wallet: Wallet) -> None:
    assert wallet.send(usdg(built), approve(usdg(built), SOMEBODY).data).ok
    await ctx.heads.refresh()
    for raw, text in ((0, "may no longer take"), (5, "than before, but still some")):
        result = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, raw))
        assert (result.code, result.level, result.approvals()) == ("ok", "ok", set())
        assert text in result.text
    result = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY))
    assert (result.code, result.level) == ("ok", "warn")
    assert result.text.startswith(f"It lets {SOMEBODY}")


@pytest.mark.parametrize("loud", [True, False])
async def test_an_approval_of_a_strangers_token(
    ctx: Context, wallet: Wallet, strangers: Strangers, loud: bool
) -> None:
    token = strangers.token(loud=loud)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, approve(token, SOMEBODY))
    assert result.approvals() == {(token, SOMEBODY, True)}


@pytest.mark.parametrize("loud", [True, False])
async def test_an_approval_for_all_is_unlimited(
    ctx: Context, wallet: Wallet, strangers: Strangers, loud: bool
) -> None:
    token = strangers.token(loud=loud)
    await ctx.heads.refresh()
    step = UnsignedStep(token, calldata("setApprovalForAll(address,bool)", SOMEBODY, True))
    result = await simulated(ctx, wallet.address, step)
    assert result.answer["approvals"] == [
        {"token": token, "spender": SOMEBODY, "amount": None, "unlimited": True}
    ]
    assert result.text.startswith(f"It lets {SOMEBODY} take everything you hold")
    assert (result.code, result.level) == ("ok", "warn")
    step = UnsignedStep(token, calldata("setApprovalForAll(address,bool)", SOMEBODY, False))
    result = await simulated(ctx, wallet.address, step)
    assert (result.approvals(), result.level) == (set(), "ok")


def permit2(built: Built, spender: str, raw: int, until_s: int = LATE) -> UnsignedStep:
    return UnsignedStep(built.contracts["permit2"], calldata(ALLOW, usdg(built), spender, raw, until_s))


async def test_approvals_by_permit2(ctx: Context, built: Built, wallet: Wallet) -> None:
    router = built.contracts["universalRouter"]
    result = await simulated(ctx, wallet.address, permit2(built, router, 10**6))
    assert result.answer["approvals"] == [
        {"token": usdg(built), "spender": router, "amount": "1", "unlimited": False}
    ]
    assert result.text.startswith(f"It lets the Universal Router ({router}) take some of your ")
    assert result.level == "ok"
    result = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 2**160 - 1))
    assert result.level == "warn"
    assert result.approvals() == {(usdg(built), SOMEBODY, True)}
    assert result.text.startswith(f"It lets {SOMEBODY} take all you hold of ")


async def test_an_approval_by_permit2_that_is_over_at_once_is_none(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    now_s = ctx.heads.current().block.timestamp_s
    for until_s in (1, now_s - 1, now_s):
        assert (
            await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 10, until_s))
        ).approvals() == set()
    result = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 10, now_s + 2))
    assert result.approvals() == {(usdg(built), SOMEBODY, False)}


async def test_an_approval_by_permit2_that_is_made_to_last_is_new(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """It was over, or nearly; the amount stays what it was."""
    now_s = ctx.heads.current().block.timestamp_s
    old = permit2(built, SOMEBODY, 2**160 - 1, now_s - 5)
    assert wallet.send(old.to, old.data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 2**160 - 1))
    assert result.approvals() == {(usdg(built), SOMEBODY, True)}, result.text


async def test_false_approvals_hide_no_true_one(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    noisy = strangers.mover()
    await ctx.heads.refresh()
    words = "".join(format(2**99 + n, "064x") for n in range(70))
    noise = UnsignedStep(noisy, calldata("false_approvals(uint256)", 200) + words)
    result = await simulated(ctx, wallet.address, noise, approve(usdg(built), SOMEBODY))
    assert result.approvals() == {(usdg(built), SOMEBODY, True)} or result.code == "unproven", result.text


async def test_a_call_that_fails_in_the_middle_is_named(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    mover = strangers.mover()
    await ctx.heads.refresh()
    nasty = 'never". All good.\u202e' + "x" * 120
    calls = [pay(SOMEBODY, n + 1) for n in range(6)]
    calls[3] = UnsignedStep(mover, calldata("fail(string)", nasty))
    result = await simulated(ctx, wallet.address, *calls)
    assert (result.code, result.level) == ("tx_reverts", "warn")
    assert result.text.startswith("Call 4 of 6 would fail with \"never'. All good.")
    assert result.text.count('"') == 2
    assert [call["ok"] for call in result.answer["calls"]] == [True, True, True, False, True, True]
    assert result.answer["calls"][3]["reverts"].startswith("never'. All good.")
    assert len(result.answer["calls"][3]["reverts"]) <= 80
    assert all(call["reverts"] is None for n, call in enumerate(result.answer["calls"]) if n != 3)


async def test_a_call_without_enough_eth_would_fail(ctx: Context, wallet: Wallet) -> None:
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, 12 * ETH))
    assert (result.code, result.level) == ("tx_reverts", "warn")
    assert "the wallet holds 10 eth and needs about 12" in result.text
    assert result.answer["calls"] == [{"ok": False, "gasUsed": 0, "reverts": None}], "nothing reverted"
    assert (result.spent(), result.received(), result.answer["approvals"]) == ({}, {}, [])
    funded = await simulated(ctx, wallet.address, pay(SOMEBODY, 12 * ETH), fund=True)
    assert (funded.code, funded.spent()) == ("nothing_received", {"eth": 12 * ETH})


async def test_all_of_the_eth_leaves_none_for_gas(ctx: Context, wallet: Wallet) -> None:
    assert (await simulated(ctx, wallet.address, pay(SOMEBODY, 10 * ETH))).code == "tx_reverts"
    assert (await simulated(ctx, wallet.address, pay(SOMEBODY, 10 * ETH - 10**16))).code == "nothing_received"


async def test_a_wallet_without_eth_can_send_nothing_but_a_funded_one_can(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    poor = Wallet(rpc, built.contracts, "poor", eth=0)
    (step,) = poor.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
    await ctx.heads.refresh()
    result = await simulated(ctx, poor.address, step)
    assert result.code == "tx_reverts"
    assert "holds 0 eth" in result.text
    funded = await simulated(ctx, poor.address, step, fund=True)
    assert (funded.code, funded.spent()) == ("ok", {"eth": ETH // 10}), funded.text


async def test_eth_that_earlier_calls_bring_pays_for_later_ones(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    payer = strangers.mover()
    strangers.rpc.call("anvil_setBalance", payer, hex(50 * ETH))
    await ctx.heads.refresh()
    brings = UnsignedStep(payer, calldata("pay_out(uint256)", 30 * ETH))
    result = await simulated(ctx, wallet.address, brings, pay(SOMEBODY, 35 * ETH))
    assert (result.code, result.spent()) == ("nothing_received", {"eth": 5 * ETH}), result.text
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, 35 * ETH), brings)
    assert result.code == "tx_reverts"
    assert result.text.startswith("Call 1 of 2 would fail: the wallet holds 10 eth")
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, 6 * ETH), brings, pay(SOMEBODY, 35 * ETH))
    assert result.code == "tx_reverts"
    assert result.text.startswith("Call 3 of 3 would fail: the wallet holds about 33.9")


@pytest.mark.parametrize("wei", [2**256 - 1, 10**24 + 1, 10**30])
@pytest.mark.parametrize("fund", [True, False])
async def test_more_eth_than_there_is(ctx: Context, wallet: Wallet, wei: int, fund: bool) -> None:
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, wei), fund=fund)
    assert (result.code, result.level) == ("tx_reverts", "warn")
    assert [call["ok"] for call in result.answer["calls"]] == [False]


@pytest.mark.parametrize("number", [1, 2, 4, 9, 10, 255])
async def test_precompiles_and_empty_addresses_are_called(ctx: Context, wallet: Wallet, number: int) -> None:
    target = "0x" + format(number, "040x")
    result = await simulated(ctx, wallet.address, UnsignedStep(target, "0x" + "00" * 32, 0))
    assert result.code in ("ok", "tx_reverts")
    assert (result.spent(), result.received(), result.approvals()) == ({}, {}, set())
    assert "no contract" not in result.text


MINT = calldata("mint(uint256)", 5)


async def test_a_call_with_data_to_no_contract_is_warned_of(ctx: Context, wallet: Wallet) -> None:
    """Such as a transfer of a token whose address was mistyped."""
    nothing = f"There is no contract at {SOMEBODY}; the data does nothing. It goes through"
    result = await simulated(ctx, wallet.address, UnsignedStep(SOMEBODY, MINT))
    assert (result.code, result.level) == ("ok", "warn")
    assert result.text.startswith(nothing)
    assert result.trips <= 2
    result = await simulated(ctx, wallet.address, UnsignedStep(SOMEBODY, MINT, 5))
    assert (result.code, result.level) == ("nothing_received", "warn")
    assert result.text.startswith(nothing)
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, 5))
    assert "no contract" not in result.text


async def test_the_zero_address_and_the_wallet_itself_are_no_contracts(ctx: Context, wallet: Wallet) -> None:
    for target in ("0x" + "00" * 20, wallet.address):
        result = await simulated(ctx, wallet.address, UnsignedStep(target, MINT))
        assert (result.code, result.level) == ("ok", "warn")
        assert result.text.startswith(f"There is no contract at {target}; ")


async def test_what_an_earlier_call_deploys_is_a_contract(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    mover = strangers.mover()
    await ctx.heads.refresh()
    deploys = UnsignedStep(mover, calldata("gather(uint256)", 1))
    # CREATE by a contract with nonce 1.
    deployed = "0x" + abi.keccak(bytes.fromhex(f"d694{mover[2:]}01"))[12:].hex()
    speaks = UnsignedStep(deployed, calldata("speak()"))
    result = await simulated(ctx, wallet.address, deploys, speaks)
    assert (result.code, result.level) == ("ok", "ok"), result.text
    assert result.answer["calls"][1]["gasUsed"] > 21_500
    result = await simulated(ctx, wallet.address, speaks, deploys)
    assert (result.code, result.level) == ("ok", "warn")
    assert result.text.startswith(f"There is no contract at {deployed}; the data does nothing.")
    failing = UnsignedStep(mover, calldata("fail(string)", "no"))
    result = await simulated(ctx, wallet.address, speaks, failing)
    assert result.code == "tx_reverts"
    assert f"There is no contract at {deployed}" in result.text


async def test_a_delegated_wallet_is_a_contract(ctx: Context, wallet: Wallet, strangers: Strangers) -> None:
    """EIP-7702."""
    strangers.rpc.call("anvil_setCode", SOMEBODY, "0xef0100" + strangers.mover()[2:])
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(SOMEBODY, calldata("speak()")))
    assert (result.code, result.level) == ("ok", "ok"), result.text


async def test_a_contract_as_sender_is_answered(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    sender = strangers.mover()
    strangers.rpc.call("anvil_setBalance", sender, hex(5 * ETH))
    await ctx.heads.refresh()
    result = await simulated(ctx, sender, pay(SOMEBODY, ETH))
    assert result.code in ("nothing_received", "unproven"), result.text
    (step,) = wallet.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
    result = await simulated(ctx, sender, step)
    assert result.code in ("ok", "tx_reverts", "unproven", "nothing_received"), result.text


@pytest.mark.parametrize("key", ["weth", "usdg", "multicall3", "permit2", "universalRouter"])
async def test_the_exchanges_own_machinery_as_sender_ends_nothing(
    ctx: Context, built: Built, key: str
) -> None:
    result = await simulated(ctx, built.contracts[key], pay(SOMEBODY, 1), fund=True)
    assert result.code in ("nothing_received", "unproven", "tx_reverts")
    assert result.level != "ok"


async def test_the_zero_address_as_sender_ends_nothing(ctx: Context) -> None:
    result = await simulated(ctx, "0x" + "00" * 20, pay(SOMEBODY, ETH), fund=True)
    assert result.code in ("nothing_received", "unproven")


async def test_long_calldata_is_read(ctx: Context, built: Built, wallet: Wallet) -> None:
    result = await simulated(ctx, wallet.address, UnsignedStep(SOMEBODY, "0x" + "ff" * 30_000))
    assert result.code in ("ok", "tx_reverts")
    words = "".join(format(2**150 + n, "064x") for n in range(900))
    noisy = UnsignedStep(SOMEBODY, "0x12345678" + words)
    (buy,) = wallet.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
    result = await simulated(ctx, wallet.address, noisy, buy)
    # Words that may be addresses, more than are looked at: nothing is proven.
    assert (result.code, result.received()) == ("unproven", {}), result.text
