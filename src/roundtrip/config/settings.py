"""Settings from environment variables. Only the command line reads them, once, and passes them on.

``LIBRARIES`` and ``DOCUMENTS``: folders that pip does not install in a checkout, where ``make run`` has npm
install the libraries of the console's pages. A wheel contains both."""

import base64
import os
import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, SettingsConfigDict

_CHECKOUT = Path(__file__).resolve().parents[3]
_CARRIED = Path(__file__).resolve().parents[1] / "carried"
IS_WHEEL = _CARRIED.is_dir()
LIBRARIES = (_CARRIED if IS_WHEEL else _CHECKOUT) / "node_modules"
"""The folder of the pages' libraries."""
DOCUMENTS = (_CARRIED if IS_WHEEL else _CHECKOUT) / "docs"
"""The folder of the documentation, which the pages show."""


class NodeSetting(BaseModel):
    """One node of ``ROUNDTRIP_RPC_URLS``; 0 is no limit."""

    model_config = ConfigDict(
        alias_generator=to_camel, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    url: str = Field(pattern="^https?://")
    calls_per_second: float = Field(0, ge=0)
    calls_per_day: int = Field(0, ge=0)
    calls_a_request: int = Field(0, ge=0)


LoopbackTarget = Annotated[str, Field(pattern="^(127\\.[0-9.]+|localhost|\\[::1\\]):[0-9]{1,5}$")]
"""A host and port, in the form that ``channels.targets.parse_target`` allows."""
_KEY_BYTES = 32


def _default_var() -> Path:
    """``var`` in the working directory; for a wheel, which is started from anywhere, a user data folder."""
    if not IS_WHEEL:
        return Path("var")
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "roundtrip"


class Settings(BaseSettings):
    """Every setting is an environment variable: ``ROUNDTRIP_`` and the name in capitals.
    ``docs/operations.md`` says what each means."""

    # A node's url may contain a key, so errors do not show the setting's value.
    model_config = SettingsConfigDict(env_prefix="ROUNDTRIP_", frozen=True, hide_input_in_errors=True)

    host: str = "127.0.0.1"
    port: int = Field(8463, ge=0, le=65_535)
    network: Literal["devnet", "robinhood"] = "devnet"
    rpc_port: int = Field(8545, ge=0, le=65_535)
    rpc_url: str | None = None
    rpc_urls: tuple[NodeSetting, ...] = ()
    ws_url: str | None = Field(None, pattern="^wss?://")
    database_url: str | None = None
    read_database_url: str | None = Field(None, pattern="^postgres(ql)?://")
    redis_url: str | None = Field(None, pattern="^(rediss?|unix)://")
    var: Path = Field(default_factory=_default_var)
    public_url: str | None = Field(None, pattern="^https?://[^/?#\\s]+$")
    anon_per_minute: int = Field(10, ge=1)
    views_per_minute: int = Field(120, ge=1)
    views_per_day: int = Field(20_000, ge=1, le=10**9)
    key_per_minute: int = Field(60, ge=1)
    key_per_day: int = Field(20_000, ge=1, le=10**9)
    holder_per_minute: int = Field(300, ge=1)
    holder_per_day: int = Field(200_000, ge=1, le=10**9)
    holder_min: int = Field(100_000, ge=1)
    own_token: str | None = Field(None, pattern="^0x[0-9a-fA-F]{40}$")
    pay_to: str | None = Field(None, pattern="^0x[0-9a-fA-F]{40}$")
    calls_per_usdg: int = Field(1000, ge=1, le=10**6)
    keyed_per_address: int = Field(600, ge=1)
    requests_per_address: int = Field(1_200, ge=1)
    accounts_per_address: int = Field(20, ge=1)
    limit_loopback: bool = False
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    node_calls_per_day: int = Field(0, ge=0)
    holders_calls_per_day: int = Field(0, ge=0)
    node_timeout_ms: int = Field(5000, ge=1)
    check_places: int = Field(16, ge=2)
    call_places: int = Field(2, ge=2)
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(0, ge=0, le=65_535)
    otlp_url: str | None = Field(None, pattern="^https?://[^?#\\s]+$")
    poll_ms: int = Field(200, ge=10)
    idle_poll_ms: int = Field(5000, ge=10, le=10_000)
    sync_every_ms: int | None = Field(None, ge=0, le=10_000)
    sync_from: int | None = Field(None, ge=0)
    most_checks_at_once: int = Field(24, ge=1)
    most_connections: int = Field(2_000, ge=1)
    secret_key: str | None = None
    telegram_token: str | None = Field(None, pattern="^[0-9]{1,20}:[A-Za-z0-9_-]{1,100}$")
    telegram_url: str = Field("https://api.telegram.org", pattern="^https?://[^/?#\\s]+$")
    webhook_loopback: tuple[LoopbackTarget, ...] = ()

    def read_database_urls(self) -> tuple[str, ...]:
        """The replicas' urls. A comma within a url separates its hosts."""
        if self.read_database_url is None:
            return ()
        return tuple(re.split(r"\s*,\s*(?=postgres(?:ql)?://)", self.read_database_url))

    @field_validator("secret_key")
    @classmethod
    def _check_secret_key(cls, value: str | None) -> str | None:
        """Raises ValueError: the key is not 32 bytes in base64."""
        if value is not None:
            try:
                length = len(base64.b64decode(value, validate=True))
            except ValueError:
                length = 0
            if length != _KEY_BYTES:
                raise ValueError("it must be 32 bytes in base64")
        return value

    @field_validator("rpc_urls", mode="before")
    @classmethod
    def _wrap_plain_urls(cls, value: Any) -> Any:
        """A plain url becomes a node without limits."""
        if not isinstance(value, list | tuple):
            return value
        return tuple({"url": node} if isinstance(node, str) else node for node in value)

    @model_validator(mode="after")
    def _check_one_url_setting(self) -> "Settings":
        if self.rpc_url is not None and self.rpc_urls:
            raise ValueError("set ROUNDTRIP_RPC_URL or ROUNDTRIP_RPC_URLS, not both")
        return self
