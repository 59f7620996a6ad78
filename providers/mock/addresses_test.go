// SPDX-License-Identifier: Apache-2.0

package mock

import "testing"

func TestNoAddressLeft(t *testing.T) {
	p := newProvider(t, Config{PodCIDR: "10.0.0.0/30"})
	create(t, p, newPod("a"), newPod("b"), newPod("c"))
	if err := p.CreatePod(t.Context(), newPod("d")); err == nil {
		t.Error("a fourth pod got an address of a network of three")
	}
	if err := p.DeletePod(t.Context(), newPod("b")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.GetPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, p, newPod("d"))
	if d, _ := p.GetPod(t.Context(), "ns", "d"); d.Status.PodIP != "10.0.0.2" {
		t.Errorf("got %s, want the address that is free again", d.Status.PodIP)
	}
}
