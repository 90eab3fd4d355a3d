"""The functions of extensions and of Kubernetes: strings, lists, sets, networks, quantities.

Parity: allocator.md 11.3–11.5. This module has only declarations, like `standard`.
"""

from typing import Final

from app.domain.cel.signatures import declarations

STRINGS: Final = declarations.read(
    """
charAt       string_char_at_int  string.(int) string
format       string_format       string.(list(dyn)) string
indexOf      string_index_of_string          string.(string) int
indexOf      string_index_of_string_int      string.(string, int) int
join         list_join           list(string).() string
join         list_join_string    list(string).(string) string
lastIndexOf  string_last_index_of_string      string.(string) int
lastIndexOf  string_last_index_of_string_int  string.(string, int) int
lowerAscii   string_lower_ascii  string.() string
replace      string_replace_string_string      string.(string, string) string
replace      string_replace_string_string_int  string.(string, string, int) string
split        string_split_string      string.(string) list(string)
split        string_split_string_int  string.(string, int) list(string)
substring    string_substring_int      string.(int) string
substring    string_substring_int_int  string.(int, int) string
trim         string_trim         string.() string
upperAscii   string_upper_ascii  string.() string
strings.quote  strings_quote     (string) string
"""
)

SETS: Final = declarations.read(
    """
sets.contains    list_sets_contains_list    (list(A), list(A)) bool
sets.equivalent  list_sets_equivalent_list  (list(A), list(A)) bool
sets.intersects  list_sets_intersects_list  (list(A), list(A)) bool
"""
)

_COMPARABLE: Final = (
    *("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"),
)


def _per_element() -> str:
    rows = []
    for kind in _COMPARABLE:
        rows += [
            f"isSorted list_{kind}_is_sorted_bool list({kind}).() bool",
            f"min list_{kind}_min_{kind} list({kind}).() {kind}",
            f"max list_{kind}_max_{kind} list({kind}).() {kind}",
            f"sort list_{kind}_sort list({kind}).() list({kind})",
            "@sortByAssociatedKeys "
            f"list_{kind}_sortByAssociatedKeys list(A).(list({kind})) list(A)",
        ]
    rows += [
        f"sum list_{kind}_sum_{kind} list({kind}).() {kind}"
        for kind in ("int", "uint", "double", "duration")
    ]
    return "\n".join(rows)


LISTS: Final = declarations.merge(
    declarations.read(
        """
slice        list_slice         list(A).(int, int) list(A)
flatten      list_flatten       list(list(A)).() list(A)
flatten      list_flatten_int   list(dyn).(int) list(dyn)
lists.range  lists_range        (int) list(int)
distinct     list_distinct      list(A).() list(A)
reverse      list_reverse       list(A).() list(A)
indexOf      list_a_index_of_int       list(A).(A) int
lastIndexOf  list_a_last_index_of_int  list(A).(A) int
"""
    ),
    declarations.read(_per_element()),
)

REGEX: Final = declarations.read(
    """
find     string_find_string          string.(string) string
findAll  string_find_all_string      string.(string) list(string)
findAll  string_find_all_string_int  string.(string, int) list(string)
"""
)

NETWORK: Final = declarations.read(
    """
url             string_to_url         (string) URL
isURL           is_url_string         (string) bool
getScheme       url_get_scheme        URL.() string
getHost         url_get_host          URL.() string
getHostname     url_get_hostname      URL.() string
getPort         url_get_port          URL.() string
getEscapedPath  url_get_escaped_path  URL.() string
getQuery        url_get_query         URL.() map(string, list(string))

ip              string_to_ip          (string) IP
isIP            is_ip                 (string) bool
ip.isCanonical  ip_is_canonical       (string) bool
string          ip_to_string          (IP) string
family          family                IP.() int
isUnspecified   is_unspecified        IP.() bool
isLoopback      is_loopback           IP.() bool
isLinkLocalMulticast  is_link_local_multicast  IP.() bool
isLinkLocalUnicast    is_link_local_unicast    IP.() bool
isGlobalUnicast       is_global_unicast        IP.() bool

cidr            string_to_cidr        (string) CIDR
isCIDR          is_cidr               (string) bool
string          cidr_to_string        (CIDR) string
containsIP      cidr_contains_ip_ip           CIDR.(IP) bool
containsIP      cidr_contains_ip_string       CIDR.(string) bool
containsCIDR    cidr_contains_cidr            CIDR.(CIDR) bool
containsCIDR    cidr_contains_cidr_string     CIDR.(string) bool
ip              cidr_ip               CIDR.() IP
prefixLength    cidr_prefix_length    CIDR.() int
masked          cidr_masked           CIDR.() CIDR
"""
)

