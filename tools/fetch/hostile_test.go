package fetch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

var perRange = flag.Int("addresses", 3, "hostile addresses of each forbidden range")

var errStop = errors.New("the test lets no connection out")

// A trap is a server on every address of this machine. Nobody may come to it.
type trap struct {
	server *httptest.Server
	port   string
	caught atomic.Int64
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	tr := &trap{}
	tr.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "secret")
	}))
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = tr.server.Listener.Close()
	tr.server.Listener = listener
	tr.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			tr.caught.Add(1)
		}
	}
	tr.server.Start()
	t.Cleanup(tr.server.Close)
	_, tr.port, _ = net.SplitHostPort(listener.Addr().String())
	return tr
}

// names is a DNS server whose answers the test chooses.
type names struct {
	resolver *net.Resolver
	answer   func(name string, n int) []netip.Addr // to the nth question for a name
	mu       sync.Mutex
	asked    map[string]int
}

func newNames(t *testing.T, answer func(string, int) []netip.Addr) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n := &names{answer: answer, asked: map[string]int{}}
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := n.reply(buf[:size]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return n
}

func (n *names) reply(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	n.mu.Lock()
	key := q.Type.String() + q.Name.String()
	n.asked[key]++
	addresses := n.answer(strings.TrimSuffix(q.Name.String(), "."), n.asked[key])
	n.mu.Unlock()
	m.Response, m.Additionals = true, nil
	for _, a := range addresses {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	out, _ := m.Pack()
	return out
}

// spellings are the ways to write an IPv4 address that somebody reads as it.
var spellings = map[string]func(b [4]byte) string{
	"usual":       func(b [4]byte) string { return netip.AddrFrom4(b).String() },
	"trailing":    func(b [4]byte) string { return netip.AddrFrom4(b).String() + "." },
	"decimal":     func(b [4]byte) string { return fmt.Sprint(word(b)) },
	"hexadecimal": func(b [4]byte) string { return fmt.Sprintf("0x%x", word(b)) },
	"octal":       func(b [4]byte) string { return fmt.Sprintf("0%o", word(b)) },
	"octal parts": func(b [4]byte) string { return fmt.Sprintf("0%03o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]) },
	"hex parts":   func(b [4]byte) string { return fmt.Sprintf("0x%x.0x%x.0X%X.0x%x", b[0], b[1], b[2], b[3]) },
	"mixed":       func(b [4]byte) string { return fmt.Sprintf("%d.0x%x.0%o.%d", b[0], b[1], b[2], b[3]) },
	"two parts":   func(b [4]byte) string { return fmt.Sprintf("%d.%d", b[0], word(b)&0xffffff) },
	"three parts": func(b [4]byte) string { return fmt.Sprintf("%d.%d.%d", b[0], b[1], word(b)&0xffff) },
	"zeros":       func(b [4]byte) string { return fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]) },
	"wide digits": func(b [4]byte) string { return wide(netip.AddrFrom4(b).String()) },
	"wide dots":   func(b [4]byte) string { return strings.ReplaceAll(netip.AddrFrom4(b).String(), ".", "。") },
	"circled":     func(b [4]byte) string { return circled(netip.AddrFrom4(b).String()) },
	"percent":     func(b [4]byte) string { return strings.ReplaceAll(netip.AddrFrom4(b).String(), "1", "%31") },
	"mapped":      func(b [4]byte) string { return "[::ffff:" + netip.AddrFrom4(b).String() + "]" },
	"mapped hex":  func(b [4]byte) string { return fmt.Sprintf("[::ffff:%x:%x]", word(b)>>16, word(b)&0xffff) },
	"compatible":  func(b [4]byte) string { return fmt.Sprintf("[::%x:%x]", word(b)>>16, word(b)&0xffff) },
	"NAT64":       func(b [4]byte) string { return fmt.Sprintf("[64:ff9b::%x:%x]", word(b)>>16, word(b)&0xffff) },
	"NAT64 own":   func(b [4]byte) string { return fmt.Sprintf("[64:ff9b:1::%x:%x]", word(b)>>16, word(b)&0xffff) },
	"6to4":        func(b [4]byte) string { return fmt.Sprintf("[2002:%x:%x::1]", word(b)>>16, word(b)&0xffff) },
	"Teredo":      func(b [4]byte) string { return fmt.Sprintf("[2001:0:%x:%x::1]", word(b)>>16, word(b)&0xffff) },
	"behind user": func(b [4]byte) string { return "example.com@" + netip.AddrFrom4(b).String() },
	"backslash":   func(b [4]byte) string { return netip.AddrFrom4(b).String() + `\@example.com` },
	"a name":      func(b [4]byte) string { return fmt.Sprintf("x%08x.test", word(b)) },
}

func word(b [4]byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func wide(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r - '0' + '０'
		}
		return r
	}, s)
}

