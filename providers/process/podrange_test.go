// SPDX-License-Identifier: Apache-2.0

package process

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func network(prefix, link string, routed bool) machineNetwork {
	return machineNetwork{netip.MustParsePrefix(prefix), link, routed}
}

// TestPodCIDRThatTheMachineUsesIsRefused checks that a pod range that overlaps a network of the machine is
// refused, because pods could not reach that network.
func TestPodCIDRThatTheMachineUsesIsRefused(t *testing.T) {
	networks := []machineNetwork{
		network("192.0.2.0/24", "eth0", false), network("172.17.0.0/16", "docker0", false), network("10.244.3.0/24", "flannel.1", true), network("10.0.0.0/8", "wg0", true),
	}
	for podCIDR, words := range map[string]string{
		"172.17.4.0/22": "172.17.4.0/22 overlaps the network 172.17.0.0/16 of the machine's interface docker0",
		"172.16.0.0/12": "172.17.0.0/16 of the machine's interface docker0",
		"10.244.0.0/16": "10.244.3.0/24 of the machine's interface flannel.1",
		"10.244.3.0/24": "10.244.3.0/24 of the machine's interface flannel.1",
		"10.200.0.0/24": "", // a part of a range with a wider route
		"172.18.0.0/16": "",
	} {
		r := &Runtime{config: Config{StateDir: t.TempDir(), PodCIDR: podCIDR}}
		got, err := r.podRange(t.Context(), networks)
		if words == "" && (err != nil || got.String() != podCIDR) {
			t.Errorf("%s: got %v, %v", podCIDR, got, err)
		}
		if words != "" && (err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "set podCIDR")) {
			t.Errorf("%s: got %v, want %s in it", podCIDR, err, words)
		}
	}
}

// TestNetworksOfThisMachineAreRefusedToPods uses the loopback interface, which every machine has.
func TestNetworksOfThisMachineAreRefusedToPods(t *testing.T) {
	r := &Runtime{config: Config{StateDir: t.TempDir(), PodCIDR: "127.10.0.0/16"}}
	if _, err := r.podRange(t.Context(), machineNetworks(t.Context())); err == nil || !strings.Contains(err.Error(), "127.0.0.0/8 of the machine's interface lo") {
		t.Errorf("got %v", err)
	}
}

// TestPodsKeepTheirAddressesWhenTheMachineJoinsANetwork adds a network later, such as a bridge of containers.
// Without pods, another range is chosen, or the configured range is refused.
func TestPodsKeepTheirAddressesWhenTheMachineJoinsANetwork(t *testing.T) {
	for _, podCIDR := range []string{"", "10.200.0.0/24"} {
		r := &Runtime{config: Config{StateDir: t.TempDir(), PodCIDR: podCIDR}, nodeName: "n1"}
		pod := filepath.Join(r.config.StateDir, "sandboxes", "a")
		if err := os.MkdirAll(pod, 0o700); err != nil {
			t.Fatal(err)
		}
		first, err := r.podRange(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		joined := []machineNetwork{network(first.String(), "cni0", false)}
		if again, err := r.podRange(t.Context(), joined); err != nil || again != first {
			t.Errorf("podCIDR %q, with a pod: got %v, %v, want %v", podCIDR, again, err, first)
		}
		if err := os.Remove(pod); err != nil {
			t.Fatal(err)
		}
		again, err := r.podRange(t.Context(), joined)
		if podCIDR == "" && (err != nil || again == first) {
			t.Errorf("without a pod: got %v, %v, want another range than %v", again, err, first)
		}
		if podCIDR != "" && (err == nil || !strings.Contains(err.Error(), "cni0")) {
			t.Errorf("podCIDR %q, without a pod: got %v", podCIDR, err)
		}
	}
}

// TestDefaultRangeIsFreeOnUsualMachines tries machines with the bridges of other container engines, inside
// networks of all private ranges or with routes to them.
func TestDefaultRangeIsFreeOnUsualMachines(t *testing.T) {
	docker, podman, company := network("172.17.0.0/16", "docker0", false), network("10.88.0.0/16", "cni-podman0", false), network("10.0.0.0/8", "wg0", true)
	for i, c := range []struct {
		networks []machineNetwork
		in       string
		not      []string
	}{
		{nil, "10.88.0.0/13", nil},
		{[]machineNetwork{docker, podman}, "10.88.0.0/13", []string{"10.88.0.0/16"}},
		{[]machineNetwork{docker, podman, network("10.89.0.0/16", "wg0", true)}, "10.88.0.0/13", []string{"10.88.0.0/16", "10.89.0.0/16"}},
		{[]machineNetwork{docker, company}, "172.24.0.0/13", nil},
		{[]machineNetwork{docker, network("10.0.0.0/8", "eth0", false)}, "172.24.0.0/13", nil},
		{[]machineNetwork{podman, company, network("172.16.0.0/12", "wg0", true)}, "10.88.0.0/13", []string{"10.88.0.0/16"}},
	} {
		for _, node := range []string{"n1", "n2", "virtual-kubelet"} {
			got, err := chooseRange(node, c.networks)
			if err != nil || !netip.MustParsePrefix(c.in).Overlaps(got) {
				t.Errorf("case %d: node %s: got %v, %v, want a range in %s", i, node, got, err, c.in)
			}
			for _, not := range c.not {
				if netip.MustParsePrefix(not).Overlaps(got) {
					t.Errorf("case %d: node %s: got %v in %s", i, node, got, not)
				}
			}
		}
	}
	everything := []machineNetwork{network("10.0.0.0/8", "eth0", false), network("172.16.0.0/12", "eth1", false)}
	if _, err := chooseRange("n1", everything); err == nil || !strings.Contains(err.Error(), "podCIDR") {
		t.Errorf("a machine in the networks of all ranges: got %v", err)
	}
}
