"""From a harness to a verdict: netlists, ABC, counterexamples, mutants."""
