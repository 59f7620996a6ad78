// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/zun"
)

// zunService returns OpenStack Zun with Keystone, and a new application credential.
func zunService(ctx context.Context, b behind) service {
	secret := rand.Text()
	s := &zun.Server{
		Gate:  zun.Gate{Applications: map[string]string{"app-emulated": secret}, Region: "RegionOne"},
		Fleet: b.sharedFleet(), Context: ctx, Slow: 100 * time.Millisecond, Networks: []string{"pods"},
	}
	return service{
		Handler: s, report: s.Report, operation: func(r *http.Request) string { return zun.Operation(r, nil) }, made: zunMade, left: s.Left,
		groupOf: func(id string) string { return id[:strings.LastIndex(id, "-")] }, // each start has a number of its own
		settings: func(url, caFile string) string {
			return fmt.Sprintf(`apiVersion: zun.virtual-kubelet.io/v1alpha1
kind: ZunProviderConfiguration
identity: {authURL: %q, applicationCredentialID: app-emulated, applicationCredentialSecret: %s}
caFile: %s
clusterName: demo
networks: [pods]
emptyDirGiB: 1
capacity: %s
`, url+"/identity/v3", secret, caFile, b.capacity)
		},
		throttled: zun.Refuse(http.StatusTooManyRequests, "too-many-requests", "too many requests"), // Zun itself has no such limits
		rates:     []emulator.Rate{},
	}
}

// zunMade returns the container in an answer, and the name of its pod.
func zunMade(r *http.Request, _, answer []byte) (id, pod string) {
	if zun.Operation(r, nil) != "CreateContainer" {
		return "", ""
	}
	var out struct {
		UUID   string
		Labels map[string]string
	}
	_ = json.Unmarshal(answer, &out) // an error has no such field
	return out.UUID, out.Labels[identity.TagName]
}
