"""Hostile and odd bytes end in one sentence; sound ones are read as YAML 1.2 and JSON mean them."""

import gzip
import io
import json
import lzma
import re
import shutil
import tarfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest

from app.adapters.history import documents, opening, yaml_documents
from app.adapters.history.compression import CHUNK
from app.adapters.history.limits import MIB, ImportLimits
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.history.unpacking import ByteSource, bytes_source, zip_sources
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log.records import CHANGES
from app.domain.objects import profile
from tests.unit.history.worlds import PODS, audit, tree

LIMITS = ImportLimits()
RULES = rules_for(profile.Profile())


def read(content: bytes, limits: ImportLimits = LIMITS):
    return [value for _, value in documents.read_documents(bytes_source(content, "x", limits))]


ROOM = ImportLimits(ratio_max=2, ratio_free_bytes=MIB, zeros_free_bytes=4 * MIB)


def packed_room(folder, form, zeros):
    """An archive with an object, and with a file of zeros, as programs make room in advance."""
    inside = folder / "inside"
    inside.mkdir()
    (inside / "0.tmp").write_bytes(bytes(zeros))
    (inside / "pod.json").write_text(json.dumps(tree(PODS, "a")))
    if form != "sparse":
        return Path(shutil.make_archive(str(folder / "packed"), form, inside))
    path = folder / "packed.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(inside / "pod.json", "pod.json")
    # The header of a file of which nothing is stored: its type, no parts, and its size.
    header = bytearray(tarfile.TarInfo("0.tmp").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[483:495] = b"%011o\0" % zeros
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(bytes(header) + path.read_bytes())
    return path


class PackedZeros(io.RawIOBase):
    """Ten gigabytes of zeros as one gzip member, whose packed blocks are all the same.

    `handed_out` counts the packed bytes that were read.
    """

    def __init__(self) -> None:
        packer = zlib.compressobj(wbits=31)
        self._ready = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
        self._block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
        self._blocks_left = 10 * 1024
        self.handed_out = 0

    def read(self, size: int = -1) -> bytes:
        while len(self._ready) < size and self._blocks_left > 0:
            self._blocks_left -= 1
            self._ready += self._block
        out, self._ready = self._ready[:size], self._ready[size:]
        self.handed_out += len(out)
        return out


class CountedSource(ByteSource):
    """A source that counts the bytes that it has unpacked."""

    unpacked = 0

    def chunks(self):
        for piece in super().chunks():
            self.unpacked += len(piece)
            yield piece


def test_ten_gigabytes_of_packed_zeros_are_refused_after_few_bytes_and_in_little_memory():
    zeros = PackedZeros()
    source = CountedSource("zeros.gz", lambda: zeros, ImportLimits(zeros_free_bytes=0))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="times its size"):
            for _ in source.chunks():
                pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What is packed into the first bytes that are read is unpacked as far as the ratio allows.
    assert zeros.handed_out == CHUNK
    assert source.unpacked <= LIMITS.ratio_max * CHUNK
    assert peak < 4 * MIB


@pytest.mark.parametrize(
    ("zeros", "is_read"), [(ROOM.zeros_free_bytes, True), (ROOM.zeros_free_bytes + 2 * MIB, False)]
)
@pytest.mark.parametrize("form", ["gztar", "xztar", "zip", "sparse"])
def test_room_that_a_program_made_in_a_file_does_not_count_for_the_ratio(
    tmp_path, form, zeros, is_read
):
    path = packed_room(tmp_path, form, zeros)
    options = ReadOptions(limits=ROOM)
    if is_read:
        with open_history([path], options) as recorded:
            assert [record.name for record in recorded.records()] == ["a"]
            assert not recorded.refused
            assert [place.rpartition("/")[2] for place, _ in recorded.left_out] == ["0.tmp"]
        return
    with pytest.raises(InputError, match="2 times its size; raise import_ratio_max"):
        open_history([path], options)


