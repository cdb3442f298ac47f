package fetch

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// special are the ranges that are not the public Internet: IANA's registries
// of special-purpose addresses for IPv4 and IPv6 as of 2025, with what they
// call globally reachable and no web server has, multicast, and the cloud
// services that answer on addresses of the public range. Of IPv6 only 2000::/3
// is public at all.
var special = prefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // carrier-grade NAT; a cloud's metadata at 100.100.100.200
	"127.0.0.0/8",       // loopback
	"168.63.129.16/32",  // a cloud's wire server
	"169.254.0.0/16",    // link-local; the clouds' metadata at 169.254.169.254
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments
	"192.0.2.0/24",      // documentation
	"192.31.196.0/24",   // AS112
	"192.52.193.0/24",   // AMT
	"192.88.99.0/24",    // 6to4 relays
	"192.168.0.0/16",    // private
	"192.175.48.0/24",   // AS112
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, and broadcast
	"2001::/23",         // protocol assignments: Teredo, ORCHID, benchmarks
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4, with an IPv4 address inside
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

var global = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address is one of the public Internet. Those that
// carry another address inside (IPv4-mapped, NAT64, 6to4) are not.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !global.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Parse reads an address as people write it and checks its spelling. The error
// is a *RefusedError.
func Parse(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	if len(address) > maxURL {
		return nil, &RefusedError{Reason: "the address is longer than 8 KiB"}
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, &RefusedError{Reason: "it is not the address of a page"}
	}
	if u.Scheme == "" {
		return nil, &RefusedError{Reason: "the address does not begin with http:// or https://"}
	}
	return u, checkURL(u)
}

// checkURL refuses addresses whose spelling says already that they are no page
// of the public web. What a name stands for is seen when it is connected to.
func checkURL(u *url.URL) error {
	refuse := func(reason string) error { return &RefusedError{Host: u.Host, Reason: reason} }
	if u.Scheme != "http" && u.Scheme != "https" {
		return refuse("only http and https are fetched, not " + strconv.Quote(u.Scheme))
	}
	if u.User != nil {
		u.Host = u.Hostname() // without what may be a password
		return refuse("an address with a user name in it is not fetched")
	}
	if u.Opaque != "" || u.Host == "" || u.Hostname() == "" {
		return refuse("the address has no host")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 || p[0] == '0' {
			return refuse("the port is not a number from 1 to 65535")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return refuse("the port is empty")
	}
	return checkHost(u.Hostname())
}

// dots are the characters that a browser reads as the dot of a name.
var dots = strings.NewReplacer("。", ".", "．", ".", "｡", ".")

// checkHost refuses spellings of an address that are not the usual one: numbers
// in other bases, fewer than four parts, digits of other scripts, and IPv4 in
// IPv6. Resolvers differ in what they read in them.
func checkHost(host string) error {
	refuse := func(reason string) error { return &RefusedError{Host: host, Reason: reason} }
	if strings.ContainsAny(host, "%\\/@?# \t\r\n\x00") || strings.ContainsFunc(host, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return refuse("the host has a character that no host has")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Is4In6() || a.Zone() != "" {
			return refuse("the address is not spelled in the usual way")
		}
		return nil
	}
	folded := strings.TrimSuffix(dots.Replace(norm.NFKC.String(host)), ".")
	if strings.Contains(folded, ":") {
		return refuse("the address is not spelled in the usual way")
	}
	last := folded[strings.LastIndexByte(folded, '.')+1:]
	if number(last) {
		return refuse("the address is not spelled in the usual way")
	}
	if folded == "" || last == "" || strings.Contains(folded, "..") || strings.HasPrefix(folded, ".") {
		return refuse("the host is not a name")
	}
	return nil
}

// number reports whether the last part of a host makes a browser read all of it
// as an IPv4 address: digits, or 0x and hexadecimal digits.
func number(label string) bool {
	digits := func(r rune) bool { return r < '0' || r > '9' }
	if label != "" && !strings.ContainsFunc(label, digits) {
		return true
	}
	rest, ok := strings.CutPrefix(strings.ToLower(label), "0x")
	return ok && !strings.ContainsFunc(rest, func(r rune) bool { return digits(r) && (r < 'a' || r > 'f') })
}

// port is the port of an address, told or not.
func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
