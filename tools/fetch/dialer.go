package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Dialer connects to the public Internet, and to the hosts that its user
// lists. It is safe for concurrent use.
type Dialer struct {
	// Allow lists hosts that may have any address, see Options.Allow.
	Allow []string
	// Resolver finds addresses; nil means net.DefaultResolver.
	Resolver *net.Resolver

	connecting func(address string) error // sees each connection that is begun, in tests
	interfaces func() ([]net.Addr, error) // stands in for this machine's, in tests
}

// DialContext connects to a host and a port. The address is looked at when the
// connection is begun, after the name has been resolved, so nothing can change
// between the look and the connection. The error wraps a *RefusedError where
// the address is not a public one.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := checkHost(host); err != nil {
		return nil, err
	}
	listed := d.listed(host, port)
	dialer := net.Dialer{Timeout: 10 * time.Second, Resolver: d.Resolver}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		if !listed {
			if err := d.permitted(host, address); err != nil {
				return err
			}
		}
		if d.connecting != nil {
			return d.connecting(address)
		}
		return nil
	}
	return dialer.DialContext(ctx, network, address)
}

// permitted refuses the address of a connection that is about to be made.
func (d *Dialer) permitted(host, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !Public(to.Addr()) || d.near(to.Addr()) {
		return &RefusedError{Host: host, Reason: "it is an address of this machine, of a private network or reserved, and the host is not one of --allow-host"}
	}
	return nil
}

// near reports whether an address is this machine's or one of a network that the
// machine is part of. With IPv6, and on servers, those look public.
func (d *Dialer) near(a netip.Addr) bool {
	interfaces := net.InterfaceAddrs
	if d.interfaces != nil {
		interfaces = d.interfaces
	}
	list, _ := interfaces() // a system that does not tell leaves what Public knows
	return slices.ContainsFunc(list, func(own net.Addr) bool {
		n, ok := own.(*net.IPNet)
		if !ok {
			return false
		}
		size, _ := n.Mask.Size()
		return size > 0 && n.Contains(a.AsSlice())
	})
}

// listed reports whether the user lets a host have any address.
func (d *Dialer) listed(host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, allow := range d.Allow {
		allow = strings.ToLower(allow)
		if allow == host || strings.Trim(allow, "[]") == host || allow == net.JoinHostPort(host, port) {
			return true
		}
	}
	return false
}

// Transport sends requests over the dialer's connections. It knows no proxy
// and decompresses nothing.
func (d *Dialer) Transport() *http.Transport {
	return &http.Transport{
		DialContext:            d.DialContext,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           16,
		MaxConnsPerHost:        4,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}