def test_line_of_ten_gigabytes_is_refused_at_the_bound_of_a_line():
    source = CountedSource("zeros.gz", PackedZeros, ImportLimits(line_bytes_max=MIB))
    with pytest.raises(InputError, match=f"line 1 is longer than {MIB} bytes"):
        next(source.lines())
    assert source.unpacked <= MIB + CHUNK


def test_several_gzip_members_are_one_stream():
    content = gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"a":2}\n')
    assert read(content) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("dictionary", [1 << 16, 1 << 23, 1 << 26])
def test_form_before_xz_is_unpacked_within_its_bound_of_memory(dictionary):
    filters = [{"id": lzma.FILTER_LZMA1, "dict_size": dictionary}]
    packed = lzma.compress(b'{"a":1}\n', lzma.FORMAT_ALONE, filters=filters)
    assert read(packed) == [{"a": 1}]
    with pytest.raises(InputError, match="ends in the middle"):
        read(packed[:-9])
    greedy = packed[:1] + (1 << 31).to_bytes(4, "little") + packed[5:]
    with pytest.raises(InputError, match="lzma stream is damaged"):
        read(greedy)


def test_truncated_gzip_is_named():
    with pytest.raises(InputError, match="ends in the middle"):
        read(gzip.compress(b'{"a":1}\n' * 1000)[:-20])


def test_unpacked_size_is_bounded():
    with pytest.raises(InputError, match="unpacks to more than 10 bytes"):
        read(b'{"a": 1}\n{"a": 2}\n', ImportLimits(unpacked_bytes_max=10))


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "a\\..\\x", "\\x", "C:\\x", "c:x"]
)
def test_zip_entries_that_point_outside_are_refused(tmp_path, name):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(InputError, match="points outside"):
        zip_sources(path, "evil.zip", LIMITS)


def test_links_in_zip_archives_are_refused(tmp_path):
    path = tmp_path / "link.zip"
    entry = zipfile.ZipInfo("inner")
    entry.create_system = 3
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, "target")
    with pytest.raises(InputError, match="is a link"):
        zip_sources(path, "link.zip", LIMITS)


def test_zip_entry_with_a_hostile_ratio_is_refused(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big", bytes(40 * MIB))
    with pytest.raises(InputError, match="beyond the bounds"):
        zip_sources(path, "bomb.zip", LIMITS)


def test_zip_entry_of_an_unknown_compression_is_refused(tmp_path):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("audit.log", "{}")
    content = bytearray(path.read_bytes())
    # The method of compression, in the header of the entry and in the directory.
    for place in (8, content.index(b"PK\x01\x02") + 10):
        content[place : place + 2] = b"\x63\x00"
    path.write_bytes(content)
    (source,) = zip_sources(path, "odd.zip", LIMITS)
    with pytest.raises(InputError, match=r"audit\.log"):
        list(source.lines())


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [101, 10_000])
def test_json_nested_too_deep_is_refused(opening, depth):
    closing = b"]" if opening == b"[" else b"1}"
    content = opening * depth + (b"" if opening == b"[" else b"1") + closing[-1:] * depth
    with pytest.raises(InputError, match="nested deeper than 100"):
        read(content)


def test_json_with_brackets_in_strings_is_not_deep():
    text = "[{" * 300 + '\\"' * 7
    assert read(b'{"a": "%s", "b": [%s]}' % (text.encode(), b"{}," * 200 + b"1"))[0]["a"]


def test_yaml_nested_too_deep_is_refused():
    with pytest.raises(InputError, match="nested deeper than 100"):
        read(b"a: " + b"[" * 10_000)


def test_yaml_alias_bomb_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InputError, match="aliases expand"):
        read("\n".join(lines).encode())


def test_yaml_alias_to_itself_is_refused():
    with pytest.raises(InputError, match="inside or before its anchor"):
        read(b"a: &a [*a]")


