"""SCRAM-SHA-256: the RFC's example, PostgreSQL's verifier, and everything that must fail."""

from __future__ import annotations

import base64
import secrets
import struct
import sys
from types import FrameType
from typing import Any

import pytest

from pgwire.auth.exchange import AuthenticationFailed
from pgwire.auth.saslprep import saslprep
from pgwire.auth.scram import (
    SALT_BYTES,
    ScramClient,
    ScramExchange,
    Verifier,
    check_password,
    is_usable,
    make_verifier,
    mock_verifier,
    parse_verifier,
)
from pgwire.errors import RemoteProtocolError
from pgwire.messages import AuthenticationSASL, AuthenticationSASLContinue, AuthenticationSASLFinal

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = make_verifier("pencil", SALT, 4096)
MOCK = mock_verifier("user", b"secret")
# Made by PostgreSQL 15: CREATE ROLE r PASSWORD 'IX ⅨⅣ­x' (non-ASCII, needs SASLprep).
POSTGRES_VERIFIER = (
    "SCRAM-SHA-256$4096:YNJSBMJ2AoiWB9p9P4cQ+A==$"
    "Mxe+nGlZJm2xcS90eIf1KFWZplqP7hAn3ys1C5VQfdg=:RT9RNEOOvEpQCGqgRgw15hHWTMCgl/oAsEnl6km+AFw="
)


def initial(text: str, mechanism: bytes = b"SCRAM-SHA-256") -> bytes:
    data = text.encode()
    return mechanism + b"\0" + struct.pack(">i", len(data)) + data


def play(password: str, exchange: ScramExchange, end_point: bytes = b"") -> bool:
    """Play one exchange; whether the server was convincing."""
    client = ScramClient(password, secrets.token_bytes, end_point)
    [challenge] = exchange.step(client.first())
    assert isinstance(challenge, AuthenticationSASLContinue)
    [final] = exchange.step(client.final(challenge.data))
    assert isinstance(final, AuthenticationSASLFinal)
    return client.verify(final.data)


