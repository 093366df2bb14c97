"""Certificates for servers on loopback, and an authority of the test's own that vouches for some of them."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Authority:
    """``path``: its certificate, for who is to trust it."""

    path: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    def serving(self, folder: Path, *hosts: str) -> ssl.SSLContext:
        """A server's context with a certificate for these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(hosts[0])
        built = _certificate(subject, self.name, key).add_extension(_alternatives(hosts), critical=False)
        return _context(folder, key, built.sign(self.key, hashes.SHA256()))


def authority(folder: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("an authority of tests")
    built = _certificate(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    path = folder / "authority.pem"
    path.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return Authority(path, key, name)


def self_signed(folder: Path, *hosts: str) -> ssl.SSLContext:
    """A server's context with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    built = _certificate(_name(hosts[0]), _name(hosts[0]), key).add_extension(
        _alternatives(hosts), critical=False
    )
    return _context(folder, key, built.sign(key, hashes.SHA256()))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
    )


def _alternatives(hosts: tuple[str, ...]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return x509.SubjectAlternativeName(names)


def _context(folder: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> ssl.SSLContext:
    path = folder / f"{certificate.serial_number}.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