def test_yaml_tags_are_not_evaluated():
    with pytest.raises(InputError, match="tag"):
        read(b"a: !!python/object/apply:os.system ['true']")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("true", True),
        ("1e3", "1e3"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("0x1f", 31),
        ("0o17", 15),
        ("-7", -7),
        ("1.5", 1.5),
        ("~", None),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_plain_scalars_follow_yaml_12(text, value):
    assert read(f"a: {text}\n".encode()) == [{"a": value}]
    assert yaml_documents.plain(text) == value


def test_quoted_scalars_stay_text():
    assert read(b"a: '5'\nb: \"true\"\nc: !!str 5\n")[0]["a"] == "5"


def test_merge_keys_do_not_override():
    assert read(b"base: &b {x: 1, y: 2}\nuse:\n  x: 3\n  <<: *b\n")[0]["use"] == {"x": 3, "y": 2}


def test_key_that_stands_twice_is_refused_at_its_line():
    with pytest.raises(InputError, match="x:3: the key a stands twice in one object"):
        read(b"a: 1\nb: {a: 2}\na: 3\n")
    assert read(b"base: &b {x: 1}\nuse:\n  <<: *b\n  x: 3\n")[0]["use"] == {"x": 3}


def test_multi_document_yaml_json_sequence_and_kyaml():
    assert read(b"a: 1\n---\nb: 2\n---\n") == [{"a": 1}, {"b": 2}]
    assert read(b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n') == [{"a": 1}, {"b": 2}]
    assert read(b"---\n{\n  a: 1,\n  b: [x,],\n}\n") == [{"a": 1, "b": ["x"]}]


def test_time_stamped_lines_lose_their_stamp():
    line = b'2026-01-02T03:04:05.000006Z {"a": 1}\n'
    assert read(line) == [{"a": 1}]
    assert documents.split_stamp(line) == (b'{"a": 1}', 1767323045000006)


def test_broken_yaml_names_line_and_column():
    with pytest.raises(InputError, match=r"x:3:1: it is not YAML"):
        read(b"a: 1\nb: [\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{{- if .Values.on }}\nkind: Pod\n{{- end }}\n", "x:1:3"),
        ("kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", "x:3"),
        ("kind: Pod\nmetadata:\n  labels:\n    {{- include 'l' . | nindent 4 }}\n", "x:4:7"),
    ],
    ids=["a condition", "a value", "an included part"],
)
def test_template_is_named_as_what_it_is(text, place):
    with pytest.raises(InputError, match="it is a template") as refused:
        read(text.encode())
    assert refused.value.place == place


def test_braces_beside_other_damage_are_no_template():
    assert read(b"a: '{{ $labels.pod }}'\n") == [{"a": "{{ $labels.pod }}"}]
    with pytest.raises(InputError, match=r"x:3:1: it is not YAML"):
        read(b"a: '{{ $labels.pod }}'\nb: [\n")
    with pytest.raises(InputError, match="x:2: a mapping key is not a scalar"):
        read(b"a: '{{ $labels.pod }}'\n{b: 1}: 2\n")


def test_one_long_line_is_read_as_one_document():
    limits = ImportLimits(line_bytes_max=300_000)
    text = b'{"items": [' + b",".join([b'"%d"' % n for n in range(100_000)]) + b"]}"
    (value,) = read(text, limits)
    assert len(value["items"]) == 100_000


def test_bounds_are_told_whatever_the_format_seems_to_be(tmp_path):
    path = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"bomb.yaml: aliases expand"):
        open_history([path], ReadOptions())


def test_manifest_of_a_headless_service_is_taken(tmp_path):
    # `clusterIPs` comes with the creation of a service; a file of manifests has had none.
    options = ReadOptions(rules=rules_for(profile.from_settings({})))
    path = tmp_path / "service.yaml"
    head = "apiVersion: v1\nkind: Service\nmetadata: {name: peers, namespace: default}\n"
    path.write_text(head + "spec: {clusterIP: None, ports: [{port: 80}]}\n")
    with open_history([path], options) as recorded:
        (record,) = recorded.records()
    assert record.key.name == "peers"
    path.write_text(head + "spec: {clusterIP: nowhere, ports: [{port: 80}]}\n")
    with pytest.raises(InputError, match=r"clusterIPs\[0\]: Invalid value: \S*nowhere"):
        open_history([path], options)


