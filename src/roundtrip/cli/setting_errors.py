"""What is wrong with a setting. Imported only when something is, as the library of settings is slow."""

import re

from pydantic import ValidationError
from pydantic_settings import SettingsError


def describe_setting_error(error: Exception) -> str | None:
    """The error as one line; None: it is not about a setting. A setting's value is not shown: it may be a
    key."""
    if isinstance(error, ValidationError):
        problems = [
            (".".join(map(str, detail["loc"][:1])), detail["msg"].removeprefix("Value error, "))
            for detail in error.errors(include_input=False)
        ]
        return "; ".join(
            f"{name} (ROUNDTRIP_{name.upper()}): {message}" if name else message for name, message in problems
        )
    if not isinstance(error, SettingsError):
        return None
    field = re.search(r'field "(\w+)"', str(error))
    return f"ROUNDTRIP_{field[1].upper()} must be valid JSON" if field else str(error)
