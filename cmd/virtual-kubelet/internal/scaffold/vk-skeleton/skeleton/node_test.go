// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodeOffersItsCapacityAndIsReady(t *testing.T) {
	config, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory(t.Context())
	p := newProvider(m, config, "n1", nil)
	n := &corev1.Node{}
	p.ConfigureNode(t.Context(), n)
	if n.Status.Capacity.Cpu().String() != "20" || n.Status.Allocatable.Pods().String() != "20" {
		t.Errorf("got %v, %v", n.Status.Capacity, n.Status.Allocatable)
	}
	for _, c := range n.Status.Conditions {
		if (c.Status == corev1.ConditionTrue) != (c.Type == corev1.NodeReady) {
			t.Errorf("condition %s is %s", c.Type, c.Status)
		}
	}
	if m.fault = errors.New("no connection"); p.Ping(t.Context()) == nil {
		t.Error("the service does not answer, and Ping says that all is well")
	}
}
