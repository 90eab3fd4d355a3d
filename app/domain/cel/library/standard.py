"""The functions of CEL itself: operators, conversions, times, optional values.

Parity: cel.md 2, allocator.md 11.3. The rows are only declarations; the implementations are in
other modules, by overload id.
"""

from typing import Final

from app.domain.cel.signatures import declarations

OPERATORS: Final = declarations.read(
    """
_&&_     logical_and     (bool, bool) bool
_||_     logical_or      (bool, bool) bool
_?_:_    conditional     (bool, A, A) A
!_       logical_not     (bool) bool
@not_strictly_false  not_strictly_false  (bool) bool
_==_     equals          (A, A) bool
_!=_     not_equals      (A, A) bool

_+_      add_bytes               (bytes, bytes) bytes
_+_      add_double              (double, double) double
_+_      add_duration_duration   (duration, duration) duration
_+_      add_duration_timestamp  (duration, timestamp) timestamp
_+_      add_timestamp_duration  (timestamp, duration) timestamp
_+_      add_int64               (int, int) int
_+_      add_list                (list(A), list(A)) list(A)
_+_      add_string              (string, string) string
_+_      add_uint64              (uint, uint) uint
_-_      subtract_double              (double, double) double
_-_      subtract_duration_duration   (duration, duration) duration
_-_      subtract_int64               (int, int) int
_-_      subtract_timestamp_duration  (timestamp, duration) timestamp
_-_      subtract_timestamp_timestamp (timestamp, timestamp) duration
_-_      subtract_uint64              (uint, uint) uint
_*_      multiply_double  (double, double) double
_*_      multiply_int64   (int, int) int
_*_      multiply_uint64  (uint, uint) uint
_/_      divide_double    (double, double) double
_/_      divide_int64     (int, int) int
_/_      divide_uint64    (uint, uint) uint
_%_      modulo_int64     (int, int) int
_%_      modulo_uint64    (uint, uint) uint
-_       negate_double    (double) double
-_       negate_int64     (int) int

@in      in_list          (A, list(A)) bool
@in      in_map           (A, map(A, B)) bool
_[_]     index_list       (list(A), int) A
_[_]     index_map        (map(A, B), A) B
_[_]     optional_list_index_int   (optional(list(A)), int) optional(A)
_[_]     optional_map_index_value  (optional(map(A, B)), A) optional(B)
_[?_]    list_optindex_optional_int           (list(A), int) optional(A)
_[?_]    optional_list_optindex_optional_int  (optional(list(A)), int) optional(A)
_[?_]    map_optindex_optional_value          (map(A, B), A) optional(B)
_[?_]    optional_map_optindex_optional_value (optional(map(A, B)), A) optional(B)
cel.@mapInsert  map_insert_key_value  (map(A, B), A, B) map(A, B)
cel.@mapInsert  map_insert_map        (map(A, B), map(A, B)) map(A, B)
"""
)

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS: Final = ("int", "uint", "double")


def _comparisons() -> str:
    rows = []
    for operator, word in (
        ("_<_", "less"),
        ("_<=_", "less_equals"),
        ("_>_", "greater"),
        ("_>=_", "greater_equals"),
    ):
        rows += [f"{operator} {word}_{kind} ({kind}, {kind}) bool" for kind in _ORDERED]
        rows += [
            f"{operator} {word}_{left}_{right} ({left}, {right}) bool"
            for left in _NUMBERS
            for right in _NUMBERS
            if left != right
        ]
    return "\n".join(rows)


COMPARISONS: Final = declarations.read(_comparisons())

CONVERSIONS: Final = declarations.read(
    """
bool      bool_to_bool        (bool) bool
bool      string_to_bool      (string) bool
bytes     bytes_to_bytes      (bytes) bytes
bytes     string_to_bytes     (string) bytes
double    double_to_double    (double) double
double    int64_to_double     (int) double
double    string_to_double    (string) double
double    uint64_to_double    (uint) double
duration  duration_to_duration  (duration) duration
duration  int64_to_duration     (int) duration
duration  string_to_duration    (string) duration
dyn       to_dyn              (A) dyn
int       double_to_int64     (double) int
int       duration_to_int64   (duration) int
int       int64_to_int64      (int) int
int       string_to_int64     (string) int
int       timestamp_to_int64  (timestamp) int
int       uint64_to_int64     (uint) int
string    bool_to_string      (bool) string
string    bytes_to_string     (bytes) string
string    double_to_string    (double) string
string    duration_to_string  (duration) string
string    int64_to_string     (int) string
string    string_to_string    (string) string
string    timestamp_to_string (timestamp) string
string    uint64_to_string    (uint) string
timestamp int64_to_timestamp      (int) timestamp
timestamp string_to_timestamp     (string) timestamp
timestamp timestamp_to_timestamp  (timestamp) timestamp
type      type                (A) type(A)
uint      double_to_uint64    (double) uint
uint      int64_to_uint64     (int) uint
uint      string_to_uint64    (string) uint
uint      uint64_to_uint64    (uint) uint
"""
)

FUNCTIONS: Final = declarations.read(
    """
size      size_string   (string) int
size      size_bytes    (bytes) int
size      size_list     (list(A)) int
size      size_map      (map(A, B)) int
size      string_size   string.() int
size      bytes_size    bytes.() int
size      list_size     list(A).() int
size      map_size      map(A, B).() int
contains    contains_string     string.(string) bool
endsWith    ends_with_string    string.(string) bool
startsWith  starts_with_string  string.(string) bool
matches     matches             (string, string) bool
matches     matches_string      string.(string) bool

optional.of              optional_of              (A) optional(A)
optional.ofNonZeroValue  optional_ofNonZeroValue  (A) optional(A)
optional.none            optional_none            () optional(A)
optional.unwrap          optional_unwrap          (list(optional(A))) list(A)
unwrapOpt                optional_unwrapOpt       list(optional(A)).() list(A)
value                    optional_value           optional(A).() A
hasValue                 optional_hasValue        optional(A).() bool
or                       optional_or_optional     optional(A).(optional(A)) optional(A)
orValue                  optional_orValue_value   optional(A).(A) A
first                    list_first               list(A).() optional(A)
last                     list_last                list(A).() optional(A)

getHours         duration_to_hours         duration.() int
getMinutes       duration_to_minutes       duration.() int
getSeconds       duration_to_seconds       duration.() int
getMilliseconds  duration_to_milliseconds  duration.() int
"""
)


TIMESTAMP_PARTS: Final = (
    *("getFullYear", "getMonth", "getDayOfYear", "getDate", "getDayOfMonth", "getDayOfWeek"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)


def _timestamp_parts() -> str:
    rows = []
    for name in TIMESTAMP_PARTS:
        rows.append(f"{name} timestamp_{name} timestamp.() int")
        rows.append(f"{name} timestamp_{name}_with_tz timestamp.(string) int")
    return "\n".join(rows)


TIMES: Final = declarations.read(_timestamp_parts())

STANDARD: Final = declarations.merge(OPERATORS, COMPARISONS, CONVERSIONS, FUNCTIONS, TIMES)
