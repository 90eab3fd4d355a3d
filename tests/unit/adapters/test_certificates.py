"""The private authority: what it keeps, what it makes again, who can read it."""

import pytest
from cryptography import x509

from app.adapters.certificates import CertificateFolder, write_private
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

NOW = timestamps.parse("2026-03-01T10:00:00Z")
DAY = 86_400 * SECOND
HOSTS = ("localhost", "127.0.0.1", "::1", "lab.example")


def at(folder, days=0):
    return CertificateFolder(folder, now=Instant(NOW + days * DAY))


def loaded(paths):
    return x509.load_pem_x509_certificate(paths.certificate.read_bytes())


def test_server_certificate_names_every_host(tmp_path):
    found = loaded(at(tmp_path).server(HOSTS))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "lab.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_client_certificate_holds_user_and_groups(tmp_path):
    found = loaded(at(tmp_path).client("a", user="ann", groups=("x", "y")))
    assert found.subject.rfc4514_string() == "CN=ann,O=y,O=x"


def test_certificates_are_kept_while_they_are_good(tmp_path):
    first = at(tmp_path).server(HOSTS).certificate.read_bytes()
    assert at(tmp_path, days=300).server(HOSTS[:2]).certificate.read_bytes() == first


@pytest.mark.parametrize(
    ("days", "hosts"), [(340, HOSTS), (0, (*HOSTS, "new.example"))], ids=["ending", "new host"]
)
def test_certificate_is_made_again_when_it_does_not_serve_any_more(tmp_path, days, hosts):
    first = at(tmp_path).server(HOSTS).certificate.read_bytes()
    authority = (tmp_path / "ca.crt").read_bytes()
    assert at(tmp_path, days=days).server(hosts).certificate.read_bytes() != first
    assert (tmp_path / "ca.crt").read_bytes() == authority


def test_certificate_of_a_lost_authority_is_made_again(tmp_path):
    first = at(tmp_path).server(HOSTS).certificate.read_bytes()
    (tmp_path / "ca.key").unlink()
    folder = at(tmp_path)
    again = folder.server(HOSTS)
    assert again.certificate.read_bytes() != first
    loaded(again).verify_directly_issued_by(
        x509.load_pem_x509_certificate(folder.authority.read_bytes())
    )


def test_damaged_key_is_told_with_its_place(tmp_path):
    at(tmp_path)
    (tmp_path / "ca.key").write_text("nonsense")
    with pytest.raises(InputError, match=r"ca\.key"):
        at(tmp_path)


def test_files_are_readable_by_their_owner_alone(tmp_path):
    folder = tmp_path / "pki"
    at(folder).server(HOSTS)
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    open_file = tmp_path / "open"
    open_file.write_text("old")
    open_file.chmod(0o644)
    write_private(open_file, b"new")
    assert (open_file.read_bytes(), open_file.stat().st_mode & 0o777) == (b"new", 0o600)
