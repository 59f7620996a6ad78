// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// patience is the longest time until pods run, and until they are gone.
const patience = 10 * time.Minute

// figure has the counts of one agent.
type figure struct {
	title      string
	life, rest map[string]int // requests by operation
	known      int            // pods that the agent reports as running
	shown      int            // pods that are Running in the API
	runs, gone time.Duration  // from the first request until the last pod
}

// measureAgent runs one agent through the life of pods.
func measureAgent(ctx context.Context, c config, base string, k *cluster, a agent) (figure, error) {
	out := figure{title: a.title}
	dir, err := k.makeCredentials(ctx, a.node)
	if err != nil {
		return out, err
	}
	azure, err := startCloud(dir)
	if err != nil {
		return out, err
	}
	defer azure.stop()
	port := a.port
	if port == 0 {
		if port, err = freePort(); err != nil {
			return out, err
		}
	} else if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", port)); err != nil {
		return out, fmt.Errorf("it listens at one port alone, and somebody else does, maybe a kubelet: %w", err)
	} else if err := l.Close(); err != nil {
		return out, err
	}
	cmd, err := a.command(c, k, azure, dir, a.node, port)
	if err != nil {
		return out, err
	}
	log := filepath.Join(base, a.node+".log")
	ended, end, err := startAgent(cmd, log)
	if err != nil {
		return out, err
	}
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ended:
			cancel(errors.New("the program has ended"))
		case <-ctx.Done():
		}
	}()
	failed := func(what string, err error) (figure, error) {
		text, _ := os.ReadFile(log)
		return out, fmt.Errorf("%s: %w; the end of its log:\n%s", what, err, text[max(0, len(text)-3000):])
	}
	if err := k.awaitCondition(ctx, func() (bool, error) { return k.isNodeReady(ctx, a.node) }); err != nil {
		return failed("wait for the node", err)
	}
	if err := waitFor(ctx, c.settle); err != nil {
		return out, err
	}
	if err := k.makeNamespace(ctx, a.node); err != nil {
		return out, err
	}
	start, begun := time.Now(), len(azure.front.Requests())
	for i := range c.pods {
		if err := k.createPod(ctx, a.node, i); err != nil {
			return out, err
		}
	}
	if err := k.awaitCondition(ctx, func() (bool, error) {
		out.shown, err = k.countRunning(ctx, a.node)
		return out.shown == c.pods, err
	}); err != nil {
		return failed(fmt.Sprintf("%d of %d pods run", out.shown, c.pods), err)
	}
	out.runs = time.Since(start)
	if err := waitFor(ctx, 15*time.Second); err != nil { // the effects of the start must not count
		return out, err
	}
	rest := len(azure.front.Requests())
	if err := waitFor(ctx, c.idle); err != nil {
		return out, err
	}
	rested := len(azure.front.Requests())
	if out.known, err = k.countReported(ctx, dir, a.node, port); err != nil {
		return failed("ask the node for its pods", err)
	}
	start = time.Now()
	asked := len(azure.front.Requests())
	if err := k.client.CoreV1().Pods(a.node).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return out, err
	}
	left := 0
	if err := k.awaitCondition(ctx, func() (bool, error) {
		pods, err := k.client.CoreV1().Pods(a.node).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		left = len(pods.Items)
		return left == 0, nil
	}); err != nil {
		return failed(fmt.Sprintf("%d pods are left", left), err)
	}
	out.gone = time.Since(start)
	all := azure.front.Requests()
	out.life, out.rest = map[string]int{}, map[string]int{}
	for i, r := range all {
		switch {
		case r.Operation == "Token" || r.Operation == "Other":
		case i >= begun && i < rest || i >= asked:
			out.life[r.Operation]++
		case i >= rest && i < rested:
			out.rest[r.Operation]++
		}
	}
	return out, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitCondition polls a condition.
func (c *cluster) awaitCondition(ctx context.Context, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := is()
		if ok || err != nil {
			return err
		}
		if err := waitFor(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *cluster) isNodeReady(ctx context.Context, node string) (bool, error) {
	n, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}), nil
}

