"""The inputs of a check: the block, the candidate venues, and what the index knows of the token."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs, ProofInputs, RecalledWallet
from roundtrip.venues.base import Contracts

from .candidates import Candidates

Role = Literal["token", "weth", "usdg"]


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """The inputs of a check. The same inputs and the same ``CheckContext`` send the same requests again.

    ``seed``: 32 bytes from which the wallets are drawn. ``candidates``: venues that may trade the token.
    ``indexed``: the index's facts about the token. ``deep``: also try calls by the owner and other
    accounts, and holders' sells. ``crowd``: also let drawn wallets trade; without it only the main wallet
    does. ``recalled``: wallets of earlier checks that trade, too, the newest first. ``indexed_number``: the
    newest indexed block; 0: none is known.
    """

    head: ChainHead
    token: Address
    seed: bytes
    candidates: Candidates
    deep: bool = False
    indexed: IndexInputs = NOTHING
    crowd: bool = True
    recalled: tuple[RecalledWallet, ...] = ()
    indexed_number: int = 0

    def for_proof(self) -> ProofInputs:
        """The inputs as a proof stores them; its evidence has the head and the token."""
        known = self.candidates
        seed = "0x" + self.seed.hex()
        return ProofInputs(
            seed, known.venues, known.others, self.deep, self.indexed, self.recalled, known.other_pools
        )


def role_of(token: Address, contracts: Contracts) -> Role:
    """The role of an address: a token to judge, or money."""
    roles: dict[Address, Role] = {contracts.weth: "weth", contracts.usdg: "usdg"}
    return roles.get(token, "token")
