"""What properties compare the hardware with: abstract and naive models, rules, assumptions."""
