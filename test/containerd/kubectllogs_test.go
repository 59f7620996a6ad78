// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"net"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// loggers has a pod whose container has restarted, and a pod that ends on demand.
const loggers = `
apiVersion: v1
kind: Pod
metadata: {name: twice}
spec:
  nodeName: NODE
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
    - name: c
      image: busybox:1.36
      command: ["sh", "-c", "test -f /data/x && { echo second 1; echo second 2; exec sleep 1000; }; touch /data/x; echo first 1; echo first 2; exit 1"]
      volumeMounts: [{name: data, mountPath: /data}]
---
apiVersion: v1
kind: Pod
metadata: {name: told}
spec:
  nodeName: NODE
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1.36", command: ["sh", "-c", "echo begin; until test -f /tmp/go; do sleep 0.1; done; echo end"]}]
`

func (u user) logs() {
	u.apply(loggers)
	u.awaitPod("told", "is ready", ready)
	s := u.open("logs", "--follow", "told")
	s.hears("begin\n")
	u.do("exec", "told", "--", "touch", "/tmp/go")
	if got := s.ends(0); got != "begin\nend\n" {
		u.Errorf("logs --follow wrote %q until the container ended", got)
	}
	u.await("the second run has written", func() (bool, string) {
		got, _ := u.kubectl(u.Context(), "logs", "twice") // an error while it restarts
		return strings.Contains(got, "second 2"), got
	})
	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z `
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for options, want := range map[string]string{
		"":                                  `second 1\nsecond 2\n`,
		"--previous":                        `first 1\nfirst 2\n`,
		"--previous --tail=1":               `first 2\n`,
		"--previous --follow":               `first 1\nfirst 2\n`,
		"--previous --timestamps":           stamp + `first 1\n` + stamp + `first 2\n`,
		"--timestamps --tail=1":             stamp + `second 2\n`,
		"--tail=0":                          ``,
		"--limit-bytes=8":                   `second 1`,
		"--follow --limit-bytes=10":         `second 1\ns`,
		"--since=1h --tail=1":               `second 2\n`,
		"--since-time=" + future:            ``,
		"--all-containers --prefix":         `\[pod/twice/c\] second 1\n\[pod/twice/c\] second 2\n`,
		"--previous --limit-bytes=3 -c=c":   `fir`,
		"--previous --since-time=" + future: ``,
	} {
		got := u.open(append([]string{"logs", "twice"}, strings.Fields(options)...)...).ends(0)
		if !regexp.MustCompile("^" + want + "$").MatchString(got) {
			u.Errorf("logs %s: %q, want %q", options, got, want)
		}
	}
	s = u.open("logs", "--follow", "--tail=1", "twice")
	s.hears("second 2\n")
	s.interrupt()
	<-s.ended //nolint:errcheck // how it ended does not matter
	if got := u.open("logs", "told", "--previous"); got.ends(1) != "" || !strings.Contains(got.errs.String(), "previous terminated container") {
		u.Errorf("logs --previous of what ran once says %q", got.errs)
	}
}

// metrics checks kubectl top. kubectl top needs metrics-server; this test gets them from the node itself, as metrics-server does. The API
// server does not proxy to loopback addresses, so the node moves to the bridge of its pods.
func (u user) metrics() {
	address := u.bridge(net.ParseIP(u.pod("tools").Status.PodIP))
	if address == "" {
		u.Skip("the pods have no bridge on this machine")
	}
	u.kill()
	credentials := u.api.NodeCredentials(u.T, u.node, address)
	u.args = append(u.args, "--tls-cert-file="+credentials.CertFile, "--tls-private-key-file="+credentials.KeyFile,
		"--node-ip="+address, "--listen-address="+address)
	u.start()
	u.await("the node has moved", func() (bool, string) {
		n, err := u.api.Client.CoreV1().Nodes().Get(u.Context(), u.node, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				return a.Address == address, a.Address
			}
		}
		return false, "it has no address"
	})
	labels := `{namespace="` + u.namespace + `",pod="tools",container="main"} `
	for _, want := range []string{
		"container_cpu_usage_seconds_total" + labels, "container_memory_working_set_bytes" + labels,
		`pod_cpu_usage_seconds_total{namespace="` + u.namespace + `",pod="tools"} `, "node_cpu_usage_seconds_total ", "node_memory_working_set_bytes ",
	} {
		u.await("the metrics have "+want, func() (bool, string) {
			got, err := u.kubectl(u.Context(), "get", "--raw", "/api/v1/nodes/"+u.node+"/proxy/metrics/resource")
			if err != nil {
				return false, err.Error()
			}
			return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(want) + `[0-9.e+]*[1-9]`).MatchString(got), got
		})
	}
}

// bridge returns the address of this machine in the network of the pod.
func (u user) bridge(pod net.IP) string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		u.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.Contains(pod) {
			return n.IP.String()
		}
	}
	return ""
}
