"""The reader's own input: the contracts they trust, and what they asked for."""

from dataclasses import dataclass

from . import json_reader
from .report import UnreadableClaim


@dataclass(frozen=True, slots=True)
class TrustedNetwork:
    """The addresses that everything is checked against, in lower case. They are trusted."""

    chain_id: int
    weth: str
    usdg: str
    permit2: str
    v3_factory: str
    swap_router02: str
    universal_router: str
    launchpad_hook: str | None = None

    def machinery(self) -> frozenset[str]:
        """The contracts that are neither money nor a token."""
        addresses = (
            self.permit2,
            self.v3_factory,
            self.swap_router02,
            self.universal_router,
            self.launchpad_hook,
        )
        return frozenset(address for address in addresses if address is not None)

    def contracts(self) -> frozenset[str]:
        """All of them."""
        return self.machinery() | {self.weth, self.usdg}

    @staticmethod
    def read(described: object) -> "TrustedNetwork":
        """From a JSON document with ``chainId`` and ``contracts`` (names as in var/devnet.json). Raises
        UnreadableClaim: the shape is wrong."""
        document = json_reader.mapping(described, "the network file")
        contracts = json_reader.mapping(json_reader.get(document, "contracts"), "contracts")
        names = ("weth", "usdg", "permit2", "v3Factory", "swapRouter02", "universalRouter")
        addresses = [
            json_reader.address(json_reader.get(contracts, name), f"contracts.{name}") for name in names
        ]
        hook = contracts.get("launchpadHook")
        hook_address = None if hook is None else json_reader.address(hook, "contracts.launchpadHook")
        all_addresses = [*addresses, *([hook_address] if hook_address is not None else [])]
        if len(set(all_addresses)) != len(all_addresses) or any(map(json_reader.is_reserved, all_addresses)):
            raise UnreadableClaim(
                "The network file has a duplicate address, or one that cannot be a contract."
            )
        chain_id = json_reader.integer(json_reader.get(document, "chainId"), "chainId")
        weth, usdg, permit2, factory, router, universal = addresses
        return TrustedNetwork(chain_id, weth, usdg, permit2, factory, router, universal, hook_address)


@dataclass(frozen=True, slots=True)
class TradeOrder:
    """What the reader asked the service for; each given value is checked against the answer.

    ``amount`` is a decimal number as in the request, or ``all``; ``amount_raw`` the same in base units.
    ``asset``: what they meant to pay with, or to get: eth or usdg.
    """

    wallet: str | None = None
    token: str | None = None
    side: str | None = None
    amount: str | None = None
    amount_raw: int | None = None
    slippage_bps: int | None = None
    asset: str | None = None
