"""graphret."""
