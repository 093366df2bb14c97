"""Draws the wallets and blocks of probes anew for each check. They differ like those of real users."""

from typing import Any

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Environment
from roundtrip.venues.abi import keccak


def draw(entropy: bytes, head: ChainHead, policy: Policy) -> tuple[Environment, ...]:
    """Draws two wallets that look like real buyers, each with a possible next block. ``entropy``: equal bytes
    draw equal wallets."""

    def draw_bytes(label: str) -> bytes:
        return keccak(entropy + label.encode())

    def wallet(label: str) -> Address:
        return Address("0x" + draw_bytes(label)[12:].hex())

    def number(label: str, lowest: int, highest: int) -> int:
        return lowest + int.from_bytes(draw_bytes(label)[:8], "big") % (highest - lowest + 1)

    def environment(which: int, tip_wei: int, **manners: Any) -> Environment:
        return Environment(
            buyer=wallet(f"buyer {which}"),
            receiver=wallet(f"receiver {which}"),
            reader=wallet(f"reader {which}"),
            nonce=number(f"nonce {which}", 1, 300),
            coinbase=head.coinbase,
            prev_randao="0x" + draw_bytes(f"randao {which}").hex(),
            base_fee_wei=head.base_fee_wei,
            max_fee_wei=2 * head.base_fee_wei + tip_wei,
            tip_wei=tip_wei,
            approved_s=number(f"approved {which}", 2, 11),
            **manners,
        )

    small_wei, large_wei = 5 * 10**16, 10**18
    careful = environment(0, 0, gas_float_wei=number("float 0", small_wei, 2 * small_wei))
    # Where the chain takes no tips, a wallet that offers one pays none.
    dropped = head.dialect is not None and head.dialect.drops_tips
    careless = environment(
        1,
        0 if dropped else number("tip 1", 10**6, 10**8),
        gas_float_wei=number("float 1", large_wei, 20 * large_wei),
        size_bps=number("size 1", 1000, 9900),
        approves_all=True,
        approve_gas_limit=0,
        late_s=number("late 1", 1, 14),
        sell_gas_ladder=(policy.buy_gas_limit,),
        own_usdg_raw=number("usdg 1", 10**6, 40 * 10**6),
        company=True,
    )
    return careful, careless
