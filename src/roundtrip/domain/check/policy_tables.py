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
    """Every code, in order: the first proven one counts."""
    warn, danger = _percent(policy.warn_loss_bps), _percent(policy.danger_loss_bps)
    sellable, toll = _percent(policy.sellable_share_bps), _percent(policy.toll_warn_bps)
    lines = f"warn from a loss of {warn}, danger from {danger}"
    return (
        Row("no_contract", "warn", "no code at the address"),
        Row("not_a_token", "warn", "code that does not answer like an ERC-20"),
        Row("quote_asset", "ok", "weth or usdg: the money side, nothing to prove"),
        Row("no_pool", "warn", "no venue; also a launch between its curve and its pool, or called off"),
        Row("empty_pool", "warn", "venues, none of which fills a buy"),
        Row("cannot_buy", "warn", "every venue refuses the buy at every size"),
        Row("cannot_sell", "danger", f"the wallet that bought can sell less than {sellable} of it within a "
            f"day; in a deep check also where at least {_percent(policy.caught_share_bps)} of the real "
            f"holders, and {policy.least_caught} at least, cannot sell within a day or lose {danger}"),
        Row("toll_pool", "warn, danger", f"what the pool or its hook keeps is the largest part; {lines}; at "
            f"least warn where that is {toll} or more"),
        Row("thin_pool", "warn, danger", f"price impact is the largest part; {lines}"),
        Row("high_fees", "warn", f"fees and taxes are the largest part, from a loss of {warn}"),
        Row("heavy_fees", "danger", f"the same, from {danger}; also where a buy is paid for and brings "
            "nothing at all"),
        Row("ok", "ok, warn", "the rest; level ok only if a buy of the usual size goes through, all of it "
            "sells in the later block, after an hour and after a day, and so does what "
            f"{_eth(policy.large_wei)} buys"),
        Row("unproven", "unknown", "a piece is missing and some value of it would change the code"),
    )  # fmt: skip


def flags(policy: Policy) -> tuple[Row, ...]:
    """Every flag, with its threshold."""
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
    """Every figure of the policy by its field, with its unit and purpose."""
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
        "version": "stands in all evidence that is kept; another one is another policy",
        "probe_wei": "what the usual buy spends",
        "large_wei": "what the larger round trip spends, of which only the text speaks",
        "fee_divisor": "fees are measured on the usual buy divided by this, which moves no price",
        "smaller_divisors": "where the usual buy is refused it is tried divided by these, in this order",
        "gas_float_wei": "what a wallet of a probe holds beyond the trade, for gas",
        "later_s": "how long after the buy the first sells come",
        "hour_s": "and the second",
        "day_s": "and the third",
        "half_bps": "how much of what was bought a sell of half sells",
        "sliver_bps": "and the smallest part that is sold",
        "buy_gas_limit": "the gas of a buy: the most that one transaction may have (EIP-7825)",
        "sell_gas_ladder": "the gas of a sell, tried in turn until it goes through",
        "hook_gas_limit": "the most that a swap may take in a pool with a stranger's hook",
        "most_tried": "pools without a stranger's hook that are tried: those where a buy brings most",
        "most_hooked": "the same of pools with a stranger's hook",
        "most_scouted": "pools of either sort that are bought on once to find these",
        "part_gas_ladder": "the gas of a sell of a part, tried in turn",
        "company_gas_limit": "the gas of what others buy in between",
        "named_gas": "a buy or sell that takes more gas is named in the text",
        "approve_gas_limit": "the gas of an approval",
        "read_gas_limit": "the gas of a question to a token",
        "transfer_gas_limit": "the gas of handing tokens to another wallet",
        "warn_loss_bps": "from this loss on the level is warn",
        "danger_loss_bps": "from this loss on the level is danger",
        "toll_warn_bps": "a pool that keeps this much of a round trip is at least a warning",
        "sellable_share_bps": "where less of it can be sold within a day it cannot be sold",
        "whole_tolerance_bps": "a sell that leaves less than this counts as all of it",
        "rival_hook_margin_bps": "a pool with a stranger's hook wins only where it brings this much more",
        "thin_quote_wei": "less on the money side of the best venue raises no_liquidity",
        "price_disagreement_bps": "pool and feed further apart on what an eth is worth: no dollars are told",
        "high_creator_tax_bps": "a creator's tax from which on high_creator_tax is raised",
        "serial_launches": "launches from which on a deployer may be serial",
        "serial_graduated_divisor": "and is, where fewer than one in so many graduated",
        "closed_long_s": "a launch that is closed for longer without a pool is spoken of as such",
        "trade_gas_budget": "gas that a caller's own calls may use in all simulations of one request",
        "most_received": "tokens that a caller's calls may bring; with more nothing is proven",
        "most_owner_calls": "simulations that try what an owner could change (deep)",
        "owner_call_gas_limit": "the gas of each such call",
        "most_holders": "real holders that are sold as (deep)",
        "least_caught": "fewer holders that cannot sell are a warning and no more",
        "caught_share_bps": "where so many of the holders cannot sell it is cannot_sell",
        "most_venues": "venues that take the buy and are judged; of more, those that bring most",
        "node_fault_ttl_ms": "how long an answer is shared that the node spoiled",
        "answer_ttl_ms": "how long any other is shared",
        "deep_ttl_ms": "how long a deep check is shared",
    }
)
