// SPDX-License-Identifier: Apache-2.0

package compat

const (
	nodePath     = "github.com/virtual-kubelet/virtual-kubelet/node"
	apiPath      = nodePath + "/api"
	nodeutilPath = nodePath + "/nodeutil"
)

// grown names the fields that structs of the public API have beyond api.txt, each with its reason. Only
// configuration may grow: programs fill it by field names, and no program was found that converts it or writes
// it without field names. Structs that carry data are converted, so they must not grow.
var grown = map[string]map[string]string{
	nodePath + ".PodControllerConfig": {
		"NodeName":              "the Node authorizer allows live reads by node only",
		"OperatingSystem":       "a pod for another system must fail and not run",
		"NodeAllocatable":       "resourceFieldRef falls back to what the node has",
		"NodeAddresses":         "status.hostIP falls back to the address of the node",
		"AcceptUnenforced":      "a program may want pods to run without what its service does not enforce",
		"FailUnsupported":       "a program may want pods that ask too much to fail and not wait",
		"PollInterval":          "how often to ask a provider without PodNotifier",
		"PodVisibilityTimeout":  "backends differ in how late they show a new pod",
		"MissingPodsQuarantine": "how long many missing pods are doubted",
		"SetNodeCondition":      "the node says that pods are in quarantine",
		"ProviderCallTimeout":   "a provider that hangs must not hold a pod for ever",
	},
	apiPath + ".PodHandlerConfig": {
		"GetConfig":        "serves /configz",
		"GetDebug":         "serves /debug/pods",
		"GetFlags":         "serves /flagz",
		"GetMetricsProbes": "serves /metrics/probes",
		"GetPod":           "a request about a pod of another node is refused before the provider sees it",
		"Health":           "serves /healthz",
		"HealthChecks":     "serves /healthz/{name}",
		"Live":             "serves /livez",
		"Metrics":          "serves /metrics",
		"Profiling":        "serves /debug/pprof",
		"SetVerbosity":     "serves /debug/flags/v",
		"StreamLimits":     "sessions are bounded for all routes together",
		"Version":          "serves /statusz",
	},
	nodeutilPath + ".NodeConfig": {
		"KubeContext":       "a kubeconfig may have several contexts",
		"HeartbeatClient":   "pods must not delay a heartbeat",
		"KubeAPIQPS":        "limit of a client that the node makes",
		"KubeAPIBurst":      "limit of a client that the node makes",
		"EnableProfiling":   "passed to PodHandlerConfig.Profiling",
		"Flags":             "passed to PodHandlerConfig.GetFlags",
		"SetVerbosity":      "passed to PodHandlerConfig.SetVerbosity",
		"MaxStreams":        "passed to PodHandlerConfig.StreamLimits",
		"MaxStreamsPerUser": "passed to PodHandlerConfig.StreamLimits",
		"DisableLeaseGuard": "a program that elects a leader of its own need not be guarded against a second daemon",
		"ShareNodes":        "the name under which processes share their nodes; empty, as in programs that stand, is none",
		"bootstrap":         "set by an option; the old struct had unexported fields too, so nobody can convert it",
		"clientCAs":         "as bootstrap",
		"fleet":             "as bootstrap",
		"mux":               "as bootstrap",
		"renewCertificate":  "as bootstrap",
		"reviewPods":        "as bootstrap",
		"servingRequests":   "as bootstrap",
		"unauthenticated":   "as bootstrap",
	},
	nodeutilPath + ".ProviderConfig": {
		"Recorder":  "the node fills it, and a provider's test by name; providers had to make recorders of their own",
		"APIServer": "as Recorder; pods in a network of their own reach the API server by the node",
		"Listed":    "as Recorder; who mends in the background must not take what is not listed yet for gone",
	},
	nodeutilPath + ".WebhookAuthConfig": {
		"ReviewPods": "options of the program set it by name",
	},
}
