"""The co-simulator of OpenT3: workloads, machines, policies, behavioural models, results and the command line."""

__version__ = "1.0.0rc1"
