"""A chain written by hand on which somebody wins: who, how much and who is left out is known."""

from dataclasses import dataclass, field

from roundtrip.domain.base.types import WEI_PER_ETH, Address
from support import told_blocks as told
from support.told_blocks import Chain, LoggedTransaction, sent
from unit.venues.network import address

DAY_S = 86_400
TOKEN, YOUNG = address(0x70CE << 8), address(0x70CE << 16)
DEPLOYER, HIS_FRIEND = address(0xDE), address(0xDF)
BUYERS = tuple(address(0xB000 + n) for n in range(20))
BEST, SECOND, LOSER = BUYERS[:3]
MILLION = 10**24


def curve(token: Address) -> Address:
    return address(int(token, 16) + 1)


def buys(who: Address, eth: float, token: Address = TOKEN) -> LoggedTransaction:
    """A million tokens for so much."""
    at = curve(token)
    return sent(told.bought(at, who, who, int(eth * WEI_PER_ETH), MILLION), sender=who, to=at)


def sells(who: Address, eth: float, token: Address = TOKEN) -> LoggedTransaction:
    """The million for so much."""
    at = curve(token)
    return sent(told.sold(at, who, who, int(eth * WEI_PER_ETH), MILLION), sender=who, to=at)


def pays(who: Address, whom: Address) -> LoggedTransaction:
    return sent(sender=who, to=whom, value_wei=1)


def launches(token: Address) -> LoggedTransaction:
    return sent(told.launched(token, curve(token), DEPLOYER), sender=DEPLOYER)


@dataclass(slots=True)
class Won:
    """Twenty buyers, each with a funder of his own a day before the launch; a day after it three of them, the
    deployer and a wallet that he paid sell out; and everybody sells out of a young token with a fortune."""

    chain: Chain = field(default_factory=Chain)

    def __post_init__(self) -> None:
        chain = self.chain
        chain.block(
            pays(DEPLOYER, HIS_FRIEND), *(pays(address(0xF000 + n), who) for n, who in enumerate(BUYERS))
        )
        chain.block(launches(TOKEN), after_s=DAY_S)
        chain.block(*(buys(who, 0.5) for who in (*BUYERS, DEPLOYER, HIS_FRIEND)))
        chain.block(launches(YOUNG), after_s=DAY_S)
        chain.block(sells(BEST, 3.0), buys(LOSER, 9.0, YOUNG))
        chain.block(sells(SECOND, 1.0), buys(SECOND, 1.0))
        chain.block(sells(SECOND, 0.75), sells(LOSER, 0.25), sells(LOSER, 99.0, YOUNG))
        chain.block(sells(DEPLOYER, 9.0), sells(HIS_FRIEND, 9.0))
