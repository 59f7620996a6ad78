// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// leaseTries is the number of requests that a renewal may take if the lease has changed since it was last read: update, read, update or
// create.
const leaseTries = 4

// leaseRenewer renews the lease of the node, which shows that this process is alive. The health of the provider is shown by the Ready
// condition instead. leaseRenewer has its own goroutine, so that other work of the node cannot delay a renewal. With a leaseHolder, the
// lease also records which of several processes may act for the node.
type leaseRenewer struct {
	client          coordclientset.LeaseInterface
	durationSeconds int32
	interval        time.Duration

	// Set before run, then constant.
	name   string
	owners *latest[types.UID] // UIDs of the node object, one for each registration
	gone   func()             // called when the lease was deleted, which happens when its node is deleted
	holder *leaseHolder       // nil: only the name of the node is on the lease

	// Owned by run.
	lease  *coordinationv1.Lease // as last seen, nil if unknown
	held   bool                  // this process held the lease before
	owner  types.UID
	rival  string // another holder that was already logged
	failed bool
}

func (r *leaseRenewer) updateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return r.client.Update(ctx, lease, metav1.UpdateOptions{})
}

// renewedCopy returns a copy of seen, renewed now, with the node as holder. It replaces another name in spec.holderIdentity, because the
// lease of a node belongs to the node. The process that holds the lease is in an annotation, which leaseHolder sets before.
func (r *leaseRenewer) renewedCopy(ctx context.Context, seen *coordinationv1.Lease) *coordinationv1.Lease {
	if holder := ptr.Deref(seen.Spec.HolderIdentity, r.name); holder != r.name && holder != r.rival {
		r.rival = holder
		log.G(ctx).WithField("holder", holder).Warn("spec.holderIdentity of the lease names another holder than this node: replacing it; does another program use the lease of this node?")
	}
	lease := seen.DeepCopy()
	lease.Spec.HolderIdentity = ptr.To(r.name)
	lease.Spec.LeaseDurationSeconds = ptr.To(r.durationSeconds)
	lease.Spec.RenewTime = ptr.To(laterThan(seen.Spec.RenewTime, metav1.NowMicro()))
	lease.OwnerReferences = r.ownedByNode(lease.OwnerReferences)
	r.holder.markLease(lease)
	return lease
}

// laterThan returns now, or the microsecond after seen if the clock was set back since. The control plane does not accept an earlier time
// as a renewal, and would mark the node as unreachable until the clock has caught up.
func laterThan(seen *metav1.MicroTime, now metav1.MicroTime) metav1.MicroTime {
	if seen == nil || seen.Before(&now) {
		return now
	}
	return metav1.NewMicroTime(seen.Add(time.Microsecond))
}

// ownedByNode replaces owner references of kind Node with the current node. The garbage collector deletes a lease whose only owner is a
// node that no longer exists.
func (r *leaseRenewer) ownedByNode(refs []metav1.OwnerReference) []metav1.OwnerReference {
	if r.owner == "" {
		return refs
	}
	node := corev1.SchemeGroupVersion.WithKind("Node")
	others := slices.DeleteFunc(refs, func(ref metav1.OwnerReference) bool {
		return ref.APIVersion == node.GroupVersion().String() && ref.Kind == node.Kind
	})
	return append(others, metav1.OwnerReference{
		APIVersion: node.GroupVersion().String(), Kind: node.Kind, Name: r.name, UID: r.owner,
	})
}

// timeout returns the timeout of one request, so that two requests fit into half of the lease duration.
func (r *leaseRenewer) timeout() time.Duration {
	return min(requestTimeout, time.Duration(r.durationSeconds)*time.Second/4)
}
