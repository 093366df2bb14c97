"""What the fields of answers and parameters share."""

import msgspec


def says(description: str) -> msgspec.Meta:
    """The description of a field or a parameter in the published schemas."""
    return msgspec.Meta(description=description)
