// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// waitForNode waits until the node is Ready.
func (s *EndToEndTestSuite) waitForNode(t *testing.T) {
	t.Helper()
	ready := func(node *corev1.Node) *corev1.NodeCondition {
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		if i < 0 {
			return nil
		}
		return &node.Status.Conditions[i]
	}
	waitFor(s, t, expectation[*corev1.Node]{
		kind:     &corev1.Node{},
		resource: "nodes",
		selector: fields.OneTermEqualSelector("metadata.name", s.config.NodeName),
		what:     fmt.Sprintf("node %s is Ready", s.config.NodeName),
		done: func(node *corev1.Node) bool {
			c := ready(node)
			return c != nil && c.Status == corev1.ConditionTrue
		},
		state: func(node *corev1.Node) string {
			if node == nil {
				return "there is no such node"
			}
			if c := ready(node); c != nil {
				return fmt.Sprintf("condition Ready is %s: %s: %s", c.Status, c.Reason, c.Message)
			}
			return "the node has no condition Ready"
		},
	})
}

// get returns the node's answer for path. The path begins with a slash. A slash at the end matters.
func (s *EndToEndTestSuite) get(ctx context.Context, path string) ([]byte, error) {
	client, err := s.connect()
	if err != nil {
		return nil, err
	}
	body, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + s.config.NodeName + "/proxy" + path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("get %s from node %s: %w", path, s.config.NodeName, err)
	}
	return body, nil
}

// getPods returns the node's list of pods on path.
func (s *EndToEndTestSuite) getPods(ctx context.Context, path string) ([]corev1.Pod, error) {
	body, err := s.get(ctx, path)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("decode %s from node %s: %w", path, s.config.NodeName, err)
	}
	return list.Items, nil
}

// checkRuns returns an error unless the provider's list of pods contains pod (want
// true) or lacks it (want false).
func (s *EndToEndTestSuite) checkRuns(ctx context.Context, pod *corev1.Pod, want bool) error {
	pods, err := s.getPods(ctx, "/runningpods/")
	if err != nil {
		return err
	}
	if got := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return isSamePod(&p, pod) }); got != want {
		return fmt.Errorf("the provider's list of %d pods contains pod %s: %v, want %v", len(pods), pod.Name, got, want)
	}
	return nil
}

// isSamePod compares the namespace and name, because not every backend keeps the UID.
func isSamePod(a, b *corev1.Pod) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}
