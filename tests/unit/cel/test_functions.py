"""Functions of the standard library and of the extensions: every row holds."""

from tests.together import together
from tests.unit.cel.rows import check_true
from tests.unit.cel.test_language import rows

CONVERSIONS = r"""
int("-12") == -12 && int("012") == 12 && int(3.9) == 3 && int(-3.9) == -3 && int(7u) == 7
uint("12") == 12u && uint(3) == 3u && uint(3.9) == 3u
double("1.5") == 1.5 && double(2) == 2.0 && double("1e3") == 1000.0
string(1) == "1" && string(1u) == "1" && string(true) == "true" && string(b"ab") == "ab"
string(1.0) == "1" && string(1.5) == "1.5" && string(1e6) == "1e+06" && string(0.00001) == "1e-05"
string(123456.0) == "123456" && string(1e21) == "1e+21" && string(-0.0001) == "-0.0001"
bytes("é") == b"\303\251"
bool("true") && bool("T") && !bool("0")
string(duration("90s")) == "90s" && string(duration("1.5s")) == "1.5s"
string(timestamp("2026-01-01T00:00:00Z")) == "2026-01-01T00:00:00Z"
string(timestamp("2026-01-01T02:00:00.25+02:00")) == "2026-01-01T00:00:00.25Z"
int(timestamp("1970-01-01T00:01:00Z")) == 60 && timestamp(60) == timestamp("1970-01-01T00:01:00Z")
duration("1h30m") == duration("5400s") && duration("-1.5s") < duration("0")
duration("1ms") == duration("1000us") && duration("1µs") == duration("1000ns")
type(1) == int && type("") == string && type([]) == list && type({}) == map
type(null) == null_type
type(type(1)) == type && type(duration("1s")) == google.protobuf.Duration
string(ip("::1")) == "::1" && string(cidr("10.0.0.0/8")) == "10.0.0.0/8"
"""

TIMES = r"""
timestamp("2026-02-03T04:05:06.789Z").getFullYear() == 2026
timestamp("2026-02-03T04:05:06.789Z").getMonth() == 1
timestamp("2026-02-03T04:05:06.789Z").getDate() == 3
timestamp("2026-02-03T04:05:06.789Z").getDayOfMonth() == 2
timestamp("2026-02-03T04:05:06.789Z").getDayOfWeek() == 2
timestamp("2026-02-03T04:05:06.789Z").getDayOfYear() == 33
timestamp("2026-02-03T04:05:06.789Z").getHours() == 4
timestamp("2026-02-03T04:05:06.789Z").getMinutes("+05:30") == 35
timestamp("2026-02-03T04:05:06.789Z").getSeconds() == 6
timestamp("2026-02-03T04:05:06.789Z").getMilliseconds() == 789
timestamp("2026-02-03T04:05:06Z").getHours("-08:00") == 20
duration("3661s").getHours() == 1 && duration("3661s").getMinutes() == 61
duration("-90s").getMinutes() == -1 && duration("1.5s").getMilliseconds() == 1500
timestamp("2026-01-01T00:00:00Z") + duration("1h") == timestamp("2026-01-01T01:00:00Z")
duration("1h") + timestamp(0) - duration("1h") == timestamp("1970-01-01T00:00:00Z")
timestamp("2026-01-02T00:00:00Z") - timestamp("2026-01-01T00:00:00Z") == duration("24h")
"""

