"""SCRAM-SHA-256 (RFC 5802, RFC 7677): the password never crosses the wire and is never stored.

    client                                         server
      n,,n=,r=<cnonce>                  ──►                            client-first
                                        ◄──  r=<cnonce><snonce>,s=<salt>,i=<iterations>
      c=biws,r=<nonces>,p=<proof>       ──►                            client-final
                                        ◄──  v=<server signature>

    SaltedPassword = PBKDF2(password, salt, i)     ClientKey = HMAC(SaltedPassword, "Client Key")
    StoredKey      = SHA256(ClientKey)             ServerKey = HMAC(SaltedPassword, "Server Key")
    proof          = ClientKey XOR HMAC(StoredKey, AuthMessage)

What is stored is a verifier in PostgreSQL's form, ``SCRAM-SHA-256$<i>:<salt>$<StoredKey>:<ServerKey>``.
A user without one is played to the end against a mock verifier, whose salt depends on the name and a server
secret only, so that neither the messages nor their repetition tell whether the name exists. Secrets are
compared in constant time. The user name inside SCRAM is ignored: the start-up packet's counts, as in PostgreSQL.

Over TLS, SCRAM-SHA-256-PLUS is offered, too: the client's header is then ``p=tls-server-end-point,,``, and
``c=`` repeats it together with the hash of the certificate that the client has seen (``end_point.py``), so
that the proof covers it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from struct import Struct
from typing import Final

from pgwire.auth.exchange import AuthenticationFailed, RandomBytes
from pgwire.auth.saslprep import saslprep
from pgwire.errors import RemoteProtocolError
from pgwire.messages import (
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    BackendMessage,
)

MECHANISM: Final = "SCRAM-SHA-256"
PLUS: Final = "SCRAM-SHA-256-PLUS"
BINDING: Final = "tls-server-end-point"
DEFAULT_ITERATIONS: Final = 4096
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 18
KEY_BYTES: Final = 32
MAX_ITERATIONS: Final = 10_000_000  # more would only be a way to keep a client busy

_INT32 = Struct(">i")
_COUNT: Final = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]{1,19}")  # as strtol reads a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """What the server keeps of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        """Return PostgreSQL's ``pg_authid.rolpassword`` form."""
        salt, stored, server = map(_b64, (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unb64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def salted_password(password: str, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 over the prepared password; takes a millisecond per 4,096 iterations."""
    return hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)


def make_verifier(password: str, salt: bytes, iterations: int = DEFAULT_ITERATIONS) -> Verifier:
    """Return the verifier of ``password``; ``salt`` must be fresh random bytes (``SALT_BYTES``)."""
    salted = salted_password(password, salt, iterations)
    return Verifier(
        iterations=iterations,
        salt=salt,
        stored_key=hashlib.sha256(_hmac(salted, b"Client Key")).digest(),
        server_key=_hmac(salted, b"Server Key"),
    )


def parse_verifier(text: str) -> Verifier | None:
    """Read a verifier in PostgreSQL's form; None if ``text`` is not one. Not every one can be used (``is_usable``)."""
    try:
        mechanism, parameters, keys = text.split("$")
        iterations, salt = parameters.split(":")
        stored, server = keys.split(":")
        if mechanism != MECHANISM or not _COUNT.fullmatch(iterations):
            return None
        verifier = Verifier(
            iterations=int(iterations),
            salt=_unb64(salt),
            stored_key=_unb64(stored),
            server_key=_unb64(server),
        )
    except (ValueError, binascii.Error, UnicodeEncodeError):
        return None
    sizes = (len(verifier.stored_key), len(verifier.server_key))
    return verifier if sizes == (KEY_BYTES, KEY_BYTES) else None


def is_usable(verifier: Verifier) -> bool:
    """Tell whether clients can be asked for a password with this verifier."""
    return bool(verifier.salt) and 0 < verifier.iterations <= MAX_ITERATIONS


def check_password(password: str, verifier: Verifier) -> bool:
    """Return whether ``password`` has this verifier, in constant time."""
    made = make_verifier(password, verifier.salt, verifier.iterations)
    return hmac.compare_digest(made.stored_key, verifier.stored_key)


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """Return a verifier no password has, always the same for the same user and secret."""
    seed = _hmac(secret, user.encode("utf-8", "replace"))
    return Verifier(
        iterations=DEFAULT_ITERATIONS,
        salt=_hmac(seed, b"salt")[:SALT_BYTES],
        stored_key=_hmac(seed, b"stored"),
        server_key=_hmac(seed, b"server"),
    )


def _malformed(detail: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"malformed SCRAM message ({detail})", fatal=True)


def _attributes(text: str) -> list[tuple[str, str]]:
    """Split ``a=x,b=y`` into pairs, in order."""
    pairs = []
    for item in text.split(","):
        if len(item) < 2 or item[1] != "=" or not item[0].isalpha():
            raise _malformed("attribute expected")
        pairs.append((item[0], item[2:]))
    return pairs


def _printable(nonce: str) -> bool:
    return bool(nonce) and all("!" <= c <= "~" and c != "," for c in nonce)


def _decode(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _malformed("not UTF-8") from None
    if "\0" in text:
        raise _malformed("length does not match input")
    return text


class ScramExchange:
    """The server's half.

    Attributes:
        done: the client has proved that it knows the password.
    """

    def __init__(
        self,
        verifier: Verifier | None,
        mock: Verifier,
        random_bytes: RandomBytes,
        end_point: bytes = b"",
    ) -> None:
        """Prepare to compare with ``verifier``; None plays against ``mock`` and never succeeds.

        ``end_point``: what the connection's TLS is bound to; empty, channel binding is not offered.
        """
        self.done = False
        self._end_point = end_point
        self._plus = False
        self._known = verifier is not None
        self._verifier = verifier or mock
        self._nonce = _b64(random_bytes(NONCE_BYTES))
        self._gs2 = ""
        self._client_first_bare: str | None = None
        self._server_first = ""

    def start(self) -> list[BackendMessage]:
        """Offer what there is, the better first."""
        return [AuthenticationSASL((PLUS, MECHANISM) if self._end_point else (MECHANISM,))]

    def step(self, answer: bytes) -> list[BackendMessage]:
        """Take client-first, then client-final."""
        if self._client_first_bare is None:
            mechanism, text = _initial_response(answer)
            if mechanism != MECHANISM and not (mechanism == PLUS and self._end_point):
                raise RemoteProtocolError(
                    "client selected an invalid SASL authentication mechanism", fatal=True
                )
            self._plus = mechanism == PLUS
            return [AuthenticationSASLContinue(self._first(text).encode())]
        return [AuthenticationSASLFinal(self._final(_decode(answer)).encode())]

    def _first(self, text: str) -> str:
        flag, _, rest = text.partition(",")
        authzid, comma, bare = rest.partition(",")
        if not comma:
            raise _malformed("comma expected")
        self._check_binding_flag(flag)
        if authzid:
            raise RemoteProtocolError(
                "client uses authorization identity, but it is not supported", sqlstate="0A000", fatal=True
            )
        if bare.startswith("m="):
            raise RemoteProtocolError(
                "client requires an unsupported SCRAM extension", sqlstate="0A000", fatal=True
            )
        pairs = _attributes(bare)
        if len(pairs) < 2 or pairs[0][0] != "n" or pairs[1][0] != "r":
            raise _malformed("attribute expected")
        nonce = pairs[1][1]
        if not _printable(nonce):
            raise RemoteProtocolError("non-printable characters in SCRAM nonce", fatal=True)
        self._gs2 = f"{flag},,"
        self._client_first_bare = bare
        self._nonce = nonce + self._nonce
        verifier = self._verifier
        self._server_first = f"r={self._nonce},s={_b64(verifier.salt)},i={verifier.iterations}"
        return self._server_first

    def _check_binding_flag(self, flag: str) -> None:
        if flag.startswith("p="):
            if not self._plus:
                raise RemoteProtocolError(
                    "client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes "
                    "channel binding data",
                    fatal=True,
                )
            if flag != f"p={BINDING}":
                raise RemoteProtocolError(f'unsupported SCRAM channel-binding type "{flag[2:]}"', fatal=True)
        elif flag not in ("n", "y"):
            raise _malformed("unexpected channel-binding flag")
        elif self._plus:
            raise RemoteProtocolError(
                "malformed SCRAM message (the client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not "
                "include channel binding data)",
                fatal=True,
            )
        elif flag == "y" and self._end_point:
            # the client would have bound itself: somebody has cut the better mechanism out of what was offered
            raise RemoteProtocolError("SCRAM channel binding negotiation error", sqlstate="28000", fatal=True)

    def _final(self, text: str) -> str:
        without_proof, comma, proof_text = text.rpartition(",p=")
        if not comma:
            raise _malformed("proof expected")
        pairs = _attributes(without_proof)
        if len(pairs) < 2 or pairs[0][0] != "c" or pairs[1][0] != "r":
            raise _malformed("attribute expected")
        bound = self._gs2.encode() + (self._end_point if self._plus else b"")
        if not hmac.compare_digest(pairs[0][1].encode(), _b64(bound).encode()):
            if self._plus:
                raise RemoteProtocolError("SCRAM channel binding check failed", sqlstate="28000", fatal=True)
            raise RemoteProtocolError(
                "unexpected SCRAM channel-binding attribute in client-final-message", fatal=True
            )
        if not hmac.compare_digest(pairs[1][1].encode(), self._nonce.encode()):
            raise RemoteProtocolError("invalid SCRAM response (nonce does not match)", fatal=True)
        try:
            proof = _unb64(proof_text)
        except (ValueError, binascii.Error):
            raise _malformed("malformed proof in client-final-message") from None
        if len(proof) != KEY_BYTES:
            raise _malformed("malformed proof in client-final-message")
        verifier = self._verifier
        auth_message = f"{self._client_first_bare},{self._server_first},{without_proof}".encode()
        client_key = _xor(proof, _hmac(verifier.stored_key, auth_message))
        proved = hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key)
        # Both are evaluated before deciding, so that a mock takes as long as a real verifier.
        if not (proved & self._known):
            raise AuthenticationFailed
        self.done = True
        return "v=" + _b64(_hmac(verifier.server_key, auth_message))


def _initial_response(answer: bytes) -> tuple[str, str]:
    """Return mechanism and client-first out of SASLInitialResponse: mechanism, int32 length, data."""
    mechanism, nul, rest = answer.partition(b"\0")
    if not nul or len(rest) < 4:
        raise RemoteProtocolError("insufficient data left in message", fatal=True)
    length = _INT32.unpack_from(rest)[0]
    data = rest[4:]
    if length != len(data):
        raise RemoteProtocolError("invalid message format", fatal=True)
    return mechanism.decode("ascii", "replace"), _decode(data)


class ScramClient:
    """The client's half, for paired tests and tools. Payloads are those of PasswordMessage."""

    def __init__(self, password: str, random_bytes: RandomBytes, end_point: bytes = b"") -> None:
        """Prepare to prove knowledge of ``password``, over TLS bound to ``end_point`` if there is one."""
        self._password = password
        self._mechanism = PLUS if end_point else MECHANISM
        self._gs2 = f"p={BINDING},," if end_point else "n,,"
        self._bound = _b64(self._gs2.encode() + end_point)
        self._nonce = _b64(random_bytes(NONCE_BYTES))
        self._first_bare = f"n=,r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return SASLInitialResponse."""
        data = f"{self._gs2}{self._first_bare}".encode()
        return self._mechanism.encode() + b"\0" + _INT32.pack(len(data)) + data

    def final(self, server_first: bytes) -> bytes:
        """Answer the server's challenge with the proof."""
        text = server_first.decode()
        fields = dict(_attributes(text))
        if not fields["r"].startswith(self._nonce) or fields["r"] == self._nonce:
            raise RemoteProtocolError("server nonce does not extend ours", fatal=True)
        salted = salted_password(self._password, _unb64(fields["s"]), int(fields["i"]))
        client_key = _hmac(salted, b"Client Key")
        without_proof = f"c={self._bound},r={fields['r']}"
        auth_message = f"{self._first_bare},{text},{without_proof}".encode()
        signature = _hmac(hashlib.sha256(client_key).digest(), auth_message)
        self._server_signature = _hmac(_hmac(salted, b"Server Key"), auth_message)
        return f"{without_proof},p={_b64(_xor(client_key, signature))}".encode()

    def verify(self, server_final: bytes) -> bool:
        """Return whether the server proved that it knows the verifier."""
        return hmac.compare_digest(server_final, b"v=" + base64.b64encode(self._server_signature))
