"""Sends results to configured addresses: signed, in the background, a bounded number of times (SEC-3)."""
