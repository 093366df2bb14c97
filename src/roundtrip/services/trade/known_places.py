"""The tokens that trade at the addresses and pool ids that a wallet's calls name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import is_curve
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.runtime.context import Context
from roundtrip.store.check.token_index import IndexedPlace, read_places
from roundtrip.venues.base import Call, Contracts

from .touched_assets import marks


@dataclass(frozen=True, slots=True)
class KnownPlaces:
    """Tokens by their own address, and by the pools and curves where they trade. ``listed``: by the logs of
    this process; ``others``: by the index and by checks."""

    listed: VenueIndex | None
    others: Mapping[str, IndexedPlace]

    def token_at(self, place: str) -> Address | None:
        """The token that trades at a pool's or curve's address, or under a pool's id; a token's own address
        returns itself. None: unknown."""
        token = None if self.listed is None else self.listed.token_at(place)
        known = self.others.get(place)
        return token or (None if known is None else known.token)

    def is_curve(self, place: Address) -> bool:
        """Whether the launchpad's curve of a token is there."""
        known, token = self.others.get(place), self.token_at(place)
        if known is not None and is_curve(known.kind):
            return True
        curves = () if self.listed is None or token is None else self.listed.venues_of(token)
        return any(venue.is_curve and venue.pool == place for venue in curves)

    def name_of(self, spender: Address, contracts: Contracts) -> str:
        """The name of an exchange's contract that needs allowances, or of a launchpad's curve; else empty."""
        names_by_address = {
            contracts.permit2: "Permit2",
            contracts.swap_router02: "the swap router",
            contracts.universal_router: "the Universal Router",
            contracts.v3_position_manager: "the v3 position manager",
            contracts.v4_position_manager: "the v4 position manager",
            contracts.launchpad_router: "the launchpad's router",
        }
        return names_by_address.get(spender) or ("the launchpad's curve" if self.is_curve(spender) else "")

    def with_checks(self, checks: Iterable[BuyRoundResult | object]) -> "KnownPlaces":
        """These, and the venues that checks tried."""
        tried = {
            place: IndexedPlace(check.run.token, venue.kind)
            for check in checks
            if isinstance(check, BuyRoundResult)
            for venue in check.candidates.venues
            if (place := venue.at()) is not None
        }
        return replace(self, others={**tried, **self.others})


async def read_known_places(ctx: Context, calls: tuple[Call, ...]) -> KnownPlaces:
    """What is known of the places that the calls name."""
    indexed = await read_places(
        ctx.pool, {mark for call in calls for mark in marks(call)}, ctx.index_patience_s
    )
    money = ctx.contracts.weth, ctx.contracts.usdg
    others = {at: place for at, place in indexed.items() if place.token not in money}
    return KnownPlaces(ctx.heads.venue_index, others)
