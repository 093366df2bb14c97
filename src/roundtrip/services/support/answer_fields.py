"""What the fields of answers and parameters share."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

AddressText = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$")]


def says(description: str) -> msgspec.Meta:
    """The description of a field or a parameter in the published schemas."""
    return msgspec.Meta(description=description)


def at(now_s: float) -> datetime:
    """Seconds since 1970 as a UTC time, to the millisecond."""
    return datetime.fromtimestamp(int(now_s * 1000) / 1000, UTC)