TEXTS = r"""
"abc".charAt(1) == "b" && "abc".charAt(3) == ""
"abcabc".indexOf("c") == 2 && "abcabc".indexOf("c", 3) == 5 && "abc".indexOf("x") == -1
"abcabc".lastIndexOf("c") == 5 && "abcabc".lastIndexOf("c", 4) == 2 && "abc".lastIndexOf("") == 3
"Ab".lowerAscii() == "ab" && "Ab".upperAscii() == "AB" && "é".upperAscii() == "é"
"aaa".replace("a", "b") == "bbb" && "aaa".replace("a", "b", 2) == "bba"
"ab".replace("", "-") == "-a-b-"
"a,b,c".split(",") == ["a", "b", "c"] && "a,b,c".split(",", 2) == ["a", "b,c"]
"abc".split("") == ["a", "b", "c"] && "a".split(",", 0) == [] && "abc".split("", 2) == ["a", "bc"]
"abc".substring(1) == "bc" && "abc".substring(0, 2) == "ab" && "abc".substring(3) == ""
"\t a \n".trim() == "a"
["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b" && [].join("-") == ""
strings.quote("a\"b\n") == "\"a\\\"b\\n\""
"abc".contains("b") && "abc".startsWith("ab") && "abc".endsWith("bc") && "".contains("")
"abc".matches("^a.c$") && matches("abc", "b") && !"abc".matches("^b")
"a1b22".find("[0-9]+") == "1" && "abc".find("[0-9]+") == ""
"a1b22".findAll("[0-9]+") == ["1", "22"] && "a1b22".findAll("[0-9]", 2) == ["1", "2"]
"baac".findAll("a*") == ["", "aa", ""]
"%s is %d, %.2f %e".format(["a", 1, 1.5, 1.5]) == "a is 1, 1.50 1.500000e+00"
"%x %X %b %o %%".format([255, "k", 5, 8]) == "ff 6B 101 10 %"
"%s %s %s %s".format([true, null, [1, "a"], {"k": 1.5}]) == "true null [1, a] {k: 1.5}"
"%s %s".format([duration("1h"), type(1)]) == "3600s int"
"""

LISTS = r"""
[1, 2, 3].slice(1, 3) == [2, 3] && [1].slice(0, 0) == []
[[1], [2, 3]].flatten() == [1, 2, 3] && [dyn([[1]]), dyn(2)].flatten(2) == [1, 2]
lists.range(3) == [0, 1, 2] && lists.range(0) == []
[1, 2, 1, 2].distinct() == [1, 2] && [dyn(1), dyn(1.0)].distinct().size() == 1
[1, 2].reverse() == [2, 1]
[3, 1, 2].sort() == [1, 2, 3] && ["b", "a"].sort() == ["a", "b"] && [2.5, 1.5].sort() == [1.5, 2.5]
["aa", "b"].sortBy(t, size(t)) == ["b", "aa"]
[1, 2, 2].isSorted() && !["b", "a"].isSorted() && dyn([]).isSorted()
[1, 2].sum() == 3 && [1.5, 1.5].sum() == 3.0
[duration("1s"), duration("2s")].sum() == duration("3s")
[3, 1].min() == 1 && [3, 1].max() == 3 && ["b", "a"].max() == "b"
[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(3) == -1
sets.contains([1, 2], [2]) && !sets.contains([1], [2]) && sets.contains([1], [])
sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])
sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])
size([1]) == 1 && size({"a": 1}) == 1 && size("ab") == 2 && size(b"abc") == 3
"""

NETWORK = r"""
url("https://u@example.com:80/x/y?q=1&q=2#f").getScheme() == "https"
url("https://example.com:80/x").getHost() == "example.com:80"
url("https://example.com:80/x").getHostname() == "example.com" && url("https://a/").getPort() == ""
url("https://[::1]:80/").getHostname() == "::1" && url("https://[::1]:80/").getPort() == "80"
url("https://a/x y").getEscapedPath() == "/x%20y"
url("https://a/?q=1&q=2").getQuery()["q"] == ["1", "2"]
isURL("/absolute") && !isURL("relative") && !isURL("") && !isURL("https://a:b/")
ip("10.0.0.1").family() == 4 && ip("2001:db8::1").family() == 6
isIP("::1") && !isIP("1.2.3") && !isIP("01.2.3.4") && !isIP("::ffff:1.2.3.4")
!isIP("fe80::1%eth0")
ip.isCanonical("2001:db8::1") && !ip.isCanonical("2001:DB8::1")
ip("127.0.0.1").isLoopback() && ip("0.0.0.0").isUnspecified()
ip("169.254.0.1").isLinkLocalUnicast()
ip("224.0.0.1").isLinkLocalMulticast() && ip("10.0.0.1").isGlobalUnicast()
!ip("224.0.0.1").isGlobalUnicast()
ip("ff02::1").isLinkLocalMulticast() && !ip("ff05::1").isLinkLocalMulticast()
cidr("10.0.0.0/8").containsIP("10.1.2.3") && cidr("10.0.0.0/8").containsIP(ip("10.1.2.3"))
cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")
!cidr("10.0.0.0/8").containsCIDR(cidr("0.0.0.0/0"))
cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8") && cidr("10.1.2.3/8").ip() == ip("10.1.2.3")
cidr("10.0.0.0/8").prefixLength() == 8 && isCIDR("::/0") && !isCIDR("10.0.0.0")
!isCIDR("10.0.0.0/33")
"""

