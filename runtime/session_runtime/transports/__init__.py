"""The doors through which asks come in; blind to each other."""
