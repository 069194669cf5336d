"""Random tokens for links and sessions: 256 bits, of which only the SHA-256 is stored."""

import hashlib
import secrets


def new_token() -> tuple[str, bytes]:
    """Return a token of 43 characters that may stand in a URL, and its hash."""
    token = secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> bytes:
    """Return the 32 bytes by which a token is stored and found."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
