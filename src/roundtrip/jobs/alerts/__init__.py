"""From happenings to alerts: subscriptions, drafts, the loop."""
