"""The sentences of a report. Each is true of its step, whatever the answer claims."""

from datetime import UTC, datetime

from . import pools
from .network import TrustedNetwork
from .prepared_trade import CURVE, ETH, MONEY_DECIMALS, V3, TradeToVerify
from .report import plain
from .routers import PoolKey, by_permit2


def time(seconds: int) -> str:
    """Whole seconds since 1970 as people and contracts read them."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ} ({seconds})"


def amount(trade: TradeToVerify, raw: int, asset: str) -> str:
    """An amount of money or of the token. The token is named by its address: its symbol is a stranger's
    text."""
    if asset in MONEY_DECIMALS:
        return f"{plain(raw, MONEY_DECIMALS[asset])} {asset} ({raw} base units)"
    return f"{plain(raw, trade.decimals)} ({raw} base units) of the token {asset}"


def approval(
    at: int, kind: str, trade: TradeToVerify, network: TrustedNetwork, asset: str, spender: str
) -> str:
    """What an approval allows, and to which spender."""
    names = {network.permit2: "Permit2", network.swap_router02: "SwapRouter02"}
    spender_text = f"{names.get(spender, 'the contract')} {spender}"
    paid = amount(trade, trade.spend.raw, trade.spend.asset)
    if kind == "reset":
        return f"step {at} revokes the allowance of {spender_text} for {asset}"
    if kind == "approval":
        return f"step {at} lets {spender_text} take exactly {paid} from your wallet and no more"
    return (
        f"step {at} lets the Universal Router {network.universal_router} take, by Permit2, exactly {paid} "
        f"from your wallet and no more, until {time(trade.deadline_s)}"
    )


def curve(at: int, trade: TradeToVerify, minimum: int) -> list[str]:
    """The parameters of a call to a curve. What the curve does with them is up to its code."""
    wallet = trade.head.wallet
    paid = amount(trade, trade.spend.raw, trade.spend.asset)
    received = amount(trade, minimum, trade.expect.asset)
    verb = "buy" if trade.buys else "sell"
    return [
        f"step {at} asks the contract {trade.at} to {verb} for exactly {paid} and to pay out only to your "
        f"wallet {wallet}",
        f"step {at} asks it to give at least {received}, or to revert",
    ]


def swap(at: int, trade: TradeToVerify, network: TrustedNetwork, pool: PoolKey, minimum: int) -> list[str]:
    """What a swap pays, who receives the proceeds, and when it reverts."""
    paid = amount(trade, trade.spend.raw, trade.spend.asset)
    received = amount(trade, minimum, trade.expect.asset)
    pool_named = pools.describe_pool(trade, network, pool)
    # Where the calldata names no wallet, the routers pay their caller.
    names_wallet = trade.kind == V3 and not trade.buys and not by_permit2(trade, network)
    recipient = (
        f"your wallet {trade.head.wallet}"
        if names_wallet
        else f"the wallet that signs the step, {trade.head.wallet}"
    )
    claim = ""
    if trade.minimum.raw != minimum:
        claim = f"; the answer claims that {amount(trade, trade.minimum.raw, trade.expect.asset)} arrive"
    return [
        f"step {at} pays exactly {paid} into {pool_named}; the pool's address proves it",
        f"step {at} sends the output only to {recipient}",
        f"step {at} reverts unless the pool gives at least {received}{claim}",
        f"step {at} reverts after {time(trade.deadline_s)}",
    ]


def notes(trade: TradeToVerify) -> list[str]:
    """What the answer alone cannot prove."""
    sentences = [
        f"Whether the token {trade.head.token} has {trade.decimals} decimals and honest code.",
        "Whether the expected amount will arrive: it comes from the service's simulation. Only the "
        "minimum binds.",
    ]
    if trade.buys:
        sentences.append(
            "How much arrives if the token taxes its transfers: the minimum counts what the pool sends."
        )
        sentences.append("Whether you can sell what you buy.")
    if trade.already_done:
        sentences.append("Whether the wallet already gave the approvals that alreadyDone counts.")
    if trade.kind == CURVE:
        sentences.append(
            f"Whether {trade.at} is the curve of the token {trade.head.token}. If it is not, it may keep "
            "all that you pay. Ask the launchpad's factory on your own node: the second word that "
            "getLaunchedToken(token) returns is the curve."
        )
        sentences.append(
            "A curve has no deadline: validUntil is only advice, and the steps stay valid after it."
        )
    if trade.buys and trade.kind == CURVE and trade.money == ETH:
        sentences.append("Near its end a curve takes less than you pay and returns the rest.")
    return sentences
