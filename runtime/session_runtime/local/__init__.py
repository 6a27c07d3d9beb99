"""Tools from folders of handlers: found, imported at their first call, run."""
