"""The co-simulator of OpenT3: workloads, machines, policies, behavioural models, results and the command line."""

__version__ = "0.1.0"
