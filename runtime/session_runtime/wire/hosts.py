"""Which hosts are this machine alone; what that allows is decided where it is asked."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a name or address, without brackets and port, means this machine and no other."""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
