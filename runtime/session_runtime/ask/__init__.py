"""The one way through an ask: admit, pin, filter, prefetch, expose, loop, answer."""