UNRELEASED = ("resource.k8s.io", "v1alpha2", "pods", "Pod")
DAMAGED = {
    "a line of an audit log": (
        "audit.log",
        [
            json.dumps(audit("create", tree(name="a", rv=1), second=1)),
            '{"kind": "Event", "level":',
            json.dumps(audit("create", tree(name="b", rv=2), second=2)),
        ],
        "audit.log:2",
    ),
    "a kind of no release": (
        "claims.json",
        [
            json.dumps(tree(name="a", rv=1)),
            json.dumps(tree(UNRELEASED, name="x", rv=2)),
            json.dumps(tree(name="b", rv=3)),
        ],
        "claims.json:2",
    ),
    "a time that no log can hold": (
        "audit.log",
        [
            json.dumps(audit("create", tree(name="a", rv=1), second=1)),
            json.dumps(
                audit("create", tree(name="x", rv=2), second=2)
                | {"stageTimestamp": "9999-01-01T00:00:00Z"}
            ),
            json.dumps(audit("create", tree(name="b", rv=3), second=3)),
        ],
        "audit.log:2",
    ),
}


@pytest.mark.parametrize("packing", ["folder", "zip", "tar"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_what_cannot_be_read_in_a_folder_or_archive_takes_nothing_else_along(
    tmp_path, damage, packing
):
    name, lines, place = DAMAGED[damage]
    folder = tmp_path / "capture"
    folder.mkdir()
    (folder / name).write_text("\n".join(lines) + "\n")
    source = folder
    if packing != "folder":
        source = Path(shutil.make_archive(str(tmp_path / "packed"), packing, folder))
    with open_history([source], ReadOptions(rules=RULES)) as recorded:
        names = [record.name for record in recorded.records() if record.op in CHANGES]
        assert sorted(set(names)) == ["a", "b"]
        assert recorded.refused == 1
        assert recorded.refusals[0].place.endswith(place)
    with pytest.raises(InputError, match=r"the rest with --more$") as refusal:
        open_history([folder / name], ReadOptions(rules=RULES, way_on="or the rest with --more"))
    assert refusal.value.place == place


POD = '{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{0}", "namespace": "d"}}}}'


class Pipe(io.BytesIO):
    """A file without positions: an archive that is written to it has sizes behind each entry."""

    def tell(self):
        raise OSError

    def seekable(self):
        return False


def zipped_pods(names, *, streamed=False, packing=zipfile.ZIP_DEFLATED):
    """A zip archive of pods."""
    out = Pipe() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name in names:
            archive.writestr(f"pods/{name}.json", POD.format(name))
    return out.getvalue()


def pods_of(path):
    """The names of the pods in an archive, and what was lost and noted."""
    try:
        source = open_history([path], ReadOptions())
    except InputError as problem:
        return [], str(problem), ()
    with source:
        names = [record.name for record in source.records()]
        return names, source.refused_places, source.notes


@pytest.mark.parametrize("streamed", [False, True])
def test_zip_archive_that_is_cut_gives_the_files_before_the_cut(tmp_path, streamed):
    names = [f"p{number}" for number in range(6)]
    content = zipped_pods(names, streamed=streamed)
    begins = [match.start() for match in re.finditer(b"PK\x03\x04", content)]
    listed = content.index(b"PK\x01\x02")
    path = tmp_path / "cut.zip"
    for cut in (*(begin + step for begin in begins[1:] for step in (0, 7, 33, 60)), listed):
        path.write_bytes(content[:cut])
        whole = sum(begin < cut for begin in begins) - (cut not in (*begins, listed))
        read, lost, _ = pods_of(path)
        assert read == names[:whole], cut
        ((_, problem),) = lost
        assert problem.startswith("the zip archive is cut "), problem
    path.write_bytes(content[: begins[0] + 50])
    assert pods_of(path)[1] == (
        "cut.zip: the zip archive is cut before the end of its first file; copy it again"
    )


def test_zip_archive_without_the_end_of_its_list_loses_no_file(tmp_path):
    path = tmp_path / "cut.zip"
    path.write_bytes(zipped_pods(["a", "b"], packing=zipfile.ZIP_STORED)[:-30])
    read, lost, notes = pods_of(path)
    assert (read, lost) == (["a", "b"], [])
    assert "cut.zip: the end of the zip archive is missing, none of its files" in notes


@pytest.mark.parametrize(
    ("at", "value", "why"), [(6, 1, "encrypted"), (8, 12, "compressed by method 12")]
)
def test_file_of_a_cut_zip_archive_that_is_packed_otherwise_is_named(tmp_path, at, value, why):
    content = bytearray(zipped_pods(["a", "b", "c"])[:-30])
    begins = [match.start() for match in re.finditer(b"PK\x03\x04", content)]
    path = tmp_path / "cut.zip"
    content[begins[1] + at] = value
    path.write_bytes(content)
    said = f"the entry is {why}, and no file behind it is found"
    assert pods_of(path)[:2] == (["a"], [("cut.zip/pods/b.json", said)])
    content[begins[0] + at] = value
    path.write_bytes(content)
    assert pods_of(path)[1] == f"cut.zip/pods/a.json: {said}"


def test_unsafe_name_in_a_cut_zip_archive_hides_no_other_file(tmp_path):
    path = tmp_path / "cut.zip"
    path.write_bytes(zipped_pods(["../../a", "b"])[:-30])
    read, lost, _ = pods_of(path)
    assert (read, len(lost)) == (["b"], 1)


def test_damaged_file_of_a_cut_zip_archive_is_named(tmp_path):
    content = bytearray(zipped_pods(["a", "b", "c"], packing=zipfile.ZIP_STORED)[:-30])
    place = content.index(b'"b"') + 1
    content[place : place + 1] = b"x"
    path = tmp_path / "cut.zip"
    path.write_bytes(content)
    read, lost, _ = pods_of(path)
    assert read == ["a", "c"]
    assert lost == [
        ("cut.zip/pods/b.json", "the entry cannot be read: its checksum is wrong"),
    ]


def test_cut_bundle_is_refused_as_one(tmp_path):
    path = tmp_path / "h.redra"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")
        archive.writestr("events.jsonl", "")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"h\.redra: the bundle is cut or damaged; copy it again"):
        opening.is_bundle(path)


def cut_log(tmp_path, *, indent=None):
    """A packed dump or log of four pods that ends within the last of them."""
    pods = [tree(PODS, name=f"p{number}", rv=number + 1) for number in range(4)]
    if indent is None:
        content = b"".join(
            json.dumps(audit("create", pod, type_=PODS)).encode() + b"\n" for pod in pods
        )
    else:
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=indent)
        content = content.encode()
    # Stored, not deflated, so that the cut lies where it is meant to.
    packed = gzip.compress(content, compresslevel=0)
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[:-60])
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_packed_file_that_is_cut_gives_what_lies_before_the_cut(tmp_path, indent):
    path = cut_log(tmp_path, indent=indent)
    with open_history([path], ReadOptions(keep_going=True)) as history:
        names = {record.name for record in history.records()}
        lost = [skipped.problem for skipped in history.refusals]
    assert names == {"p0", "p1", "p2"}
    assert any("ends in the middle" in problem for problem in lost)
    with pytest.raises(InputError, match="ends in the middle"):
        open_history([path], ReadOptions())


def test_zip_archive_with_the_paths_of_windows_is_read(tmp_path):
    path = tmp_path / "dump.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("dump\\", "")
        archive.writestr("dump\\pods\\p1.json", json.dumps(tree(PODS, name="p1", rv=1)))
        archive.writestr("..\\p2.json", json.dumps(tree(PODS, name="p2", rv=2)))
    with open_history([path], ReadOptions()) as history:
        assert {record.name for record in history.records()} == {"p1"}
        assert history.sources[0].name == "dump.zip/dump/pods/p1.json"
        assert [skipped.problem for skipped in history.refusals] == [
            r"entry '..\\p2.json' points outside the archive; do not trust this file"
        ]