func circled(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '1' && r <= '9' {
			return r - '1' + '①'
		}
		return r
	}, s)
}

// hostile are addresses of every forbidden range, spelled in every way, and
// what else people have tried.
func hostile(port string) []string {
	var out []string
	draw := rand.New(rand.NewPCG(1, 2))
	add := func(host string) {
		out = append(out, "http://"+host+":"+port+"/")
	}
	for _, p := range special {
		for i := range *perRange {
			a := within(p, draw)
			if i == 0 {
				a = p.Addr()
			}
			if a.Is6() {
				add("[" + a.String() + "]")
				continue
			}
			for _, spell := range spellings {
				add(spell(a.As4()))
			}
		}
	}
	for _, host := range []string{
		"localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[fe80::1]", "[fe80::1%25lo]",
		"[::1%25lo]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[100::1]", "[5f00::1]", "[4000::1]", "[fec0::1]", "0", "00", "0x", "0x0", "127.1", "127.0.1", "2130706433", "0x7f000001",
		"0177.0.0.1", "017700000001", "127.0.0.1.0x", "1.1.1.1.1", "256.256.256.256", "99999999999", "a.0x7f", "metadata.google.internal", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "１２７.0.0.1",
		"127。0。0。1", "127.0.0.1%00.example.com", "127.0.0.1%2f.example.com", "..", ".", "a..b", "", " ", "[", "[]", "[::ffff:7f00:1]", "[::127.0.0.1]",
	} {
		add(host)
	}
	return append(out, "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/", "data:text/html,x", "javascript:1",
		"jar:http://127.0.0.1!/", "ldap://127.0.0.1/", "view-source:http://127.0.0.1/", "about:blank", "blob:http://127.0.0.1/1", "ws://127.0.0.1/", "HTTP:127.0.0.1",
		"http:/127.0.0.1:"+port, "http:///127.0.0.1:"+port, "//127.0.0.1:"+port, "127.0.0.1:"+port, "http://127.0.0.1:"+port+"#@example.com", "http://127.0.0.1:0", "http://127.0.0.1:99999",
		"http://127.0.0.1:", "http://user:secret@127.0.0.1:"+port, "http://"+strings.Repeat("a", maxURL), "\x00http://127.0.0.1:"+port, "http://127.0.0.1\r\nHost: x:"+port)
}

// within draws an address of a range.
func within(p netip.Prefix, draw *rand.Rand) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		mask := byte(0xff >> max(0, min(8, p.Bits()-8*i)))
		b[i] |= byte(draw.UintN(256)) & mask
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// addressOf is what the test's DNS says of "x7f000001.test".
func addressOf(name string) []netip.Addr {
	var w uint32
	if _, err := fmt.Sscanf(name, "x%08x.test", &w); err == nil {
		return []netip.Addr{netip.AddrFrom4([4]byte{byte(w >> 24), byte(w >> 16), byte(w >> 8), byte(w)})}
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
}

// guarded is a client that counts the connections that it begins.
func guarded(t *testing.T, dns *names, allow ...string) (*Client, *atomic.Int64) {
	t.Helper()
	begun := new(atomic.Int64)
	c := New(Options{Resolver: dns.resolver, Pace: -1, Allow: allow})
	c.dialer.connecting = func(address string) error {
		to := netip.MustParseAddrPort(address)
		if host := to.Addr().String(); c.dialer.listed(host, fmt.Sprint(to.Port())) {
			return nil
		}
		begun.Add(1)
		return errStop
	}
	return c, begun
}

// No hostile address is connected to: not as it stands, and not as the target
// of a redirect.
func TestHostileAddresses(t *testing.T) {
	tr := newTrap(t)
	dns := newNames(t, func(name string, _ int) []netip.Addr { return addressOf(name) })
	list := hostile(tr.port)
	if len(list) < 500 {
		t.Fatalf("only %d addresses", len(list))
	}
	redirects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	}))
	defer redirects.Close()
	c, begun := guarded(t, dns, strings.TrimPrefix(redirects.URL, "http://"))
	var tested atomic.Int64
	work := make(chan string)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for address := range work {
				if p, err := c.Get(t.Context(), address); err == nil {
					t.Errorf("%q gave %q", address, p.Body)
				} else if strings.Contains(err.Error(), "secret") {
					t.Errorf("%q: the error tells the password: %v", address, err)
				}
				through := redirects.URL + "/?to=" + url.QueryEscape(address)
				if p, err := c.Get(t.Context(), through); err == nil {
					t.Errorf("a redirect to %q gave %q", address, p.Body)
				}
				tested.Add(2)
			}
		})
	}
	for _, address := range list {
		work <- address
	}
	close(work)
	workers.Wait()
	if tr.caught.Load() != 0 || begun.Load() != 0 {
		t.Errorf("%d connections reached the listener, %d were begun, want 0", tr.caught.Load(), begun.Load())
	}
	t.Logf("%d addresses, each alone and behind a redirect (%d fetches): 0 connections", len(list), tested.Load())
}

