"""The rows of the published tables: every code, flag and figure of a policy."""

from dataclasses import dataclass, fields
from types import MappingProxyType

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import WEI_PER_ETH, plain_decimal

from .flags import FLAGS


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: a name, the level or value that goes with it, and when it holds."""

    name: str
    value: str
    when: str


def _percent(bps: int) -> str:
    return f"{plain_decimal(bps, 2)} %"


def _eth(wei: int) -> str:
    return f"{plain_decimal(wei, len(str(WEI_PER_ETH)) - 1)} eth"


def codes(policy: Policy) -> tuple[Row, ...]:
    """Every code, in the order of the page; ``verdict.judge`` decides which counts."""
    warn, danger = _percent(policy.warn_loss_bps), _percent(policy.danger_loss_bps)
    sellable, toll = _percent(policy.sellable_share_bps), _percent(policy.toll_warn_bps)
    lines = f"warn from a loss of {warn}, danger from {danger}"
    return (
        Row("no_contract", "warn", "no code at the address"),
        Row("not_a_token", "warn", "code that does not answer like an ERC-20"),
        Row("quote_asset", "ok", "weth or usdg: money that tokens trade against, nothing to check"),
        Row("no_pool", "warn", "no venue; also a launch between its curve and its pool, or a cancelled one"),
        Row("empty_pool", "warn", "venues without liquidity to buy from"),
        Row("cannot_buy", "warn", "every venue refuses a buy of any size"),
        Row("cannot_sell", "danger", f"the wallet that bought can sell less than {sellable} of it within a "
            f"day, in one sale at any of {policy.pieces} moments, or in {policy.pieces} or "
            f"{policy.small_pieces} sales, or sells it at once and less than {sellable} after an "
            "hour and after a day, or a wallet of the crowd cannot for what it is or for what others did; in "
            f"a deep check also if at least {_percent(policy.caught_share_bps)} of the real holders, and "
            f"{policy.least_caught} at least, cannot sell within a day or lose {danger}"),
        Row("toll_pool", "warn, danger", "what the pool or its hook keeps is the largest part of the loss; "
            f"{lines}; at least warn from {toll}"),
        Row("thin_pool", "warn, danger", f"price impact is the largest part of the loss; {lines}"),
        Row("high_fees", "warn", f"fees and taxes are the largest part of the loss, from a loss of {warn}"),
        Row("heavy_fees", "danger", f"the same, from {danger}; also if you pay and get nothing"),
        Row("ok", "ok, warn", "the rest; level ok only if a buy of the usual size goes through, all of it "
            "sells in a later block, after an hour and after a day, and what "
            f"{_eth(policy.large_wei)} buys sells, too, the venue where a buy brings most takes "
            "sells and loses no more, a wallet that it is sent to sells it, and so does one that traded "
            "it before, it sells with much and with little gas, none of these loses much more, and no "
            "wallet of the crowd met anything else"),
        Row("unproven", "unknown", "a result is missing, and some value of it would change the code; also "
            "where its only pools are against other tokens, or one base unit costs more than a check pays"),
    )  # fmt: skip


def flags(policy: Policy) -> tuple[Row, ...]:
    """Every flag, with its threshold where the policy has it."""
    figures = {
        "toll_pool": f"{_percent(policy.toll_warn_bps)} of a round trip",
        "thin_pool": f"a loss of {_percent(policy.warn_loss_bps)}",
        "high_creator_tax": _percent(policy.high_creator_tax_bps),
        "serial_deployer": f"{policy.serial_launches} launches, fewer than 1 in "
        f"{policy.serial_graduated_divisor} graduated",
        "no_liquidity": f"less than {_eth(policy.thin_quote_wei)}",
    }
    return tuple(
        Row(name, figures.get(name, ""), " ".join((raised.__doc__ or "").split()))
        for name, raised in FLAGS.items()
    )


def thresholds(policy: Policy) -> tuple[Row, ...]:
    """Every figure of the policy by its field, with its purpose, and its unit where the name ends in one."""
    return tuple(
        Row(field.name, _figure(field.name, getattr(policy, field.name)), _PURPOSES[field.name])
        for field in fields(policy)
    )


def _figure(name: str, value: object) -> str:
    """Formats a figure by the unit that its name ends with."""
    if isinstance(value, tuple):
        return ", ".join(_figure(name, item) for item in value)
    if not isinstance(value, int):
        return str(value)
    if name.endswith("_wei"):
        return _eth(value)
    if name.endswith("_bps"):
        return _percent(value)
    unit = next((unit for end, unit in (("_ms", " ms"), ("_s", " s")) if name.endswith(end)), "")
    return f"{value:,}{unit}"


_PURPOSES = MappingProxyType(
    {
        "version": "the version of this policy, stored in all evidence",
        "probe_wei": "what the usual buy spends",
        "large_wei": "what the larger round trip spends; only the level and the text use it",
        "fee_divisor": "fees are measured on the usual buy divided by this, which moves no price",
        "smaller_divisors": "a refused usual buy is tried again divided by these, in this order",
        "gas_float_wei": "what a wallet of a probe holds beyond the trade, for gas",
        "later_s": "the first sells come this long after the buy",
        "hour_s": "the second sells come this long after the buy",
        "day_s": "the third sells come this long after the buy",
        "half_bps": "the share that a sell of half sells",
        "sliver_bps": "the smallest share that is sold",
        "nearly_kept_raw": "where a sale of all is refused, all but so many base units is tried",
        "nearly_bps": "then these shares and half of it; the first that sells counts",
        "nearly_rounds": "how often these are tried, with a small buy by another wallet between",
        "nearly_gas_limit": "gas of each of these sales",
        "pieces": "equal sales over a day, tried where no single sale sells enough, and moments of one sale",
        "small_pieces": "a larger number of equal sales, tried there, too",
        "most_bps": "the share that a round trip sells after others in the same simulation",
        "side_buy_gas_limit": "the gas limit of the small and the large buy beside the token's facts",
        "buy_gas_limit": "the gas limit of a buy: the cap of one transaction (EIP-7825)",
        "sell_gas_ladder": "the gas limits of a sell, tried in turn until it succeeds",
        "hook_gas_limit": "the gas limit of a swap in a pool with a stranger's hook",
        "most_tried": "pools without a stranger's hook that are tried: those where a buy brings most",
        "most_hooked": "the same for pools with a stranger's hook",
        "most_scouted": "pools of each kind on which one buy is tried to find these",
        "part_gas_ladder": "the gas limits of a sell of a part, tried in turn",
        "piece_gas_limit": "the gas limit of each of the ten equal sales over a day",
        "small_piece_gas_limit": "the gas limit of each of the fifty",
        "company_gas_limit": "the gas limit of the buys of others in between",
        "crowd_sizes_wei": "the crowd's buys are drawn between these pairs of bounds",
        "crowd_counts": "how many are drawn between each pair",
        "crowd_purse_wei": "the least and the most eth that a wallet of the crowd holds beyond its buys",
        "crowd_most_tip_wei": "the highest tip of a wallet of the crowd, for a unit of gas",
        "crowd_largest_wei": "one more wallet trades alone, for 90 to 100 % of this, or of the crowd's most",
        "crowd_gaps_s": "the bounds of the drawn times before each block of the crowd's buys",
        "crowd_buy_blocks": "the blocks in which the crowd buys first",
        "crowd_depth_divisor": "the crowd buys for at most this part of a venue's depth",
        "crowd_gas_limit": "the most gas of one of the crowd's buys or sells",
        "crowd_gas": "the most gas of all of them in one simulation",
        "most_recalled": "wallets of earlier checks, which could not sell or lost more, that trade again",
        "recalled_s": "how long such a wallet is recalled",
        "most_crowded": "on so many of the best venues all of the crowd trades, and on any that decides",
        "few_step": "on the others one wallet in so many does, and the largest",
        "crowd_margin_bps": "a wallet of the crowd that loses so much more than the main one is isolated",
        "most_isolated": "wallets of one venue that are tried alone",
        "most_alone": "on so many of the best venues each main sell, or the first, is simulated alone",
        "named_gas": "the text names a buy or sell that uses more gas",
        "approve_gas_limit": "the gas limit of an approval",
        "read_gas_limit": "the gas limit of a view call to a token",
        "transfer_gas_limit": "the gas limit of other calls beside a trade",
        "hand_on_gas_limit": "the gas limit of a transfer to another wallet, which then sells",
        "warn_loss_bps": "the level is warn from this loss",
        "danger_loss_bps": "the level is danger from this loss",
        "toll_warn_bps": "the level is at least warn where a pool keeps this share of a round trip",
        "sellable_share_bps": "the code is cannot_sell where less can be sold within a day",
        "whole_tolerance_bps": "a sell that leaves less than this counts as all of it",
        "rival_hook_margin_bps": "a pool with a stranger's hook wins only where it brings this much more",
        "thin_quote_wei": "the flag no_liquidity is raised below this value of the best venue's money side",
        "price_disagreement_bps": "no dollar price is given where pool and feed differ by more",
        "high_creator_tax_bps": "high_creator_tax is raised from this creator tax",
        "serial_launches": "serial_deployer is possible from this number of launches",
        "serial_graduated_divisor": "and is raised where fewer than one in this many graduated",
        "closed_long_s": "the text says how long a launch is closed without a pool, if for longer",
        "trade_gas_budget": "gas that a caller's own calls may use in all simulations of one request",
        "most_received": "tokens that a caller's calls may bring; more are unproven",
        "most_owner_calls": "simulations that try what an owner could change (deep)",
        "owner_call_gas_limit": "the gas of each such call",
        "drawn_holders": "real holders whose balance is read (deep)",
        "most_holders": "real holders for which sells are simulated (deep)",
        "least_caught": "fewer holders that cannot sell only make a warning",
        "caught_share_bps": "the code is cannot_sell where this share of the holders cannot sell",
        "most_venues": "venues that accept the buy and are judged: those where it brings most",
        "node_fault_ttl_ms": "how long an answer is shared that a node error left unproven",
        "answer_ttl_ms": "how long any other answer is shared",
        "deep_ttl_ms": "how long a deep check's answer is shared",
    }
)
