"""What is computed from simulations and machines: operators, whole models, tables."""
