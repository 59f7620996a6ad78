// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// nullWriters is the number of concurrent requests of the null agent.
const nullWriters = 32

// The statuses are the same for every pod. Real agents have to compose them.
const (
	nullRunning = `{"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],` +
		`"conditions":[{"type":"Initialized","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"Ready","status":"True"}],` +
		`"containerStatuses":[{"name":"app","image":"example.com/app:1","imageID":"","ready":true,"restartCount":0,` +
		`"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}`
	nullEnded = `{"status":{"phase":"Succeeded",` +
		`"conditions":[{"type":"ContainersReady","status":"False"},{"type":"Ready","status":"False"}],` +
		`"containerStatuses":[{"name":"app","image":"example.com/app:1","imageID":"","ready":false,"restartCount":0,` +
		`"state":{"terminated":{"exitCode":0,"startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:01Z"}}}]}}`
	nullDelete = `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`
)

// runNull runs the null agent. It has one watch, without a cache. It sends one patch for a new pod, and a patch and the deletion for a
// deleted pod. It never retries and has no state. args are a kubeconfig file and the name of a node; without a name the agent acts for
// every pod.
func runNull(ctx context.Context, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: " + nullCommand + " KUBECONFIG [NODE]")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1
	cfg.ContentType, cfg.AcceptContentTypes = protobuf, protobuf+",application/json"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	opts := metav1.ListOptions{ResourceVersion: "0"}
	if len(args) == 2 {
		opts.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", args[1]).String()
	}
	n := &nullRun{client: client.CoreV1().RESTClient(), work: make(chan *corev1.Pod, 1<<14)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(n.work)
	for range nullWriters {
		wg.Go(func() { n.write(ctx) })
	}
	said := sync.OnceValue(func() error {
		_, err := os.NewFile(3, "progress").WriteString("ready\n")
		return err
	})
	for ctx.Err() == nil { // the API server ends a watch that it cannot serve fast enough
		w, err := client.CoreV1().Pods("").Watch(ctx, opts)
		if err != nil {
			return fmt.Errorf("watch pods: %w", err)
		}
		if err := said(); err != nil {
			return fmt.Errorf("say that it is ready: %w", err)
		}
		if opts.ResourceVersion, err = n.queueEvents(w, opts.ResourceVersion); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// nullRun is the null agent at work.
type nullRun struct {
	client rest.Interface
	work   chan *corev1.Pod
}

// queueEvents queues the work for each event until the watch ends, and returns the version of its last event.
func (n *nullRun) queueEvents(w watch.Interface, version string) (string, error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return "", fmt.Errorf("watch pods: %w: %v", errWatchEnded, event.Object)
		}
		version = pod.ResourceVersion
		isNew := event.Type == watch.Added && pod.Status.Phase == corev1.PodPending
		isDeleted := event.Type == watch.Modified && pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning
		if isNew || isDeleted {
			n.work <- pod
		}
	}
	return version, nil
}

// write does the queued work, one pod after the other.
func (n *nullRun) write(ctx context.Context) {
	for pod := range n.work {
		if err := nullWrite(ctx, n.client, pod); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "null agent:", err)
		}
	}
}

// nullWrite does the work for one pod. It does not decode answers.
func nullWrite(ctx context.Context, client rest.Interface, pod *corev1.Pod) error {
	status := nullRunning
	if pod.DeletionTimestamp != nil {
		status = nullEnded
	}
	err := client.Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource("status").Body([]byte(status)).Do(ctx).Error()
	if err != nil || pod.DeletionTimestamp == nil {
		return err
	}
	return client.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SetHeader("Content-Type", "application/json").Body([]byte(nullDelete)).Do(ctx).Error()
}
