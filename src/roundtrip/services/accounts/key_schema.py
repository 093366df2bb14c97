"""The parameters and the answers of getting a key."""

import re
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.accounts import sign_in
from roundtrip.domain.accounts.account import MOST_AGENT_NAME, Account, CallAllowance, agent_name
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, parse_address

MOST_LABEL = 64
MOST_SIGNATURE_BYTES = 8192
"""Of a contract wallet with many owners; a wallet's own has 65."""
AGENT_NAME_PATTERN = "^ *[A-Za-z0-9][A-Za-z0-9 ]*$"
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_CLAIM_DIGITS = 2 * sign_in.CLAIM_BYTES
_CLAIM = re.compile(rf"[0-9a-f]{{{_CLAIM_DIGITS}}}")


class KeyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose key, and the signature that it costs."""

    address: Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The wallet's address.")]
    signature: Annotated[
        str,
        msgspec.Meta(
            pattern="^0x([0-9a-fA-F]{2})*$",
            max_length=2 + 2 * MOST_SIGNATURE_BYTES,
            description="Of the message of POST /v1/keys/nonce, by the wallet's own key (personal_sign); or "
            "of its claimMessage, sent with claim: also what a contract wallet accepts (EIP-1271).",
        ),
    ]
    label: Annotated[
        str,
        # Counted once what is invisible is taken out.
        msgspec.Meta(
            extra_json_schema={"maxLength": MOST_LABEL}, description="To tell this key from others."
        ),
    ] = ""
    agent: Annotated[
        bool, msgspec.Meta(description="true: the account is a program, and is tagged so on the league.")
    ] = False
    name: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=AGENT_NAME_PATTERN,
                max_length=MOST_AGENT_NAME,
                description="What the agent is called: Latin letters, digits and spaces. Counts with agent "
                "true only.",
            ),
        ]
        | None
    ) = None
    claim: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=f"^[0-9a-f]{{{_CLAIM_DIGITS}}}$",
                description="The claim that came with the claimMessage that was signed. A wallet that is a "
                "contract has to send it; a wallet's own key needs none for message.",
            ),
        ]
        | None
    ) = None

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_input)."""
        try:
            return parse_address(self.address)
        except ValueError:
            raise CallerFault("bad_input", "address is 0x and 40 hex digits.") from None

    def signature_bytes(self) -> bytes:
        """The signature. Raises CallerFault (bad_input)."""
        if not _HEX.fullmatch(self.signature):
            raise CallerFault("bad_input", "signature is 0x and whole bytes in hex.")
        return bytes.fromhex(self.signature[2:])

    def claim_bytes(self) -> bytes | None:
        """None: none was sent. Raises CallerFault (bad_input)."""
        if self.claim is None:
            return None
        if not _CLAIM.fullmatch(self.claim):
            raise CallerFault("bad_input", f"claim is {_CLAIM_DIGITS} hex digits, as it was given.")
        return bytes.fromhex(self.claim)

    def cleaned_label(self) -> str:
        """As it is kept; empty where there is none. Raises CallerFault (bad_input)."""
        cleaned = names.clean(self.label, len(self.label))
        if len(cleaned) > MOST_LABEL:
            raise CallerFault("bad_input", f"label has more than {MOST_LABEL} characters.")
        return cleaned

    def agents_name(self) -> str | None:
        """None: none was given. Raises CallerFault (bad_input)."""
        try:
            return None if self.name is None else agent_name(self.name)
        except ValueError as error:
            raise CallerFault("bad_input", f"{error}.") from None


PERSONAL_SIGN: Literal["personal_sign"] = "personal_sign"


class TextToSign(msgspec.Struct, frozen=True, rename="camel"):
    """What to sign, and how."""

    message: Annotated[
        str,
        msgspec.Meta(
            description="To be signed as it is, every line break of it; good for ten minutes from its "
            "Issued At on. Asking again within that minute gives the same. Only a wallet's own key "
            "can sign it."
        ),
    ]
    sign: Annotated[Literal["personal_sign"], msgspec.Meta(description="The wallet's method that signs it.")]
    claim: Annotated[
        str,
        msgspec.Meta(description="Random, and known to you alone: keep it secret until the key is yours."),
    ]
    claim_message: Annotated[
        str,
        msgspec.Meta(
            description="For a wallet that is a contract (EIP-1271): signed instead of message, and sent "
            "with claim. Any other wallet may sign it, too. Every asking gives another one; each is good "
            "for as long as message is."
        ),
    ]


class MiteNamed(msgspec.Struct, frozen=True):
    """An account."""

    designation: Annotated[str, msgspec.Meta(description="What it is called in public.")]
    wallet: str
    agent: Annotated[bool, msgspec.Meta(description="Whether it says that it is a program.")]


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """How often it may ask, all its keys together."""

    per_minute: int
    per_day: Annotated[int, msgspec.Meta(description="A day of UTC.")]


class KeyMade(msgspec.Struct, frozen=True, rename="camel"):
    """A new key."""

    key: Annotated[str, msgspec.Meta(description="Keep it: it is told in this answer and never again.")]
    shown_once: Literal[True]
    mite: MiteNamed
    limits: Limits


def present_account(account: Account) -> MiteNamed:
    """As answers name it."""
    return MiteNamed(account.designation, account.wallet, account.is_agent)


def limits(allowance: CallAllowance) -> Limits:
    """As answers tell them."""
    return Limits(allowance.per_minute, allowance.per_day)
