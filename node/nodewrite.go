// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nodestate"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// nodeMetadataModes are the ways to write labels and annotations, best first. A node identity may not set every label. Roles for older
// versions of this library allow only the status subresource, which also accepts metadata.
var nodeMetadataModes = []struct {
	subresources []string
	skip         func(label string) bool
}{
	{},
	{skip: nodestate.IsRestrictedLabel},
	{subresources: []string{"status"}},
	{subresources: []string{"status"}, skip: nodestate.IsRestrictedLabel},
}

const modeRestricted = 1

// registerNode finds the node, or creates it. It sets taints and the rest of the spec only at creation, as a kubelet does: afterwards they
// belong to the cluster.
func (r *nodeReconciler) registerNode(ctx context.Context) (err error) {
	ctx, span := trace.StartSpan(ctx, "node.register")
	defer func() {
		span.SetStatus(err)
		span.End()
	}()
	node, err := withTimeout(ctx, requestTimeout, func(ctx context.Context) (*corev1.Node, error) {
		return r.nodes.Get(ctx, r.want.Name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		r.lastReport = time.Time{} // report soon, because the existing status may be old
	case apierrors.IsNotFound(err):
		if node, err = r.createNode(ctx); err != nil {
			return fmt.Errorf("create node %s: %w", r.want.Name, err)
		}
		nodeRegistrations.Inc()
		r.tellReady(nil, &node.Status)
		r.lastReport = time.Now()
	default:
		return fmt.Errorf("get node %s: %w", r.want.Name, err)
	}
	r.recordObject(node)
	return nil
}

func (r *nodeReconciler) createNode(ctx context.Context) (*corev1.Node, error) {
	now := metav1.Now()
	status := r.effectiveStatus()
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.LastHeartbeatTime = now
		c.LastTransitionTime = nodestate.TransitionTime(corev1.NodeCondition{}, *c, now)
	}
	try := func(mode int) (*corev1.Node, error) {
		return withTimeout(ctx, requestTimeout, func(ctx context.Context) (*corev1.Node, error) {
			return r.nodes.Create(ctx, nodestate.New(r.want, status, nodeMetadataModes[mode].skip), metav1.CreateOptions{})
		})
	}
	node, err := try(r.mode)
	if apierrors.IsForbidden(err) && nodeMetadataModes[r.mode].skip == nil && len(r.restrictedLabels()) > 0 {
		refusal := err
		if node, err = try(modeRestricted); err == nil {
			r.mode = modeRestricted
			r.logRestricted(ctx, refusal)
		}
	}
	return node, err
}

// writeNodeStatus patches the status if it differs, or if a report is due.
func (r *nodeReconciler) writeNodeStatus(ctx context.Context) (err error) {
	now := time.Now()
	report := !now.Before(r.nextReport())
	before, status := &r.server.Status, r.effectiveStatus()
	body, err := nodestate.StatusPatch(r.server, status, metav1.NewTime(now), report)
	if err != nil || body == nil {
		if report {
			r.lastReport = now
		}
		return err
	}
	ctx, span := trace.StartSpan(ctx, "node.updateStatus")
	defer func() {
		span.SetStatus(err)
		span.End()
	}()
	err = r.patchNode(ctx, types.StrategicMergePatchType, body, "status")
	if err != nil {
		return fmt.Errorf("update status of node %s: %w", r.want.Name, err)
	}
	r.lastReport = now
	r.tellReady(before, status)
	return nil
}

// writeNodeMetadata patches labels and annotations if they differ. If the patch is forbidden, it tries the other modes and keeps using the
// first that works. If none works, it logs that once, and the node keeps its metadata.
func (r *nodeReconciler) writeNodeMetadata(ctx context.Context) error {
	wanted, err := nodestate.MetadataPatch(r.server, r.want, nil)
	if err != nil || string(wanted) == r.forbidden && time.Since(r.forbiddenAt) < reportEvery {
		return err
	}
	var tried string
	var refusal error
	for mode := r.mode; mode < len(nodeMetadataModes); mode++ {
		m := nodeMetadataModes[mode]
		body, err := nodestate.MetadataPatch(r.server, r.want, m.skip)
		if err != nil {
			return err
		}
		if body == nil { // only the ignored part differs, as after a restart
			if refusal != nil {
				r.mode = mode
				r.logRestricted(ctx, refusal)
			}
			return nil
		}
		key := strings.Join(m.subresources, "/") + string(body)
		if key == tried {
			continue
		}
		tried = key
		err = r.patchNode(ctx, types.MergePatchType, body, m.subresources...)
		if err == nil {
			if mode != r.mode && m.skip != nil {
				r.logRestricted(ctx, refusal)
			}
			r.mode = mode
			return nil
		}
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("update labels and annotations of node %s: %w", r.want.Name, err)
		}
		refusal = err
	}
	if string(wanted) != r.forbidden {
		log.G(ctx).WithError(refusal).Error("the labels and annotations of the node cannot be updated: allow this identity to patch nodes")
	}
	r.forbidden, r.forbiddenAt = string(wanted), time.Now()
	return nil
}

// patchNode sends body and records the response as the current object of the API server. If the node does not exist, the next write
// registers it again.
func (r *nodeReconciler) patchNode(ctx context.Context, kind types.PatchType, body []byte, subresources ...string) error {
	node, err := withTimeout(ctx, requestTimeout, func(ctx context.Context) (*corev1.Node, error) {
		return r.nodes.Patch(ctx, r.want.Name, kind, body, metav1.PatchOptions{}, subresources...)
	})
	r.lastWrite = time.Now()
	if apierrors.IsNotFound(err) {
		r.server = nil
	}
	if err != nil {
		return err
	}
	r.recordObject(node)
	return nil
}

// missingPatches returns the patches that must still be sent, or "" if the node is as desired.
func (r *nodeReconciler) missingPatches() string {
	status, err := nodestate.StatusPatch(r.server, r.effectiveStatus(), metav1.Time{}, false)
	if err != nil {
		return ""
	}
	metadata, err := nodestate.MetadataPatch(r.server, r.want, nodeMetadataModes[r.mode].skip)
	if err != nil {
		return ""
	}
	return string(status) + string(metadata)
}

func (r *nodeReconciler) restrictedLabels() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.want.Labels)), func(key string) bool { return !nodestate.IsRestrictedLabel(key) })
}

func (r *nodeReconciler) logRestricted(ctx context.Context, refusal error) {
	log.G(ctx).WithError(refusal).WithField("labels", r.restrictedLabels()).
		Info("the node goes without labels that a node identity may not set; an administrator can set them")
}