def test_example_of_rfc_7677() -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes)
    exchange._nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    [challenge] = exchange.step(initial("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
    assert challenge == AuthenticationSASLContinue(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    [final] = exchange.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == AuthenticationSASLFinal(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert exchange.done


def test_right_password_convinces_both_sides() -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes)
    assert play("pencil", exchange)
    assert exchange.done


def test_wrong_password_fails() -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes)
    with pytest.raises(AuthenticationFailed):
        play("pen", exchange)
    assert not exchange.done


def test_channel_binding_ties_the_proof_to_the_certificate() -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes, b"ours")
    assert exchange.start() == [AuthenticationSASL(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"))]
    assert play("pencil", exchange, b"ours")
    assert exchange.done
    between = ScramExchange(PENCIL, MOCK, secrets.token_bytes, b"ours")
    with pytest.raises(RemoteProtocolError, match="channel binding check failed") as caught:
        play("pencil", between, b"theirs")
    assert (caught.value.sqlstate, caught.value.fatal, between.done) == ("28000", True, False)
    assert play("pencil", ScramExchange(PENCIL, MOCK, secrets.token_bytes, b"ours")), "a client need not bind"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (initial("n,,n=u,r=abc", b"SCRAM-SHA-256-PLUS"), "does not include channel binding data"),
        (initial("y,,n=u,r=abc", b"SCRAM-SHA-256-PLUS"), "does not include channel binding data"),
        (initial("p=tls-unique,,n=u,r=abc", b"SCRAM-SHA-256-PLUS"), "unsupported SCRAM channel-binding type"),
        (initial("p=tls-server-end-point,,n=u,r=abc"), "includes channel binding data"),
        (initial("y,,n=u,r=abc"), "negotiation error"),  # somebody hid the better mechanism from the client
    ],
)
def test_what_is_said_about_channel_binding_has_to_agree(answer: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        ScramExchange(PENCIL, MOCK, secrets.token_bytes, b"ours").step(answer)


def test_without_tls_there_is_no_channel_binding() -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes)
    assert exchange.start() == [AuthenticationSASL(("SCRAM-SHA-256",))]
    with pytest.raises(RemoteProtocolError, match="invalid SASL authentication mechanism"):
        exchange.step(initial("p=tls-server-end-point,,n=u,r=abc", b"SCRAM-SHA-256-PLUS"))


def test_unknown_user_fails_whatever_the_password() -> None:
    for password in ("", "pencil", "secret"):
        exchange = ScramExchange(None, MOCK, secrets.token_bytes)
        with pytest.raises(AuthenticationFailed):
            play(password, exchange)
        assert not exchange.done


def steps_of_a_failure(verifier: Verifier | None) -> tuple[list[tuple[str, int]], list[int]]:
    """Return the lines of ``pgwire.auth`` that a login with a wrong password runs, and how much each answer had to say."""
    lines: list[tuple[str, int]] = []
    sizes: list[int] = []

    def watch(frame: FrameType, event: str, _arg: object) -> Any:
        if frame.f_globals.get("__name__") != "pgwire.auth.scram":
            return None
        if event == "line":
            lines.append((frame.f_code.co_name, frame.f_lineno))
        return watch

    client = ScramClient("wrong", secrets.token_bytes)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        exchange = ScramExchange(verifier, MOCK, secrets.token_bytes)
        [challenge] = exchange.step(client.first())
        assert isinstance(challenge, AuthenticationSASLContinue)
        sizes.append(len(challenge.data))
        with pytest.raises(AuthenticationFailed):
            exchange.step(client.final(challenge.data))
    finally:
        sys.settrace(before)
    return lines, sizes


def test_a_wrong_password_takes_the_path_of_an_unknown_user() -> None:
    known = make_verifier("right", secrets.token_bytes(SALT_BYTES))
    assert steps_of_a_failure(known) == steps_of_a_failure(None)


def test_mock_verifier_is_stable_and_differs_by_user() -> None:
    assert mock_verifier("a", b"s") == mock_verifier("a", b"s")
    assert mock_verifier("a", b"s").salt != mock_verifier("b", b"s").salt
    assert mock_verifier("a", b"s").salt != mock_verifier("a", b"t").salt
    assert len(MOCK.salt) == 16


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SCRAM-SHA-256\0",
        initial("n,,n=u,r=abc", b"SCRAM-SHA-1"),
        initial("n,,n=u,r=abc")[:-1],
        initial("n,,n=u"),
        initial("n,,r=abc,n=u"),
        initial("n,,n=u,r="),
        initial("n,,n=u,r=a b"),
        initial("p=tls-server-end-point,,n=u,r=abc"),
        initial("n,a=root,n=u,r=abc"),
        initial("n,,m=x,n=u,r=abc"),
        initial("q,,n=u,r=abc"),
        initial("n,,n=u,r=a\0bc"),
        b"SCRAM-SHA-256\0" + struct.pack(">i", 2) + b"\xff\xff",
    ],
)
def test_malformed_first_message_is_refused(answer: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ScramExchange(PENCIL, MOCK, secrets.token_bytes).step(answer)
    assert caught.value.fatal
    assert caught.value.sqlstate in ("08P01", "0A000")


@pytest.mark.parametrize(
    "final",
    [
        b"",
        b"c=biws,r={nonce}",
        b"c=eSws,r={nonce},p=AAAA",  # other channel-binding flag than in client-first
        b"c=biws,r={nonce}x,p=AAAA",
        b"c=biws,r=,p=AAAA",
        b"c=biws,r={nonce},p=!!",
        b"c=biws,r={nonce},p=AAAA",  # 3 bytes of proof
        b"r={nonce},c=biws,p=AAAA",
        b"\xff",
    ],
)
def test_malformed_final_message_is_refused(final: bytes) -> None:
    exchange = ScramExchange(PENCIL, MOCK, secrets.token_bytes)
    exchange.step(initial("n,,n=u,r=abc"))
    with pytest.raises(RemoteProtocolError) as caught:
        exchange.step(final.replace(b"{nonce}", exchange._nonce.encode()))
    assert caught.value.fatal
    assert not exchange.done


def test_server_nonce_is_fresh() -> None:
    nonces = {ScramExchange(PENCIL, MOCK, secrets.token_bytes)._nonce for _ in range(20)}
    assert len(nonces) == 20


def test_verifier_survives_its_text_form() -> None:
    assert parse_verifier(str(PENCIL)) == PENCIL
    assert str(PENCIL).startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")


def test_verifier_made_by_postgresql_is_understood() -> None:
    verifier = parse_verifier(POSTGRES_VERIFIER)
    assert verifier is not None
    assert check_password("IX ⅨⅣ\u00adx", verifier)
    assert check_password("IX IXIVx", verifier)  # what SASLprep makes of it
    assert not check_password("IX IXIV x", verifier)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "md5abc",
        "secret",
        "SCRAM-SHA-256$4096:$AA==:AA==",
        "SCRAM-SHA-256$x:W22ZaJ0SNY7soEsUEjb6gQ==$AA==:AA==",
        str(PENCIL).replace("SHA-256", "SHA-1"),
        str(PENCIL)[:-4],
        str(PENCIL).replace("$4096:", "$4096 :"),
        str(PENCIL).replace("$4096", "$4_096"),
        str(PENCIL).replace("$4096", "$٤٠٩٦"),
        str(PENCIL) + "$",
        str(PENCIL).lower(),
        str(PENCIL) + "é",
    ],
)
def test_what_is_no_verifier_is_none(text: str) -> None:
    assert parse_verifier(text) is None


@pytest.mark.parametrize("iterations", ["0", "-7", "+0", "10000001", "9999999999"])
def test_verifiers_that_nobody_could_be_asked_for_are_told_apart(iterations: str) -> None:
    verifier = parse_verifier(str(PENCIL).replace("$4096", f"${iterations}"))
    assert verifier is not None
    assert not is_usable(verifier)
    usable = parse_verifier(str(PENCIL).replace("$4096", "$ +4096"))
    assert usable == PENCIL
    assert is_usable(PENCIL)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("plain", "plain"),
        ("I\u00adX", "IX"),  # soft hyphen vanishes (RFC 4013, example 1)
        ("user", "user"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u00a0x", " x"),
        ("\u0007", "\u0007"),  # prohibited: used as it is
        ("\u0627\u0031", "\u0627\u0031"),  # bidirectional check fails: used as it is
        ("\u0627\u0031\u0628", "\u0627\u0031\u0628"),
        ("\u00ad", "\u00ad"),  # nothing would be left
        ("", ""),
    ],
)
def test_saslprep(password: str, prepared: str) -> None:
    assert saslprep(password) == prepared
