"""Books of holders for tests, filled by hand: what they fold to is tested elsewhere."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.holders.book import (
    BookStart,
    HolderBook,
    HolderColumns,
    InsiderLedger,
    LaunchBuy,
    LaunchBuys,
)
from roundtrip.domain.holders.deployer import Maker, Source
from roundtrip.domain.holders.findings import HolderInputs, KnownWallet, outside
from roundtrip.domain.holders.token_flows import NonWallets


def address(number: int) -> Address:
    return Address(f"0x{number:040x}")


def tx(number: int) -> TxHash:
    return TxHash(f"0x{number:064x}")


TOKEN, POOL, LOCKER, DEPLOYER, CREATOR = (address(0xF00 + number) for number in range(5))
PLACES = NonWallets(frozenset({POOL}), frozenset({LOCKER}))
BLOCK, AT_S = 1_000, 1_760_000_000
MAKER = Maker(DEPLOYER, "launchpad", (CREATOR,), tx(1))


@dataclass
class FilledBook(HolderBook):
    """A book that tells of its launch and its past what it was given."""

    launched: LaunchBuys | None = None
    is_over: bool = True
    earlier: Mapping[int, int] = field(default_factory=dict)

    def launch(self, related: Collection[Address] = ()) -> LaunchBuys | None:
        return self.launched

    def launch_is_over(self) -> bool:
        return self.is_over

    def holders(self) -> int:
        skipped = self.beginning.places.pools | self.beginning.places.beside | outside(find_holders(self))
        return sum(
            1 for wallet, held in self.wallets.items() if held.balance_raw > 0 and wallet not in skipped
        )

    def holders_at(self, at_s: int) -> int | None:
        return self.earlier.get(at_s)


def book(
    wallets: Mapping[Address, HolderColumns | int],
    launched: LaunchBuys | None = None,
    ledgers: Mapping[Address, InsiderLedger] | None = None,
) -> FilledBook:
    """A number: so much came to it and stayed."""
    beginning = BookStart(TOKEN, PLACES, frozenset(), BLOCK, None, frozenset({DEPLOYER, CREATOR}))
    held = {
        wallet: HolderColumns(balance_raw=one, received_raw=max(one, 0)) if isinstance(one, int) else one
        for wallet, one in wallets.items()
    }
    return FilledBook(beginning, wallets=held, ledgers=dict(ledgers or {}), launched=launched)


def find_holders(
    of: HolderBook,
    supply_raw: int = 10_000,
    balances: Mapping[Address, int] | None = None,
    drifts: bool = False,
    maker: Maker | None = MAKER,
    wallets: Mapping[Address, KnownWallet] | None = None,
    families: Mapping[Address, int] | None = None,
    winners: Iterable[Address] = (),
    never: Iterable[str] = (),
) -> HolderInputs:
    return HolderInputs(
        book=of,
        supply_raw=supply_raw,
        balances=balances or {},
        drifts=drifts,
        maker=maker,
        wallets=wallets or {},
        families=families or {},
        winners=frozenset(winners),
        never_group=frozenset(never),
    )


def launch(*buys: tuple[Address, int] | tuple[Address, int, int]) -> LaunchBuys:
    """Buys in one launch: who, how much, and in which transaction; each in one of its own where none is
    given."""
    made = []
    for number, one in enumerate(buys):
        tx_number = one[2] if len(one) == 3 else 0xB000 + number
        made.append(LaunchBuy(one[0], one[1], tx(tx_number), BLOCK + number))
    return LaunchBuys(BLOCK, AT_S, tuple(made))


def paid_by(funder: Address, *wallets: Address) -> dict[Address, KnownWallet]:
    """Wallets of one funder."""
    return {wallet: KnownWallet(funder=funder, funder_known=True, funded_tx=tx(0xFA)) for wallet in wallets}


def maker(source: Source = "launchpad", creator: Address | None = None) -> Maker:
    return Maker(DEPLOYER, source, () if creator is None else (creator,), tx(1))


def deeds(
    held: int, received: int = 0, sold: int = 0, moved: int = 0, pooled: int = 0, burned: int = 0
) -> HolderInputs:
    """A deployer who did so much of each, and has so much."""
    ledger = InsiderLedger(received, 0, sold, moved, pooled, burned)
    return find_holders(book({DEPLOYER: held}, ledgers={DEPLOYER: ledger}))


A, B, C, D, E = (address(number) for number in range(0xA1, 0xA6))
FUNDER, EXCHANGE = address(0xB1), address(0xB2)
