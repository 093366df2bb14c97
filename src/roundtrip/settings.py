"""The environment, read once. Only the command line reads it; everyone else is handed what they need."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every setting is an environment variable: ``ROUNDTRIP_`` and the name in capitals."""

    model_config = SettingsConfigDict(env_prefix="ROUNDTRIP_", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(8463, ge=0, le=65_535)
    network: Literal["devnet", "robinhood"] = "devnet"
    rpc_port: int = Field(8545, ge=0, le=65_535)
    rpc_url: str | None = None
    database_url: str | None = None
    var: Path = Path("var")
    anon_per_minute: int = Field(10, ge=1)
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    node_calls_per_day: int = Field(0, ge=0)
    node_timeout_ms: int = Field(5000, ge=1)
    poll_ms: int = Field(200, ge=10)
    most_checks_at_once: int = Field(128, ge=1)
