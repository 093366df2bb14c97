"""The index of the chain: blocks, launches, pools, trades, positions."""
