"""How right the verdicts were."""
