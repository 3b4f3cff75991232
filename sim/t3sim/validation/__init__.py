"""Models and hardware held against references; speed held against targets."""
