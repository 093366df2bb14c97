"""What every request carries: caller, request id, idempotency key, minimum block."""
