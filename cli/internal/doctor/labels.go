// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A usual label of virtual nodes that the admission plugin NodeRestriction lets no node set.
const labelRole, role = "kubernetes.io/role", "agent"

// checkLabels checks whether the node lacks a label that pods for other virtual kubelets select.
func checkLabels(ctx context.Context, e *exam) {
	if e.noNames || !e.isNode() && !e.bootstrap {
		return // other programs set the label themselves
	}
	if !e.bootstrap {
		node, err := e.client.CoreV1().Nodes().Get(ctx, e.NodeName, metav1.GetOptions{})
		switch {
		case err == nil && node.Labels[labelRole] != "":
			return
		case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			e.unknown(fmt.Errorf("read node %s: %w", e.NodeName, err))
			return
		}
	}
	e.hint(fmt.Sprintf("if you have such pods, as an administrator, when the node is registered: kubectl label node %s %s=%s", e.NodeName, labelRole, role),
		"the identity of a node may not set the label %s=%s: pods that select it are not scheduled to node %s", labelRole, role, e.NodeName)
}