// makeNamespace makes a namespace with the service account for pods.
func (c *cluster) makeNamespace(ctx context.Context, name string) error {
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	return err
}

// createPod makes a pod on the node.
func (c *cluster) createPod(ctx context.Context, node string, i int) error {
	_, err := c.client.CoreV1().Pods(node).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i)},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: "program", Command: append([]string{"program"}, program.Program{Stay: program.Forever}.Args()...),
			}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (c *cluster) countRunning(ctx context.Context, node string) (n int, err error) {
	pods, err := c.client.CoreV1().Pods(node).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n, nil
}

// countReported returns how many pods the provider of a node reports as running, with the name and the namespace of a
// pod of the cluster.
func (c *cluster) countReported(ctx context.Context, dir, namespace string, port int) (n int, err error) {
	access := rest.CopyConfig(c.access)
	access.Host, access.CAData, access.CAFile = fmt.Sprintf("https://127.0.0.1:%d", port), nil, filepath.Join(dir, "ca.crt")
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, access.Host+"/runningpods/", nil)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the node answers %s", answer.Status)
	}
	var pods corev1.PodList
	if err := json.NewDecoder(answer.Body).Decode(&pods); err != nil {
		return 0, err
	}
	for i := range pods.Items {
		if pods.Items[i].Namespace == namespace && strings.HasPrefix(pods.Items[i].Name, "p-") {
			n++
		}
	}
	return n, nil
}

func sumCounts(of map[string]int) (n int) {
	for _, m := range of {
		n += m
	}
	return n
}

func formatCounts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

// formatReport returns the text of the report.
func formatReport(c config, ours, peer figure) string {
	perLife := func(f figure) float64 { return float64(sumCounts(f.life)) / float64(c.pods) }
	atRest := func(f figure) float64 { return float64(sumCounts(f.rest)) / c.idle.Minutes() }
	row := func(what, format string, a, b any, ratio string) string {
		return fmt.Sprintf("| %s | "+format+" | "+format+" | %s |\n", what, a, b, ratio)
	}
	ratio := func(a, b float64) string {
		word := "met"
		if a > 0.2*b {
			word = "**not met**"
		}
		return fmt.Sprintf("%.2f × (goal 0.2 ×: %s)", a/b, word)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Provider aci beside azure-aci

%d pods at once on one node, a create and a delete each, on an emulator of ACI whose containers are goroutines, and a real API server. Both
programs come one after the other and get to the emulator through the same proxy. `+"`make bench-aci`"+` writes this page, and builds azure-aci from its module. Requests for tokens
are not counted. Each program ran for %s before its first pod, and %s at rest are counted.

| | %s | %s | |
|---|---|---|---|
`, c.pods, c.settle, c.idle, ours.title, peer.title)
	out.WriteString(row("requests for the life of a pod", "%.2f", perLife(ours), perLife(peer), ratio(perLife(ours), perLife(peer))))
	out.WriteString(row("requests a minute at rest", "%.1f", atRest(ours), atRest(peer), ratio(atRest(ours), atRest(peer))))
	out.WriteString(row("pods that GetPods has, of those that run", "%s", fmt.Sprintf("%d of %d", ours.known, ours.shown), fmt.Sprintf("%d of %d", peer.known, peer.shown), ""))
	out.WriteString(row("from the first create until all run", "%s", ours.runs.Round(100*time.Millisecond), peer.runs.Round(100*time.Millisecond), ""))
	out.WriteString(row("from the delete until all are gone", "%s", ours.gone.Round(100*time.Millisecond), peer.gone.Round(100*time.Millisecond), ""))
	out.WriteString(row("requests of all lives, by operation", "%s", formatCounts(ours.life), formatCounts(peer.life), ""))
	out.WriteString(row("requests at rest, by operation", "%s", formatCounts(ours.rest), formatCounts(peer.rest), ""))
	return out.String()
}
