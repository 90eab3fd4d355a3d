"""Language rules: every row holds on the device of `rows`."""

from tests.together import together
from tests.unit.cel.rows import check_true

LITERALS = r"""
0x10 == 16
-0x8000000000000000 == -9223372036854775808
18446744073709551615u > 9223372036854775807
1e3 == 1000.0
.5 == 0.5
'a' == "a"
'''a
b''' == "a\nb"
"\x41\u0042\U00000043\104" == "ABCD"
r"\n" == "\\n"
R'\d' == "\\d"
b"\xff\377" == b"\xff\xff"
b"é".size() == 2
br"\n".size() == 2
"\a\b\f\v\?\`".size() == 6
"é€😀".size() == 3
null == null
true != false
--5 == 5
-(-5) == 5
!!true
// a comment to the end of the line
[1, 2, 3,].size() == 3
{"a": 1,}.size() == 1
[?optional.of(1), ?optional.none(), 2] == [1, 2]
{?"a": optional.of(1), ?"b": optional.none()} == {"a": 1}
"""

OPERATORS = r"""
2 + 3 * 4 == 14
(2 + 3) * 4 == 20
10 - 3 - 4 == 3
7 / 2 == 3 && -7 / 2 == -3
7 % 3 == 1 && -7 % 3 == -1
7u / 2u == 3u && 7u % 2u == 1u
1.0 / 2.0 == 0.5
1.0 / 0.0 > 1.7e308
"a" + "b" == "ab"
b"a" + b"b" == b"ab"
[1] + [2] == [1, 2]
1 < 2 && 2u <= 2u && 3.0 > 2.5 && "b" >= "a" && b"a" < b"b" && false < true
dyn(1) == 1.0 && dyn(1u) == 1 && dyn(1.0) == 1u
1 < 2.5 && 2u > 1 && 1.5 < 2u
dyn(1) != "1" && dyn([1]) != {"a": 1}
[1, 2] == [1, 2] && [1] != [1, 2]
{"a": 1, "b": 2} == {"b": 2, "a": 1}
[dyn(1)] == [dyn(1.0)]
1 in [1, 2] && !(3 in [1, 2])
"a" in {"a": 1} && !("b" in {"a": 1})
dyn(1.0) in [1, 2] && dyn(1u) in {1: "a"}
{1: "a"}[dyn(1.0)] == "a"
{true: 1, false: 2}[true] == 1
{"a": {"b": 1}}.a.b == 1
[[1, 2], [3]][0][1] == 2
true ? true : 1 / 0 == 0
false || true || 1 / 0 == 0
!(false && 1 / 0 == 0)
1 / 0 == 0 || true
!(1 / 0 == 0 && false)
!(dyn(1) && false)
dyn("x") || true
"""

OPTIONALS = r"""
optional.of(1).hasValue() && !optional.none().hasValue()
optional.of(1).value() == 1
optional.none().orValue(2) == 2
optional.none().or(optional.of(3)).value() == 3
optional.ofNonZeroValue(0) == optional.none()
optional.ofNonZeroValue("a") == optional.of("a")
optional.of(1).optMap(v, v + 1) == optional.of(2)
optional.none().optMap(v, dyn(v)) == optional.none()
optional.of(2).optFlatMap(v, v > 1 ? optional.of(v) : optional.none()).value() == 2
{"a": 1}.?a == optional.of(1) && !{"a": 1}.?b.hasValue()
[1][?0].orValue(9) == 1 && [1][?1].orValue(9) == 9
{"a": {"b": 1}}.?a.b.orValue(0) == 1
{"a": {"b": 1}}.?a.c.orValue(7) == 7
{"a": {"b": 1}}.?x.b.orValue(8) == 8
has({"a": {"b": 1}}.?a.b) && !has({"a": {"b": 1}}.?x.b)
[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !dyn([]).first().hasValue()
[optional.of(1), optional.none()].unwrapOpt() == [1]
optional.of(optional.of(1)).value().value() == 1
"""

