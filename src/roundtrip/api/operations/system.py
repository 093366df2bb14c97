"""Operations: the service's own state."""

from roundtrip.services.system.status import Health, HealthParams, health

from .operation import AnyOperation, Operation

SYSTEM: tuple[AnyOperation, ...] = (
    Operation(
        name="health",
        title="Health",
        description=(
            "Returns whether the service keeps up with the chain, and what does not work. Never fails."
        ),
        params=HealthParams,
        answer=Health,
        handler=lambda call: health(call.ctx, call.params),
        path="/v1/health",
        on_mcp=False,
        counts="never",
        has_own_place=True,
    ),
)