FORMAT_NAMES: Final = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue"),
    *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"),
    *("uri", "uuid", "byte", "date", "datetime"),
)

FORMATS: Final = declarations.merge(
    declarations.read(
        """
format.named  format-named     (string) optional(Format)
validate      format-validate  Format.(string) optional(list(string))
"""
    ),
    declarations.read("\n".join(f"format.{n} format-{n} () Format" for n in FORMAT_NAMES)),
)

QUANTITIES: Final = declarations.read(
    """
quantity       string_to_quantity         (string) Quantity
isQuantity     is_quantity_string         (string) bool
sign           quantity_sign              (Quantity) int
isGreaterThan  quantity_is_greater_than   Quantity.(Quantity) bool
isLessThan     quantity_is_less_than      Quantity.(Quantity) bool
compareTo      quantity_compare_to        Quantity.(Quantity) int
asApproximateFloat  quantity_get_float    Quantity.() double
asInteger      quantity_get_int           Quantity.() int
isInteger      quantity_is_integer        Quantity.() bool
add            quantity_add               Quantity.(Quantity) Quantity
add            quantity_add_int           Quantity.(int) Quantity
sub            quantity_sub               Quantity.(Quantity) Quantity
sub            quantity_sub_int           Quantity.(int) Quantity
"""
)

SEMVERS: Final = declarations.read(
    """
semver         string_to_semver           (string) Semver
semver         string_bool_to_semver      (string, bool) Semver
isSemver       is_semver_string           (string) bool
isSemver       is_semver_string_bool      (string, bool) bool
isGreaterThan  semver_is_greater_than     Semver.(Semver) bool
isLessThan     semver_is_less_than        Semver.(Semver) bool
compareTo      semver_compare_to          Semver.(Semver) int
major          semver_major               Semver.() int
minor          semver_minor               Semver.() int
patch          semver_patch               Semver.() int
"""
)

# Without a variable of type Authorizer these functions are only type-checked, never evaluated.
AUTHORIZATION: Final = declarations.read(
    """
path            authorizer_path            Authorizer.(string) Path
group           authorizer_group           Authorizer.(string) Group
serviceAccount  authorizer_serviceaccount  Authorizer.(string, string) Authorizer
resource        groupcheck_resource        Group.(string) Resource
subresource     resourcecheck_subresource  Resource.(string) Resource
namespace       resourcecheck_namespace    Resource.(string) Resource
name            resourcecheck_name         Resource.(string) Resource
fieldSelector   resourcecheck_fieldselector  Resource.(string) Resource
labelSelector   resourcecheck_labelselector  Resource.(string) Resource
check           pathcheck_check            Path.(string) Decision
check           resourcecheck_check        Resource.(string) Decision
allowed         decision_allowed           Decision.() bool
reason          decision_reason            Decision.() string
error           decision_error             Decision.() string
errored         decision_errored           Decision.() bool
"""
)

INCLUDES: Final = declarations.read("includes  includes  dyn.(dyn) bool")

EXTENSIONS: Final = declarations.merge(
    STRINGS, SETS, LISTS, REGEX, NETWORK, FORMATS, QUANTITIES, SEMVERS, AUTHORIZATION
)
