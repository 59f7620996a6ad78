// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// awaitReady returns when the nodes are ready, or with an error when their agent has ended.
func (m *machine) awaitReady(ctx context.Context, names []string, p *process) error {
	left := make(map[string]bool, len(names))
	for _, name := range names {
		left[name] = true
	}
	for len(left) > 0 {
		w, err := m.watcher.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("watch nodes: %w", err)
		}
		err = followReady(ctx, w, left, p)
		w.Stop()
		if err != nil && !errors.Is(err, errWatchEnded) {
			return err
		}
	}
	return nil
}

// followReady removes ready nodes from the list until it is empty.
func followReady(ctx context.Context, w watch.Interface, left map[string]bool, p *process) error {
	for len(left) > 0 {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return errWatchEnded
			}
			if n, ok := event.Object.(*corev1.Node); ok && isReady(n) {
				delete(left, n.Name)
			}
		case <-p.done:
			return p.endReason()
		case <-ctx.Done():
			return fmt.Errorf("wait for %d nodes more to be ready: %w: %s", len(left), context.Cause(ctx), p.said)
		}
	}
	return nil
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// makeNodes makes the Node objects for an agent that does not register its nodes itself.
func (m *machine) makeNodes(ctx context.Context, names []string, annotations map[string]string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1M"),
	}
	_, err := forAll(ctx, m.cfg.workers, len(names), func(ctx context.Context, i int) error {
		_, err := m.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: names[i], Annotations: annotations},
			Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return nil
}

// dropNodes deletes all nodes and their leases: an agent that follows must not see them.
func (m *machine) dropNodes(ctx context.Context) error {
	if err := m.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete nodes: %w", err)
	}
	err := m.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("delete leases: %w", err)
	}
	return nil
}
