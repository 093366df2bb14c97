"""Wallets that met a refusal or a loss, and real holders that could not sell: kept for a day, and tried again
in each later check of the token."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.crowd_reading import is_trap
from roundtrip.domain.check.evidence import Crowd, Evidence, HolderSells, VenueEvidence
from roundtrip.domain.check.holder_sells import find_caught, traps
from roundtrip.domain.check.proof_input import MAIN_WALLET, RecalledWallet
from roundtrip.domain.check.venue_code import enough
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.services.support.answer_fields import at
from roundtrip.store.check import token_index
from roundtrip.store.server.rows import Connection
from roundtrip.venues import BY_KIND

from .crowd import draw_crowd, redraw_wallet
from .inputs import CheckInputs


async def keep_recalled(
    connection: Connection, token: Address, wallets: set[RecalledWallet], now_s: float, policy: Policy
) -> None:
    """Stores wallets of a check of the token (``wallets_to_recall``)."""
    now = at(now_s)
    since = now - timedelta(seconds=policy.recalled_s)
    await token_index.keep_recalled_wallets(connection, token, wallets, now, since)


async def keep_caught(
    connection: Connection, token: Address, sells: HolderSells, now_s: float, policy: Policy
) -> None:
    """Stores the real holders that could not sell, where they make a trap of the token: of a large token a
    few barred ones say nothing. Renews stored ones that still cannot, and deletes those that can."""
    caught, freed = find_caught(sells, policy)
    now = at(now_s)
    since = now - timedelta(seconds=policy.recalled_s)
    is_danger = traps(sells, policy) == {True}
    await token_index.keep_caught_holders(connection, token, caught, freed, is_danger, now, since)


def wallets_to_recall(
    evidence: Evidence, readings: Sequence[VenueReading], inputs: CheckInputs, policy: Policy
) -> set[RecalledWallet]:
    """The wallets of this check, and of those that it recalled, that met a refusal or a loss: of each venue
    the first ``most_recalled``, those that show a trap before others."""
    recalled = set[RecalledWallet]()
    for venue, reading in zip(evidence.venues, readings, strict=True):
        known = list(_differing_wallets(venue, reading, inputs, policy))
        if not enough(reading.full, policy) and reading.size is not None:
            known.append(RecalledWallet(venue.venue.at() or "", "0x" + inputs.seed.hex(), MAIN_WALLET))
        recalled |= set(known[: policy.most_recalled])
    return recalled


def _differing_wallets(
    venue: VenueEvidence, reading: VenueReading, inputs: CheckInputs, policy: Policy
) -> Iterator[RecalledWallet]:
    if not isinstance(venue.crowd, Crowd) or reading.crowd is None or not reading.crowd.findings:
        return
    place = VenuePlace(venue.venue, BY_KIND[venue.venue.kind])
    name, seed = venue.venue.at() or "", "0x" + inputs.seed.hex()
    # All, also those that did not trade (``recall_wallets``): the findings name only those that did.
    earlier = [wallet for wallet in inputs.recalled if wallet.at == name]
    origins = {redraw_wallet(place, inputs.head, policy, wallet).wallet: wallet for wallet in earlier}
    drawn = draw_crowd(inputs.seed, place, inputs.head, policy)
    new = {wallet.wallet: RecalledWallet(name, seed, number) for number, wallet in enumerate(drawn)}
    origins = new | origins
    for finding in sorted(reading.crowd.findings, key=lambda finding: not is_trap(finding)):
        if finding.trade.wallet.wallet in origins:
            yield origins[finding.trade.wallet.wallet]
