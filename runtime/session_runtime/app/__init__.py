"""The composition root: opens every part, hands them to each other, and closes them in order."""
