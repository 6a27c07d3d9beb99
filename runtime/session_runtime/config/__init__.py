"""Configuration: where values come from, how they are checked, and what each of them is."""
