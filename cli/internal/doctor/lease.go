// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// holderAnnotation of a lease names the process that acts for the node, see docs/decisions/0007-two-daemons.md.
const holderAnnotation = "virtual-kubelet.io/holder"

// checkLease checks whether another process acts for the node.
func checkLease(ctx context.Context, e *exam) {
	if e.noNames {
		e.skip("the node has no valid name")
		return
	}
	lease, err := e.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, e.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return
	case apierrors.IsForbidden(err):
		e.skip("%s may not read the lease of the node", e.who())
		return
	case err != nil:
		e.unknown(fmt.Errorf("read the lease of node %s: %w", e.NodeName, err))
		return
	}
	age, alive := e.renewal(lease)
	if !alive {
		return
	}
	text, named := lease.Annotations[holderAnnotation]
	if named && text == "" {
		return // given up
	}
	holder := struct {
		Host string `json:"host"`
		PID  int    `json:"pid"`
	}{}
	_ = json.Unmarshal([]byte(text), &holder) // an unreadable holder has no name
	if holder.Host != "" && holder.Host == e.host {
		e.here = true
		return
	}
	e.holder = "a process that does not say its name, such as a kubelet or an older program"
	if holder.Host != "" {
		e.holder = fmt.Sprintf("process %d on host %s", holder.PID, holder.Host)
	}
	e.found("stop the other one, or give this node another name with --nodename; of two, one waits until the other has ended",
		"%s acts for node %s: it renewed the lease %s ago", e.holder, e.NodeName, age.Round(time.Second))
}

// renewal returns the age of the last renewal, and whether its holder counts as alive.
func (e *exam) renewal(lease *coordinationv1.Lease) (age time.Duration, alive bool) {
	if lease.Spec.RenewTime == nil {
		return 0, false
	}
	lasts := 40 * time.Second
	if lease.Spec.LeaseDurationSeconds != nil {
		lasts = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	age = e.clock.now().Sub(lease.Spec.RenewTime.Time)
	return max(age, 0), age < lasts
}
