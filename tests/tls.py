"""Certificates made on the spot, and a door that speaks TLS in front of a server that does not."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TLS_HANDSHAKE = 0x16
"""The first byte of what a TLS client says (RFC 8446, 5.1)."""


class Authority:
    """An authority of its own, which signs certificates for 127.0.0.1 and for clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.ca = folder / "ca.pem"
        self._write(self.ca, self._sign("test authority", self._key, is_authority=True))

    def issue(self, name: str) -> tuple[Path, Path]:
        """The files of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        self._write(certificate, self._sign(name, key))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, key_file

    def _sign(
        self, name: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, path: Path, certificate: x509.Certificate) -> None:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def context(self) -> ssl.SSLContext:
        """For a server that wants a certificate of each client."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca)
        context.load_cert_chain(*self.issue("server"))
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class TlsDoor:
    """Passes what comes by TLS on to a port; what comes plain too, for the servers themselves, and counts both."""

    def __init__(self, port: int, target: int, context: ssl.SSLContext) -> None:
        self.port, self._target, self._context = port, target, context
        self.by_tls = self.plain = self.refused = 0
        self._pairs: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[TlsDoor]:
        listener = socket.create_server(("127.0.0.1", self.port))
        listener.setblocking(False)
        accepting = asyncio.create_task(self._accept(listener))
        try:
            yield self
        finally:
            for task in (accepting, *self._pairs):
                task.cancel()
            await asyncio.gather(accepting, *self._pairs, return_exceptions=True)
            listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            caller, _ = await asyncio.get_running_loop().sock_accept(listener)
            pair = asyncio.create_task(self._pass(caller))
            self._pairs.add(pair)
            pair.add_done_callback(self._pairs.discard)

    async def _pass(self, caller: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        caller.setblocking(False)
        readable = asyncio.Event()
        loop.add_reader(caller, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(caller)
        first = caller.recv(1, socket.MSG_PEEK)
        if not first:  # it hung up
            caller.close()
            return
        tls = first[0] == TLS_HANDSHAKE
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, caller, ssl=self._context if tls else None
            )
        except (ssl.SSLError, OSError):
            self.refused += 1
            return
        self.by_tls += tls
        self.plain += not tls
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        pumps = [
            asyncio.create_task(_pump(reader, server_writer)),
            asyncio.create_task(_pump(server_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            writer.close()
            server_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
