// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestLeaseIsHeldForTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 0))
		lease := api.lease()
		if ptr.Deref(lease.Spec.HolderIdentity, "") != testNodeName || ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) != DefaultLeaseDuration {
			t.Errorf("lease is %+v, want held by the node for 40 s", lease.Spec)
		}
		want := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: testNodeName, UID: api.node().UID}
		if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0] != want {
			t.Errorf("owners are %+v, want %+v", lease.OwnerReferences, want)
		}
		api.taken("")
		time.Sleep(time.Hour)
		if n := len(api.taken("update lease")); n < 359 || n > 361 {
			t.Errorf("the lease was renewed %d times in an hour, want about 360", n)
		}
	})
}

func TestLeaseOwnerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		lease := api.lease().DeepCopy()
		lease.OwnerReferences = append(lease.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "x"})
		if _, err := api.others.CoordinationV1().Leases(lease.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		// The next renewal detects the change by a conflict.
		once := true
		api.setFault(func(_ context.Context, request string) error {
			if request == "update lease" && once {
				once = false
				return apierrors.NewConflict(coordinationv1.Resource("leases"), testNodeName, errors.New("changed"))
			}
			return nil
		})
		api.deleteNode()
		time.Sleep(time.Second)
		node, owners := api.node(), api.lease().OwnerReferences
		if len(owners) != 2 || owners[0].Kind != "ConfigMap" || owners[1].UID != node.UID || node.UID != "uid-2" {
			t.Errorf("owners are %+v, want the foreign one and the new node %s", owners, node.UID)
		}
	})
}

// The lease was renewed by a clock that is an hour ahead, of this machine before it was corrected or of another machine. The control plane
// accepts only a later time as a renewal.
func TestLeaseTimeNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		ahead := metav1.NewMicroTime(time.Now().Add(time.Hour))
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(testNodeName), RenewTime: &ahead}}
		lease.Name = testNodeName
		if _, err := api.others.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		last := ahead
		for range 6 {
			now := *api.lease().Spec.RenewTime
			if !last.Before(&now) {
				t.Fatalf("renewed at %s after %s, want a later time", now, last)
			}
			last = now
			time.Sleep(11 * time.Second)
		}
		time.Sleep(time.Hour)
		if now := api.lease().Spec.RenewTime; now.After(time.Now()) {
			t.Errorf("renewed at %s an hour later, want the time of the clock, which has caught up", now)
		}
	})
}

func TestLeaseDeletedIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		if err := api.others.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(t.Context(), testNodeName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if owners := api.lease().OwnerReferences; len(owners) != 1 || owners[0].UID != api.node().UID {
			t.Errorf("owners of the new lease are %+v, want the node", owners)
		}
	})
}

func TestLeaseStolenIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: testNodeName, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("thief")},
		})
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		if holder := ptr.Deref(api.lease().Spec.HolderIdentity, ""); holder != testNodeName {
			t.Errorf("holder is %q, want the node", holder)
		}
	})
}

func TestLeaseIsRenewedWhilePingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{script: hangUntilDone}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if age := time.Since(api.lease().Spec.RenewTime.Time); age > 10*time.Second {
			t.Errorf("the lease was renewed %s ago, want at most 10 s: the daemon lives", age)
		}
	})
}

func TestLeaseIsNotBehindOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.setFault(func(ctx context.Context, request string) error {
			if strings.Contains(request, "node") {
				return hangUntilDone(ctx)
			}
			return nil
		})
		node := testNode()
		node.Labels["new"] = "yes"
		p.say(node)
		for range 60 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if age := time.Since(api.lease().Spec.RenewTime.Time); age > 10*time.Second {
				t.Fatalf("the lease was renewed %s ago while node requests hang, want at most 10 s", age)
			}
		}
	})
}

func TestLeaseIsRenewedSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.setFault(func(context.Context, string) error { return errAPIDown })
		time.Sleep(10 * time.Minute)
		api.setFault(nil)
		healed := time.Now()
		time.Sleep(leaseMaxRetry)
		synctest.Wait()
		if renewed := api.lease().Spec.RenewTime.Time; renewed.Before(healed) {
			t.Errorf("the lease was renewed %s before the API server came back, want after", healed.Sub(renewed))
		}
	})
}

// TestRefusedRenewalIsSentAgain: after a 429 the lease is unchanged, so it is not read first. During many refusals the read might fail as
// well.
func TestRefusedRenewalIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.setFault(func(_ context.Context, request string) error {
			if strings.Contains(request, "lease") {
				return apierrors.NewTooManyRequests("come back later", 0)
			}
			return nil
		})
		api.taken("") // count from now on
		time.Sleep(time.Minute)
		api.setFault(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(api.taken("get lease")); n != 0 {
			t.Errorf("the lease was read %d times, want not at all", n)
		}
		if age := time.Since(api.lease().Spec.RenewTime.Time); age > 10*time.Second {
			t.Errorf("the lease was renewed %s ago, want at most 10 s", age)
		}
	})
}