FORMATS = r"""
!format.dns1123Label().validate("my-name").hasValue()
format.dns1123Label().validate("My").hasValue()
!format.dns1123Subdomain().validate("a.b").hasValue()
format.dns1123Subdomain().validate("a..b").hasValue()
!format.dns1035Label().validate("a1").hasValue() && format.dns1035Label().validate("1a").hasValue()
!format.dns1123LabelPrefix().validate("a-").hasValue()
format.dns1123Label().validate("a-").hasValue()
!format.qualifiedName().validate("example.com/Name").hasValue()
format.qualifiedName().validate("a/b/c").hasValue()
!format.labelValue().validate("").hasValue() && format.labelValue().validate("-").hasValue()
!format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()
format.uuid().validate("x").hasValue()
!format.byte().validate("aGk=").hasValue() && format.byte().validate("?").hasValue()
!format.date().validate("2026-01-31").hasValue() && format.date().validate("2026-02-31").hasValue()
!format.datetime().validate("2026-01-01T00:00:00Z").hasValue()
format.uri().validate("x").hasValue()
format.named("dns1123Label").hasValue() && !format.named("nope").hasValue()
format.named("dns1123Label").value().validate("A").value().size() == 1
"""

QUANTITIES = r"""
quantity("1Ki") == quantity("1024") && quantity("1000m") == quantity("1")
quantity("1") != quantity("2")
isQuantity("1.5Gi") && !isQuantity("1gi") && !isQuantity("1e") && isQuantity("+1")
isQuantity(".5")
quantity("1Gi").isGreaterThan(quantity("1G")) && quantity("1m").isLessThan(quantity("1"))
quantity("1").compareTo(quantity("2")) == -1 && quantity("2").compareTo(quantity("2")) == 0
sign(quantity("-1")) == -1 && sign(quantity("0")) == 0 && sign(quantity("1m")) == 1
quantity("1Gi").add(quantity("1Gi")).compareTo(quantity("2Gi")) == 0
quantity("3").add(4) == quantity("7") && quantity("3").sub(quantity("1")) == quantity("2")
quantity("3").sub(1) == quantity("2")
quantity("50k").isInteger() && quantity("50k").asInteger() == 50000 && quantity("10Gi").isInteger()
!quantity("1.5Gi").isInteger() && !quantity("1000m").isInteger() && !quantity("100Ti").isInteger()
quantity("1500m").asApproximateFloat() == 1.5
cel.bind(q, quantity("1"), q.isInteger() && q.compareTo(quantity("1.5Gi")) < 0 && !q.isInteger())
device.capacity["d"].m.isGreaterThan(quantity("1Mi"))
device.capacity["d"].m.asInteger() == 1073741824
quantity("1") != dyn("1") && dyn("1") != quantity("1") && !(dyn("1") == quantity("1"))
"""

SEMVERS = r"""
semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3
semver("1.10.0").isGreaterThan(semver("1.9.0")) && semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))
semver("1.0.0-alpha.1").compareTo(semver("1.0.0-alpha.beta")) == -1
semver("1.0.0+a") == semver("1.0.0+b") && semver("1.0.0") != semver("1.0.1")
isSemver("1.0.0-rc.1+b") && !isSemver("v1.0.0") && !isSemver("1.0") && !isSemver("01.0.0")
isSemver("v1.0", true) && semver("v01.2", true) == semver("1.2.0") && !isSemver("1.0-rc", true)
@.v.isLessThan(semver("2.0.0")) && @.vl.all(v, v.isGreaterThan(semver("0.9.0")))
@.v.compareTo(semver("1.2.3")) == 0 && @.v != "1.2.3"
"""


@together(rows(CONVERSIONS, TIMES, TEXTS, LISTS), str)
def test_standard_function_row_holds(expression):
    check_true(expression)


@together(rows(NETWORK, FORMATS, QUANTITIES, SEMVERS), str)
def test_kubernetes_function_row_holds(expression):
    check_true(expression)
