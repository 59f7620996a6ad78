// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

func newController(opts ...NodeControllerOpt) (*NodeController, error) {
	return NewNodeController(NaiveNodeProvider{}, testNode(), plainClientset().CoreV1().Nodes(), opts...)
}

func testLeases() coordclientset.LeaseInterface {
	return plainClientset().CoordinationV1().Leases(corev1.NamespaceNodeLease)
}

type typedNilLeases struct{ coordclientset.LeaseInterface }

func TestTypedNilLeaseClient(t *testing.T) {
	for name, client := range map[string]coordclientset.LeaseInterface{"nil": nil, "typed nil": (*typedNilLeases)(nil)} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != "client is nil" {
					t.Errorf("panic is %v, want \"client is nil\"", got)
				}
			}()
			_, err := newController(WithNodeEnableLeaseV1(client, 40))
			t.Errorf("a nil lease client was accepted, error %v", err)
		})
	}
}

func TestConflictingLeaseOptions(t *testing.T) {
	for name, second := range map[string]NodeControllerOpt{
		"same option":  WithNodeEnableLeaseV1(testLeases(), 40),
		"other option": WithNodeEnableLeaseV1WithRenewInterval(testLeases(), 40, time.Second),
	} {
		_, err := newController(WithNodeEnableLeaseV1(testLeases(), 40), second)
		if !errors.Is(err, ErrConflictingLeaseControllerConfiguration) || !strings.HasPrefix(err.Error(), "error applying node option: ") {
			t.Errorf("%s: error is %v, want the wrapped conflict", name, err)
		}
	}
}

func TestLeaseNumbers(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{0: 10 * time.Second, 40: 10 * time.Second, 3: 750 * time.Millisecond, 1: 250 * time.Millisecond} {
		c, err := newController(WithNodeEnableLeaseV1(testLeases(), seconds))
		if err != nil {
			t.Errorf("lease of %d s: %v", seconds, err)
			continue
		}
		if c.lease.interval != want {
			t.Errorf("lease of %d s is renewed every %s, want %s", seconds, c.lease.interval, want)
		}
	}
	for name, opt := range map[string]NodeControllerOpt{
		"negative duration":              WithNodeEnableLeaseV1(testLeases(), -1),
		"no duration":                    WithNodeEnableLeaseV1WithRenewInterval(testLeases(), 0, time.Second),
		"no interval":                    WithNodeEnableLeaseV1WithRenewInterval(testLeases(), 40, 0),
		"interval as long as duration":   WithNodeEnableLeaseV1WithRenewInterval(testLeases(), 40, 40*time.Second),
		"negative ping interval":         WithNodePingInterval(-1),
		"negative ping timeout":          WithNodePingTimeout(-1),
		"negative status interval":       WithNodeStatusUpdateInterval(-1),
		"a healthy hook that is missing": WithNodeHealthyHook(nil),
	} {
		if _, err := newController(opt); err == nil || !strings.HasPrefix(err.Error(), "error applying node option: ") {
			t.Errorf("%s: error is %v, want one that names the option", name, err)
		}
	}
}

func TestZeroIntervalsMeanDefaults(t *testing.T) {
	c, err := newController(WithNodePingInterval(0), WithNodeStatusUpdateInterval(0))
	if err != nil {
		t.Fatal(err)
	}
	if c.pingInterval != DefaultPingInterval || c.pingTimeout != DefaultPingInterval || c.statusInterval != DefaultStatusUpdateInterval {
		t.Errorf("intervals are %s, %s, %s; want the defaults", c.pingInterval, c.pingTimeout, c.statusInterval)
	}
	defer func() {
		if got := recover(); got != "Node ping timeout is 0" {
			t.Errorf("panic is %v, want the one for a ping timeout of 0", got)
		}
	}()
	WithNodePingTimeout(0)
}

func TestMissingArgumentsAreErrors(t *testing.T) {
	nodes := plainClientset().CoreV1().Nodes()
	for name, try := range map[string]func() (*NodeController, error){
		"provider":           func() (*NodeController, error) { return NewNodeController(nil, testNode(), nodes) },
		"provider typed nil": func() (*NodeController, error) { return NewNodeController((*pingScript)(nil), testNode(), nodes) },
		"node":               func() (*NodeController, error) { return NewNodeController(NaiveNodeProvider{}, nil, nodes) },
		"client":             func() (*NodeController, error) { return NewNodeController(NaiveNodeProvider{}, testNode(), nil) },
	} {
		if _, err := try(); err == nil || !strings.HasPrefix(err.Error(), "missing node") {
			t.Errorf("%s: error is %v, want one that says what is missing", name, err)
		}
	}
}
