"""Names and marks that people gave wallets, as answers show them."""

from typing import Annotated

import msgspec

from roundtrip.domain.community.marks import Mark
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.strangers_text import WRITTEN


class NameSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A name that people gave a wallet."""

    name: Annotated[str, says(f"As most of them wrote it. {WRITTEN}")]
    people: Annotated[int, says("People who gave it.")]


class MarkSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A mark that people gave a wallet."""

    mark: Annotated[Mark, says("The mark.")]
    people: Annotated[int, says("People who gave it.")]


def scam_text(subject: str, people: int) -> str:
    """``subject``: the wallet in a sentence. ``people``: how many mark it as a scam."""
    return f"{subject} is marked as a scam by {people:,} people: that is their word, not proof."