MACROS = r"""
has({"a": 1}.a) && !has({"a": 1}.b)
[1, 2].all(x, x > 0) && [].all(x, false)
[1, 2].exists(x, x == 2) && ![].exists(x, true)
[1, 2, 1].exists_one(x, x == 2) && ![1, 1].existsOne(x, x == 1)
[1, 2, 3].filter(x, x > 1) == [2, 3]
[1, 2].map(x, x * 2) == [2, 4]
[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]
{"a": 1, "b": 2}.all(k, k in ["a", "b"])
{"a": 1}.map(k, k) == ["a"]
["x", "y"].all(i, v, i < 2 && v != "")
["x", "y"].exists(i, v, i == 1 && v == "y")
{"a": 1}.exists_one(k, v, k == "a" && v == 1)
[5, 6].transformList(i, v, i * v) == [0, 6]
[5, 6].transformList(i, v, i > 0, v) == [6]
{"a": 1}.transformList(k, v, k) == ["a"]
{"a": 1, "b": 2}.transformMap(k, v, v + 1) == {"a": 2, "b": 3}
{"a": 1, "b": 2}.transformMap(k, v, v > 1, v) == {"b": 2}
["x"].transformMap(i, v, v) == {0: "x"}
{"a": 1}.transformMapEntry(k, v, {v: k}) == {1: "a"}
[1, 2].transformMapEntry(i, v, v > 1, {string(v): i}) == {"2": 1}
cel.bind(x, 2, x * x) == 4
cel.bind(x, 1, cel.bind(x, x + 1, x) + x) == 3
[1, 2].map(x, [3].map(x, x)) == [[3], [3]]
[[1], [2, 3]].exists(x, x.exists(y, y == 3))
[1, 0].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 0)
[3, 1, 2].sortBy(x, -x) == [3, 2, 1]
cel.bind(device, {"driver": "mine"}, device.driver == "mine")
"""

DEVICES = r"""
device.driver == "d"
!device.allowMultipleAllocations
@.x == 3 && device.attributes["d"]["x"] == 3 && device.attributes[device.driver].x == 3
@.s.startsWith("hello")
@.il == [1, 2, 3] && @.il[1] == 2 && @.l[0] == "a" && @.bl[0]
@.v == semver("1.2.3") && @.vl[1] == semver("2.0.0")
device.attributes["other.example.com"].x == 9
device.capacity["d"].m == quantity("1Gi")
has(@.x) && !has(@.nope) && !has(device.attributes["none"].x)
"d" in device.attributes && !("none" in device.attributes)
"x" in device.attributes["d"] && !("x" in device.attributes["none"])
device.attributes["none"] == {} && size(device.attributes["none"]) == 0
device.attributes["d"].?nope.orValue(5) == 5
device.attributes["d"][?"x"].orValue(5) == 3
device.attributes[?"none"].hasValue() && !device.attributes[?"none"].?x.hasValue()
has(device.attributes) && has(device.attributes.none) && has(device.allowMultipleAllocations)
device.attributes.d.x == 3 && device.attributes.none == {}
@.x > 2 && @.x < 3.5 && @.x == 3u && @.x != "3"
!has(@.x.foo) && !has(@.v.major)
@.?x.foo.orValue(1) == 1
device.attributes.exists(d, d == "other.example.com") && device.attributes.size() == 2
device.attributes["d"].exists(k, v, k == "x" && v == 3)
@.il.exists(i, i == 2) && @.l.all(t, t != "")
@.s == @.s && device == device
@.il.includes(2) && !@.il.includes(9) && @.s.includes("hello world twelve") && !@.x.includes("3")
@.vl.includes(semver("1.0.0")) && !@.vl.includes("1.0.0")
2 in @.il && "bb" in @.l && semver("2.0.0") in @.vl
@.x in [1, 2, 3] && !(@.x in ["3"]) && dyn(@.x) in [3.0]
type(@.x) == int && type(@.s) == string && type(@.il) == list && type(device.attributes) == map
"""


def rows(*tables):
    """The rows of tables; a row goes on while its line ends inside a triple-quoted text."""
    found = []
    for table in tables:
        pending = ""
        for line in table.strip("\n").split("\n"):
            pending = f"{pending}\n{line}" if pending else line
            if pending.count("'''") % 2 == 0 and not line.startswith("//"):
                found.append(pending)
                pending = ""
    return found


@together(rows(LITERALS, OPERATORS, OPTIONALS, MACROS), str)
def test_language_row_holds(expression):
    check_true(expression)


@together(rows(DEVICES), str)
def test_device_row_holds(expression):
    check_true(expression)
