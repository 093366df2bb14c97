"""Operations: boards of the market."""

from roundtrip.services.boards.chain_vitals import ChainVitals, chain_vitals
from roundtrip.services.boards.graduating_soon import GraduatingSoon, graduating_soon
from roundtrip.services.boards.moving_now import MovingNow, moving_now
from roundtrip.services.boards.signals import Signals, signals
from roundtrip.services.boards.winners import Winners, winners
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

BOARDS: tuple[AnyOperation, ...] = (
    Operation(
        name="moving_now",
        title="What moves now",
        description=(
            "Tokens with most money and wallets coming in over the last ten minutes: at most 20, by buys "
            "less sells in eth, bought by at least three different people, as far as can be told by who "
            "paid for their wallets: what one wallet first sent eth counts once. Tokens on the "
            "launchpad's own curve or pool are always listed unless a check found that they cannot be "
            "sold; any other only once a simulated sell went through within the last hour, and its age "
            "stands beside it. A listing is no advice: call check_token before a buy, and treat level "
            "unknown as a no. Answers are shared for 15 seconds."
        ),
        params=Nothing,
        answer=MovingNow,
        handler=lambda call: moving_now(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="graduating_soon",
        title="Graduating soon",
        description=(
            "The launches that are closest to filling their bonding curve, at most 20, the fullest first: "
            "how full, buys and buyers of the last ten minutes, and how the deployer's launches went. "
            "Only what was launched or traded within the last day; shares are in hundredths of a percent. "
            "A full curve says nothing of whether the token can be sold: check it. Read from the index, "
            "shared for 15 seconds."
        ),
        params=Nothing,
        answer=GraduatingSoon,
        handler=lambda call: graduating_soon(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="winners",
        title="Who wins",
        description=(
            "The wallets that closed the most profit in the last 24 hours, at most 50, with how often "
            "they won and their best trade. A token counts once a wallet sold out of it, it is a day old, "
            "and at least 20 different people bought it, as far as can be told by who paid for their "
            "wallets. Left out are its deployer, who first sent him eth, and whom either of them was the "
            "first to send eth. Amounts are in eth; ageS says how many seconds old the count is; answers "
            "are shared for 15 seconds."
        ),
        params=Nothing,
        answer=Winners,
        handler=lambda call: winners(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="signals",
        title="Signals",
        description=(
            "Odd things within the last hour on launchpad launches, at most 50, the newest first: those "
            "behind a launch selling or moving its token, liquidity leaving a pool, a serial launcher at "
            "it again, a large burn. Each is summed a wallet and token and has its largest transaction as "
            "evidence. Shares are in hundredths of a percent, eth is a number of eth; silence is no sign "
            "of safety. Read from the index, shared for 15 seconds."
        ),
        params=Nothing,
        answer=Signals,
        handler=lambda call: signals(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="chain_vitals",
        title="Vitals of the chain",
        description=(
            "Block time in milliseconds, the price of gas in wei and gwei, eth in dollars, launches in "
            "the last hour, graduations in the last day, trades a minute, and how many blocks and seconds "
            "the service is behind the chain. Null means that it is not known just now, never zero. "
            "Answers are shared for 15 seconds."
        ),
        params=Nothing,
        answer=ChainVitals,
        handler=lambda call: chain_vitals(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
)
