"""What moves, who wins, what is odd."""

from roundtrip.api.operation import Operation
from roundtrip.services.graduating_soon import GraduatingSoon, graduating_soon
from roundtrip.services.index_answer import Nothing
from roundtrip.services.signals import Signals, signals

BOARDS: tuple[Operation, ...] = (
    Operation(
        name="graduating_soon",
        title="Graduating soon",
        description=(
            "The launches that are closest to filling their bonding curve, at most 20, the fullest first: "
            "how full, buys and buyers of the last ten minutes, and how the deployer's launches went. "
            "Only what was launched or traded within the last day; shares are in hundredths of a percent. "
            "A full curve says nothing of whether the token can be sold: check it. "
            "Read from the index, shared for 15 seconds. Fails with rate_limited or busy."
        ),
        params=Nothing,
        answer=GraduatingSoon,
        handler=graduating_soon,
        shared_by=lambda params: "",
    ),
    Operation(
        name="signals",
        title="Signals",
        description=(
            "Odd things within the last hour on launchpad launches, at most 50, the newest first: those "
            "behind a launch selling or moving its token, liquidity leaving a pool, a serial launcher at it "
            "again, a large burn. "
            "Each is summed a wallet and token and has its largest transaction as evidence. "
            "Shares are in hundredths of a percent, eth is a number of eth; silence is no sign of safety. "
            "Read from the index, shared for 15 seconds. Fails with rate_limited or busy."
        ),
        params=Nothing,
        answer=Signals,
        handler=signals,
        shared_by=lambda params: "",
    ),
)
