"""Hubs on the loopback: small servers that speak as the real ones do, and misbehave on demand."""
