"""Operations: boards of the market."""

from roundtrip.services.boards.chain_vitals import chain_vitals
from roundtrip.services.boards.graduating_soon import graduating_soon
from roundtrip.services.boards.moving_now import moving_now
from roundtrip.services.boards.signals import signals
from roundtrip.services.boards.winners import winners

from .operation import AnyOperation, service_operation

BOARDS: tuple[AnyOperation, ...] = (
    service_operation(
        moving_now,
        title="Moving now",
        description=(
            "Returns at most 20 tokens with the largest net inflow (buys minus sells, in eth) in the last "
            "ten minutes, each bought by at least three people, estimated by who funded their wallets. "
            "Tokens on the launchpad's curve or pool are listed unless a check found that they cannot be "
            "sold; others only after a simulated sell within the last hour. A listing is no advice: call "
            "check_token before you buy."
        ),
        shared_by=lambda params: "",
        from_replica=True,
    ),
    service_operation(
        graduating_soon,
        title="Graduating soon",
        description=(
            "Returns at most 20 launches whose bonding curve is closest to full, the fullest first, with "
            "buys and buyers of the last ten minutes and the deployer's record. Only tokens launched or "
            "traded within the last day are listed. A full curve does not prove that the token can be "
            "sold: check it."
        ),
        shared_by=lambda params: "",
        from_replica=True,
    ),
    service_operation(
        winners,
        title="Winners",
        description=(
            "Returns at most 50 wallets with the most profit (in eth) closed in the last 24 hours. A token "
            "counts when the wallet sold out of it, it is a day old, and at least 20 people bought it, "
            "estimated by who funded their wallets. Its deployer, the deployer's funder, and wallets that "
            "either of them funded are left out."
        ),
        shared_by=lambda params: "",
        from_replica=True,
    ),
    service_operation(
        signals,
        title="Signals",
        description=(
            "Returns at most 50 odd events of the last hour on launchpad launches, the newest first: "
            "insiders selling or moving tokens, liquidity leaving a pool, a serial deployer launching "
            "again, a large burn. Events are summed by wallet and token; tx is the largest transaction. No "
            "signal does not mean safe."
        ),
        shared_by=lambda params: "",
        from_replica=True,
    ),
    service_operation(
        chain_vitals,
        title="Chain vitals",
        description=(
            "Returns block time, gas price, eth in dollars, launches in the last hour, graduations in the "
            "last day, trades a minute, and how far the service is behind the chain."
        ),
        shared_by=lambda params: "",
    ),
)
