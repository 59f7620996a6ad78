// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestRoutesHaveTheirInterfaces checks that routes without an interface are listed too. A CNI network sets such
// routes for address ranges that it has given away.
func TestRoutesHaveTheirInterfaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs the rights of root")
	}
	path := filepath.Join(t.TempDir(), "ns")
	if err := New(path); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Remove(path); err != nil {
			t.Error(err)
		}
	}()
	var got []Route
	err := Do(path, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		for text, kind := range map[string]int{"10.99.0.0/16": unix.RTN_UNICAST, "10.98.0.0/26": unix.RTN_BLACKHOLE} {
			_, to, err := net.ParseCIDR(text)
			if err != nil {
				return err
			}
			route := netlink.Route{Dst: to, Type: kind}
			if kind == unix.RTN_UNICAST {
				route.LinkIndex = lo.Attrs().Index
			}
			if err := netlink.RouteAdd(&route); err != nil {
				return err
			}
		}
		got, err = Routes()
		return err
	})
	want := []Route{{netip.MustParsePrefix("10.98.0.0/26"), "none"}, {netip.MustParsePrefix("10.99.0.0/16"), "lo"}}
	slices.SortFunc(got, func(a, b Route) int { return a.To.Addr().Compare(b.To.Addr()) })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
