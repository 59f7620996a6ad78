// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endTime is the time that an agent has to stop its pods when a round is aborted.
const endTime = 30 * time.Second

// endPods lets an agent end its pods when a round is aborted: the agent knows best what they have on this
// machine. Remaining processes are killed when the accounts are closed.
func (m *machine) endPods(node string) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	grace, here := int64(1), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	for _, part := range []string{"-one", "-all"} {
		pods := m.client.CoreV1().Pods(node + part)
		err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, here)
		for err == nil {
			list, listErr := pods.List(ctx, here)
			if listErr != nil || len(list.Items) == 0 {
				break
			}
			err = waitFor(ctx, 100*time.Millisecond)
		}
		if err != nil {
			printProgress("the pods of %s were not ended: %v", node, err)
		}
	}
}

// endProcesses kills an agent's remaining processes, and reports them: the agent should have left none.
func (m *machine) endProcesses(name string) error {
	left := m.accounts.accountOf(name)
	pids, err := left.findProcesses()
	if err != nil || len(pids) == 0 {
		return err
	}
	printProgress("%s has left %d processes", name, len(pids))
	if err := left.killProcesses(); err != nil {
		return fmt.Errorf("end what %s has left: %w", name, err)
	}
	return nil
}
