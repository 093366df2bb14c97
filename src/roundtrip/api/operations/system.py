"""The service itself."""

from roundtrip.services.system.health import Health, HealthParams, health

from .operation import Operation

SYSTEM: tuple[Operation, ...] = (
    Operation(
        name="health",
        title="Health",
        description="Whether the service keeps up with the chain.",
        params=HealthParams,
        answer=Health,
        handler=health,
        path="/v1/health",
        on_mcp=False,
        counts="never",
    ),
)
