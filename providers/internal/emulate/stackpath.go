// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/stackpath"
)

// stackpathService returns StackPath Edge Compute, with a new client, and its console on a separate port.
func stackpathService(ctx context.Context, b behind) service {
	s := &stackpath.Server{Stack: "stack-emulated", ClientID: "client-emulated", ClientSecret: rand.Text(), Cities: []string{"ORD"}, MostItems: 1000, Fleet: b.sharedFleet()}
	console, address := stackpath.NewConsole(s), ""
	if l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		fmt.Fprintln(os.Stderr, "emulate: there is no console:", err)
	} else {
		address = l.Addr().String()
		context.AfterFunc(ctx, func() { l.Close() })
		go console.Serve(ctx, l)
	}
	return service{
		Handler: s, report: s.Report, operation: func(r *http.Request) string { return stackpath.Operation(r, nil) }, made: stackpathMade, left: s.Left,
		settings: func(url, caFile string) string {
			return fmt.Sprintf(`apiVersion: stackpath.virtual-kubelet.io/v1alpha1
kind: StackPathProviderConfiguration
endpoint: %s
caFile: %s
stackID: %s
clientID: %s
clientSecret: %s
clusterName: demo
cityCode: ORD
console: {address: "%s", hostKey: %s}
capacity: %s
`, url, caFile, s.Stack, s.ClientID, s.ClientSecret, address, console.HostKey(), b.capacity)
		},
		// The description has no quotas. These are our choice: the requests of the provider at 1,000 pods, with
		// a margin.
		rates: []emulator.Rate{
			{Operations: []string{"CreateWorkload", "DeleteWorkload"}, Burst: 200, PerSecond: 30},
			{Operations: []string{"GetWorkloads", "GetWorkload", "GetWorkloadInstances"}, Burst: 1000, PerSecond: 200},
		},
		throttled: stackpath.Refuse(http.StatusTooManyRequests, 8, "too many requests"),
	}
}

// stackpathMade returns the workload in an answer, and the name of its pod.
func stackpathMade(r *http.Request, body, answer []byte) (id, pod string) {
	if stackpath.Operation(r, nil) != "CreateWorkload" {
		return "", ""
	}
	var in, out struct {
		Workload struct {
			ID       string
			Metadata struct{ Labels map[string]string }
		}
	}
	_ = json.Unmarshal(body, &in)    // the service has refused an invalid body
	_ = json.Unmarshal(answer, &out) // an error has no such field
	return out.Workload.ID, in.Workload.Metadata.Labels[identity.TagName]
}
