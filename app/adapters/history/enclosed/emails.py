"""Emails with their attachments: one message, or several in the mbox format.

    From: somebody
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary=x

Each text and each attachment becomes a separate file, decoded from base64 or quoted-printable. An
email without MIME is read as plain text by other readers. Parity: history-formats.md 2.
"""

import email
import re
from collections.abc import Iterator
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from pathlib import PurePosixPath

from app.adapters.history import unpacking
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError

_HEADER = re.compile(rb"(?:From \S[^\n]*\n)?(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+")
_ENCODED = re.compile(
    rb"^(?:MIME-Version:|Content-Type:\s*multipart/|Content-Transfer-Encoding:\s*(?:base64|quoted))",
    re.IGNORECASE | re.MULTILINE,
)
_BORDER = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\s:]+ [^\n]*\d{4}\r?\n")
_SUBJECT = re.compile(rb"^(?:From|Subject|Received|Date|Message-ID):", re.IGNORECASE | re.MULTILINE)
_READ_FIRST = ("plain", "html")
"""The preferred forms of a body: plain text before HTML."""


def is_email(head: bytes) -> bool:
    """True for the head of an email with encoded parts, or of a mailbox with such an email."""
    header = _HEADER.match(head.replace(b"\r\n", b"\n"))
    if header is None or _SUBJECT.search(header.group()) is None:
        return False
    return _ENCODED.search(head) is not None


def parts(source: ByteSource) -> Iterator[ByteSource]:
    """The texts and attachments of a file of emails.

    Raises InputError for an email that cannot be parsed.
    """
    messages = _apart(source.whole())
    for number, content in enumerate(messages, start=1):
        prefix = f"{source.name}/{number}" if len(messages) > 1 else source.name
        try:
            message = email.message_from_bytes(content, policy=policy.default)
            for name, part in _parts(message):
                yield unpacking.bytes_source(part, f"{prefix}/{name}", source.limits)
        except (MessageError, LookupError, ValueError, TypeError, AttributeError) as problem:
            raise InputError(
                f"the parts of the letter cannot be read: {problem}",
                place=prefix,
                cure="save its attachments, and give them",
            ) from problem


def _apart(content: bytes) -> list[bytes]:
    """The messages of a mailbox; content that is not a mailbox is one message."""
    begins = [match.end() for match in _BORDER.finditer(content)]
    if not content.startswith(b"From ") or not begins:
        return [content]
    ends = [match.start() for match in _BORDER.finditer(content)][1:]
    return [content[at:end] for at, end in zip(begins, [*ends, len(content)], strict=True)]


def _parts(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """The name and content of each part, including the parts of enclosed emails."""
    body = message.get_body(preferencelist=_READ_FIRST)
    if body is not None:
        yield "text", _content(body)
    for number, part in enumerate(message.iter_attachments(), start=1):
        name = _name(part.get_filename() or "", number)
        if part.get_content_maintype() == "message" or part.is_multipart():
            inner = part.get_payload()
            for each in inner if isinstance(inner, list) else []:
                if isinstance(each, EmailMessage):
                    yield from ((f"{name}/{below}", content) for below, content in _parts(each))
        else:
            yield name, _content(part)


def _content(part: MIMEPart) -> bytes:
    raw = part.get_payload(decode=True)
    content = raw if isinstance(raw, bytes) else b""
    charset = part.get_content_charset()
    if part.get_content_maintype() == "text" and charset not in (None, "utf-8", "us-ascii"):
        return content.decode(charset or "utf-8", "replace").encode()
    return content


def _name(filename: str, number: int) -> str:
    """The last step of an attachment's file name, or a numbered name.

    It is never used as a path on disk.
    """
    last = PurePosixPath(filename.replace("\\", "/")).name
    return last if last not in ("", "..") else f"attachment-{number}"