// The dialer alone, as the browser's proxy uses it, holds too.
func TestDialerAlone(t *testing.T) {
	tr := newTrap(t)
	dns := newNames(t, func(name string, _ int) []netip.Addr { return addressOf(name) })
	c, begun := guarded(t, dns)
	for _, address := range hostile(tr.port) {
		host := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), ":"+tr.port+"/")
		conn, err := c.dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(strings.Trim(host, "[]"), tr.port))
		if err == nil {
			_ = conn.Close()
			t.Errorf("connected to %q", host)
		}
	}
	if tr.caught.Load() != 0 || begun.Load() != 0 {
		t.Errorf("%d connections reached the listener, %d were begun, want 0", tr.caught.Load(), begun.Load())
	}
}

// A name that stands for a public address when it is looked at and for this
// machine when it is connected to: there is only one moment.
func TestRebinding(t *testing.T) {
	tr := newTrap(t)
	public, own := netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("127.0.0.1")
	dns := newNames(t, func(name string, n int) []netip.Addr {
		switch {
		case strings.HasPrefix(name, "both"):
			return []netip.Addr{public, own}
		case n%2 == 1:
			return []netip.Addr{public}
		}
		return []netip.Addr{own}
	})
	c := New(Options{Resolver: dns.resolver, Pace: -1})
	var begun []string
	c.dialer.connecting = func(address string) error {
		begun = append(begun, address)
		return errStop
	}
	for i := range 40 {
		name := []string{"rebind.test", "both.test"}[i%2]
		if _, err := c.Get(t.Context(), "http://"+name+":"+tr.port+"/"); err == nil {
			t.Errorf("%s was fetched", name)
		}
	}
	for _, address := range begun {
		if address != "93.184.215.14:"+tr.port {
			t.Errorf("a connection to %s was begun", address)
		}
	}
	if len(begun) != 30 || tr.caught.Load() != 0 { // half of one name's, all of the other's
		t.Errorf("%d connections begun, %d reached the listener", len(begun), tr.caught.Load())
	}
}

func TestPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2400::1"} {
		if !Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
	for _, s := range []string{"", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::", "::1.1.1.1", "2606:4700::1%eth0", "ff0e::1"} {
		if a, _ := netip.ParseAddr(s); Public(a) {
			t.Errorf("%s is not public", s)
		}
	}
	draw := rand.New(rand.NewPCG(3, 4))
	for _, p := range special {
		for range 100 {
			if a := within(p, draw); Public(a) {
				t.Errorf("%s of %s is not public", a, p)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, address := range hostile("80") {
		f.Add(address)
	}
	f.Add("https://example.com/a?b=c#d")
	f.Fuzz(func(t *testing.T, address string) {
		u, err := Parse(address)
		if err != nil {
			return
		}
		// What is accepted is a name, or an address in its one usual spelling.
		host := u.Hostname()
		if a, err := netip.ParseAddr(host); err == nil && (a.String() != strings.ToLower(host) && !a.Is6() || a.Is4In6()) {
			t.Errorf("%q is accepted for %s", address, a)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			t.Errorf("%q is accepted", address)
		}
	})
}

// What shares a network with this machine is not the public Internet, though its
// address may look like it: with IPv6 every machine at home has such a one.
func TestOwnNetworks(t *testing.T) {
	begun := 0
	d := &Dialer{
		connecting: func(string) error { begun++; return errStop },
		interfaces: func() ([]net.Addr, error) {
			return []net.Addr{
				&net.IPNet{IP: net.ParseIP("93.184.215.14"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:2800:21f::7"), Mask: net.CIDRMask(64, 128)},
				&net.IPNet{IP: net.ParseIP("198.41.0.4"), Mask: net.CIDRMask(32, 32)}, &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)},
			}, nil
		},
	}
	for address, public := range map[string]bool{
		"93.184.215.14:80": false, "93.184.215.200:80": false, "93.184.216.14:80": true, "198.41.0.4:443": false, "198.41.0.5:443": true,
		"[2606:2800:21f::7]:80": false, "[2606:2800:21f::1:2:3]:80": false, "[2606:2800:21f:1::7]:80": true,
	} {
		begun = 0
		_, err := d.DialContext(t.Context(), "tcp", address)
		var refused *RefusedError
		if errors.As(err, &refused) == public || (begun > 0) != public {
			t.Errorf("%s: %v, %d connections begun", address, err, begun)
		}
	}
	d.Allow = []string{"198.41.0.4"}
	if _, err := d.DialContext(t.Context(), "tcp", "198.41.0.4:443"); !errors.Is(err, errStop) {
		t.Errorf("a listed host: %v", err)
	}
}
