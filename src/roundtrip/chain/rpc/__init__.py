"""JSON-RPC: the client, the pool of nodes, dialects, budgets."""
