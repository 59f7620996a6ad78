// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// readmePolicy returns the actions of the policy in the README.
func readmePolicy(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```json\n")
	block, _, _ = strings.Cut(block, "```")
	var policy struct {
		Statement []struct {
			Effect string
			Action []string
		}
	}
	if err := json.Unmarshal([]byte(block), &policy); err != nil || !found {
		t.Fatalf("README.md has no policy: %v", err)
	}
	actions := map[string]bool{}
	for _, s := range policy.Statement {
		for _, a := range s.Action {
			actions[strings.ToLower(a)] = s.Effect == "Allow"
		}
	}
	return actions
}

// action returns the action of a request, by the vendor's table of actions, or "" for a request that CCI does
// not have. The table has no action for exec; the action of logs stands in for it.
func (c *cloud) action(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	prefix, network := []string{"apis", "cci", "v2"}, []string{"apis", "yangtse", "v2"}
	if c.api == API10 {
		prefix, network = []string{"api", "v1"}, []string{"apis", "networking.cci.io", "v1beta1"}
	}
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "update", http.MethodDelete: "delete"}[r.Method]
	kind := "namespaceSubResource"
	switch {
	case hasPrefix(parts, network):
		kind, parts = "network", parts[len(network):]
	case hasPrefix(parts, prefix):
		parts = parts[len(prefix):]
	default:
		return ""
	}
	if len(parts) == 0 || parts[0] != "namespaces" {
		return ""
	}
	switch {
	case len(parts) <= 2:
		if len(parts) == 1 && verb == "get" {
			verb = "list"
		}
		kind = "namespace"
	case len(parts) == 3:
		if verb == "get" {
			verb = "list"
		}
	case len(parts) == 5 && (parts[2] != "pods" || parts[4] != "log" && parts[4] != "exec"):
		return ""
	case len(parts) == 5 && parts[4] == "exec":
		verb = "get"
	}
	resources := []string{"pods", "configmaps", "secrets"}
	if kind == "network" {
		resources = []string{"networks"}
	}
	if len(parts) > 2 && !slices.Contains(resources, parts[2]) {
		return ""
	}
	return strings.ToLower("CCI:" + kind + ":" + verb)
}

func hasPrefix(parts, prefix []string) bool {
	return len(parts) > len(prefix) && slices.Equal(parts[:len(prefix)], prefix)
}

// logQuery has the supported parameters of a request for a log.
var logQuery = []string{"container", "follow", "insecureSkipTLSVerifyBackend", "limitBytes", "pretty", "previous", "sinceSeconds", "tailLines", "timestamps"}

// wrongPod returns why CCI refuses a pod, or "".
func (c *cloud) wrongPod(body []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return err.Error()
	}
	version := "cci/v2"
	if c.api == API10 {
		version = "v1"
	}
	if fields["apiVersion"] != version || fields["kind"] != "Pod" {
		return fmt.Sprintf("got a %v of %v", fields["kind"], fields["apiVersion"])
	}
	if why := unknownField(c.api, "PodSpec", fields["spec"]); why != "" {
		return "unknown field " + why
	}
	var pod corev1.Pod
	if err := json.Unmarshal(body, &pod); err != nil {
		return err.Error()
	}
	for _, rule := range podRules {
		if why := rule.broken(&pod); why != "" && (rule.api == "" || rule.api == c.api) {
			return rule.name + ": " + why
		}
	}
	var cpu, memory float64
	for i := range pod.Spec.Containers {
		cpu += pod.Spec.Containers[i].Resources.Limits.Cpu().AsApproximateFloat64()
		memory += pod.Spec.Containers[i].Resources.Limits.Memory().AsApproximateFloat64() / (1 << 30)
	}
	if c.api == API10 {
		return wrongSum(cpu, memory)
	}
	return wrongSize(pod.Annotations["resource.cci.io/pod-size-specs"], cpu, memory)
}

// wrongSum returns why a pod's size breaks API 1.0's page of constraints, or "".
func wrongSum(cpu, memory float64) string {
	quarters, whole := cpu*4, memory
	switch {
	case quarters != float64(int(quarters)) || cpu < 0.25 || cpu > 32 && cpu != 48 && cpu != 64:
		return fmt.Sprintf("%g CPUs", cpu)
	case whole != float64(int(whole)) || memory < 1 || memory > 512 || memory < 2*cpu || memory > 8*cpu:
		return fmt.Sprintf("%g GiB with %g CPUs", memory, cpu)
	}
	return ""
}

// flavors has each size of API 2.0.
const flavors = `0.25: 0.5 1 2
0.5: 0.5 1 2 3 4
1: 1 2 3 4 5 6 7 8
2: 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
4: 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
8: 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64
16: 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128
32: 32 64 128 256
48: 96 192 384
64: 128 256 512`

// wrongSize returns why API 2.0 does not have a size, or why the size has no room for the containers' requests,
// or "".
func wrongSize(spec string, cpu, memory float64) string {
	left, right, _ := strings.Cut(spec, "_")
	has, errCPU := strconv.ParseFloat(left, 64)
	hasMemory, errMemory := strconv.ParseFloat(right, 64)
	if errCPU != nil || errMemory != nil {
		return "the size is " + spec
	}
	for _, line := range strings.Split(flavors, "\n") {
		of, list, _ := strings.Cut(line, ": ")
		if of == strconv.FormatFloat(has, 'g', -1, 64) && slices.Contains(strings.Fields(list), strconv.FormatFloat(hasMemory, 'g', -1, 64)) {
			if cpu > has || memory > hasMemory {
				return fmt.Sprintf("%g CPUs and %g GiB do not fit into %s", cpu, memory, spec)
			}
			return ""
		}
	}
	return "there is no size " + spec
}

// unknownField returns a field that the API does not document, or "".
func unknownField(api, of string, value any) string {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			if f := unknownField(api, of, v); f != "" {
				return f
			}
		}
	case map[string]any:
		fields, has := documented[of]
		for name, v := range value {
			if !has {
				break
			}
			next, known := fields[name]
			if !known && (api == API20 || !slices.Contains(alsoIn10[of], name)) {
				return of + "." + name
			}
			if f := unknownField(api, next, v); f != "" {
				return f
			}
		}
	}
	return ""
}
