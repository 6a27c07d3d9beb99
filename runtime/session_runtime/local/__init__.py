"""Tools from folders, entries and plug-ins: found, imported at their first call, run."""
