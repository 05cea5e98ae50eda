package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"usher/internal/base/problem"
)

// urlMax bounds an address, in bytes.
const urlMax = 2000

// Target is where messages go.
type Target struct {
	URL string
	// Insecure lets them travel without encryption to another machine. The administrator of the
	// installation says so, where the line between the two is their own.
	Insecure bool
}

// Check refuses an address to which nothing is sent, in words.
func (t Target) Check() error {
	parsed, err := url.Parse(t.URL)
	switch {
	case err != nil || len(t.URL) > urlMax || parsed.Hostname() == "" || parsed.Opaque != "" || parsed.Fragment != "":
		return problem.Invalid("webhook_url_unreadable", nil)
	case parsed.User != nil:
		return problem.Invalid("webhook_url_with_password", nil)
	case parsed.Scheme == "http" && !t.Insecure && !t.Local():
		return problem.Invalid("webhook_url_plain", problem.Facts{"host": parsed.Host})
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return problem.Invalid("webhook_url_unreadable", nil)
	}
	if ip, err := netip.ParseAddr(parsed.Hostname()); err == nil && t.checkIP(ip) != nil {
		return problem.Invalid("webhook_address_refused", problem.Facts{"host": parsed.Host})
	}
	return nil
}

// Host is what may be shown of the address: its path or query may hold a token.
func (t Target) Host() string {
	parsed, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// Local tells whether the address names this machine itself.
func (t Target) Local() bool {
	parsed, err := url.Parse(t.URL)
	if err != nil {
		return false
	}
	host := strings.ToLower(parsed.Hostname())
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// errAddress says that a name leads to an address to which nothing is sent.
var errAddress = errors.New("nothing is sent to this address")

// metadata are addresses at which clouds give their machines' keys away, beside the link-local ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
}

// translated is the prefix under which a network without IPv4 reaches IPv4 addresses (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// checkIP judges an address that was found for the host, at the moment of connecting: whatever was
// looked up before may be answered otherwise by then. Private networks are allowed, because schools
// run such servers there.
func (t Target) checkIP(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	switch {
	case ip.IsLoopback():
		if !t.Local() { // a name that leads here was not meant to
			return errAddress
		}
		return nil
	case ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errAddress
	case strings.HasPrefix(strings.ToLower(t.URL), "http:") && !t.Insecure:
		return errAddress // “localhost” led elsewhere
	}
	for _, one := range metadata {
		if ip == one {
			return errAddress
		}
	}
	return nil
}

// control is called with each address before it is connected to.
func (t Target) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", errAddress, address)
	}
	return t.checkIP(at.Addr())
}
