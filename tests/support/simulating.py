"""What a wallet's own calls are simulated with."""

from roundtrip_development.devnet.world import Built
from support.wallet import PoolSpec, UnsignedStep, Wallet

ETH = 10**18


SOMEBODY = "0x" + "ab" * 20


def usdg(built: Built) -> str:
    return built.contracts["usdg"]


def steps_of(wallet: Wallet, token: str, place: PoolSpec, amount_raw: int) -> list[UnsignedStep]:
    return wallet.buy_steps(token, place, amount_raw)
