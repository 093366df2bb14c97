"""Types of the hex fields in a node's JSON, checked when it is decoded."""

from typing import Annotated

import msgspec

Quantity = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{1,64}\Z")]
Word = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]
HexAddress = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]
Bloom = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{512}\Z")]
HexBytes = Annotated[str, msgspec.Meta(pattern=r"\A0x([0-9a-fA-F]{2})*\Z")]
