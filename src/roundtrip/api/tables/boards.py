"""What moves, who wins, what is odd."""

from roundtrip.api.operation import Operation
from roundtrip.services.index_answer import Nothing
from roundtrip.services.winners import Winners, winners

BOARDS: tuple[Operation, ...] = (
    Operation(
        name="winners",
        title="Who wins",
        description=(
            "The wallets that closed the most profit in the last 24 hours, at most 50, with how often they "
            "won and their best trade. "
            "Only tokens that a wallet sold out of count; tokens younger than a day or with fewer than 20 "
            "buyers of separate funding, and wallets close to a token's deployer, are left out. "
            "Amounts are in eth; ageS says how many seconds old the count is; answers are shared for 15 "
            "seconds. "
            "Fails with rate_limited or busy."
        ),
        params=Nothing,
        answer=Winners,
        handler=winners,
        shared_by=lambda params: "",
    ),
)
