"""Which loopback addresses this machine has: tests run with either alone."""
import socket


def has_address(address):
    """Whether this machine has it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.create_server((address, 0), family=family).close()
        return True
    except OSError:
        return False


# A loopback address that this machine has, for what must be one address; "localhost" is both, where it has both.
LOOPBACK = "127.0.0.1" if has_address("127.0.0.1") else "::1"
LOOPBACK_FAMILY = socket.AF_INET6 if ":" in LOOPBACK else socket.AF_INET
LOOPBACK_IN_URL = f"[{LOOPBACK}]" if ":" in LOOPBACK else LOOPBACK
