"""What every code and every flag means under a policy, in figures: the rows of the published tables."""

from dataclasses import dataclass, fields

from .flags import FLAGS
from .policy import Policy
from .types import WEI_PER_ETH, plain_decimal


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
    """Every code, in the order in which the first that is proven counts."""
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
        Row("cannot_sell", "danger", f"less than {sellable} of it can be sold within a day by any probe; in "
            f"a deep check also where at least {_percent(policy.caught_share_bps)} of the real holders, "
            f"and {policy.least_caught} at least, cannot sell within a day or lose {danger}"),
        Row("toll_pool", "warn, danger", f"what the pool or its hook keeps is the largest part; {lines}; at "
            f"least warn where that is {toll} or more"),
        Row("thin_pool", "warn, danger", f"price impact is the largest part; {lines}"),
        Row("high_fees", "warn", f"fees and taxes are the largest part, from a loss of {warn}"),
        Row("heavy_fees", "danger", f"the same, from {danger}"),
        Row("ok", "ok, warn", "the rest; level ok only if all of it sells in the later block, after an hour "
            "and after a day"),
        Row("unproven", "unknown", "a piece is missing and some value of it would change the code"),
    )  # fmt: skip


def flags(policy: Policy) -> tuple[Row, ...]:
    """Every flag, with the line it is raised at."""
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
    """Every figure of the policy by its field."""
    return tuple(
        Row(field.name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value), "")
        for field in fields(policy)
        for value in (getattr(policy, field.name),)
    )
