// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// The headings of the reference, in their order there.
var groups = []string{groupCluster, groupNode, groupPods, groupAPI, groupLogs, groupTraces}

const (
	groupCluster = "Cluster"
	groupNode    = "Node"
	groupPods    = "Provider and pods"
	groupAPI     = "Kubelet API"
	groupLogs    = "Logs and metrics"
	groupTraces  = "Traces"
)

// settings returns the table, in the order of `config print` and the reference. CONTRIBUTING.md lists the other changes that a new row
// needs.
func settings() []setting {
	return []setting{
		{flag: "config", usage: "configuration `file`", bind: text(func(o *options) *string { return &o.ConfigFile }, "")},

		{flag: "kubeconfig", field: "kubeconfig", env: []string{"KUBECONFIG"}, group: groupCluster,
			usage: "kubeconfig `file`, or a list of files that are merged as kubectl does; if none exists, the service account of the pod is used",
			bind:  text(func(o *options) *string { return &o.Kubeconfig }, defaultKubeconfig())},
		{flag: "context", field: "context", group: groupCluster,
			usage: "`name` of the context in --kubeconfig; by default the current one",
			bind:  text(func(o *options) *string { return &o.KubeContext }, "")},
		{flag: "bootstrap-kubeconfig", field: "bootstrapKubeconfig", group: groupCluster,
			usage: "kubeconfig `file`, for example with a bootstrap token, to request the node's client certificate with while --kubeconfig does not exist or its certificate has expired. The certificate is kept in --cert-dir and renewed, and --kubeconfig is written",
			bind:  text(func(o *options) *string { return &o.BootstrapKubeconfig }, "")},
		{flag: "cert-dir", field: "certDir", group: groupCluster,
			usage: "`directory` for the certificates that the node requests, and their keys",
			bind:  text(func(o *options) *string { return &o.CertDir }, "")},
		{flag: "kube-api-qps", field: "kubeAPIQPS", group: groupCluster,
			usage: "requests per second to the API server for pods, and as many again to read and watch, for all --nodes together; heartbeats and events have limits of their own; negative is no limit",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.Float32Var(&o.KubeAPIQPS, name, 5000, usage)
			}},
		{flag: "kube-api-burst", field: "kubeAPIBurst", group: groupCluster,
			usage: "requests to the API server that may exceed --kube-api-qps at once; 0 is twice --kube-api-qps",
			bind:  number(func(o *options) *int { return &o.KubeAPIBurst }, 0)},

		{flag: "nodename", field: "nodeName", env: []string{"DEFAULT_NODE_NAME"}, group: groupNode, usage: "`name` of the node",
			bind: text(func(o *options) *string { return &o.NodeName }, "virtual-kubelet")},
		{flag: "nodes", field: "nodes", env: []string{"VKUBELET_NODES"}, group: groupNode,
			usage: "`names` of the nodes of this process, instead of --nodename: a list, in which vk-[000-999] stands for a thousand names; needs a service account, as the identity of a node is good for one node only",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringSliceVar(&o.Nodes, name, nil, usage)
			}},
		{flag: "share-nodes", field: "shareNodes", env: []string{"VKUBELET_SHARE_NODES"}, group: groupNode,
			usage: "`name` of a group of processes with the same --nodes, which share them evenly, and take over those of a process that has ended; for providers whose pods every one of them reaches",
			bind:  text(func(o *options) *string { return &o.ShareNodes }, "")},
		{flag: "node-ip", field: "nodeIP", env: []string{"VKUBELET_POD_IP"}, group: groupNode,
			usage: "`address` of the node, at which the API server reaches the kubelet API",
			bind:  text(func(o *options) *string { return &o.NodeIP }, "")},
		{flag: "os", field: "operatingSystem", group: groupNode, usage: "operating `system` of the node: linux or windows",
			bind: text(func(o *options) *string { return &o.OperatingSystem }, "linux")},
		{flag: "cluster-domain", field: "clusterDomain", group: groupNode, usage: "DNS `domain` of the cluster",
			bind: text(func(o *options) *string { return &o.ClusterDomain }, "cluster.local")},
		{flag: "disable-taint", field: "disableTaint", group: groupNode, usage: "register the node without a taint",
			bind: boolean(func(o *options) *bool { return &o.DisableTaint })},
		{flag: "taint-key", field: "taintKey", env: []string{"VKUBELET_TAINT_KEY"}, group: groupNode, usage: "`key` of the taint",
			bind: text(func(o *options) *string { return &o.TaintKey }, "virtual-kubelet.io/provider")},
		{flag: "taint-value", field: "taintValue", env: []string{"VKUBELET_TAINT_VALUE"}, group: groupNode, usage: "`value` of the taint; by default the name in --provider",
			bind: text(func(o *options) *string { return &o.TaintValue }, "")},
		{flag: "taint-effect", field: "taintEffect", env: []string{"VKUBELET_TAINT_EFFECT"}, group: groupNode, usage: "`effect` of the taint: NoSchedule, PreferNoSchedule or NoExecute",
			bind: text(func(o *options) *string { return &o.TaintEffect }, "NoSchedule")},
		{flag: "register-with-taints", field: "registerWithTaints", group: groupNode,
			usage: "further `taints` of the node, as KEY=VALUE:EFFECT, that it has from its creation on; the identity of a node may not change them later",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringSliceVar(&o.RegisterWithTaints, name, nil, usage)
			}},
		{flag: "node-labels", field: "nodeLabels", group: groupNode,
			usage: "labels of the node, as `key=value`, such as topology.kubernetes.io/zone=z1; the identity of a node may set the same labels of kubernetes.io as a kubelet",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringToStringVar(&o.NodeLabels, name, nil, usage)
			}},
		{flag: "node-annotations", field: "nodeAnnotations", group: groupNode, usage: "annotations of the node, as `key=value`; may be repeated",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringToStringVar(&o.NodeAnnotations, name, nil, usage)
			}},
		{flag: "provider-id", field: "providerID", group: groupNode,
			usage: "`ID` by which a cloud knows the node, where the provider gives it none; it can be set once in the life of a Node object",
			bind:  text(func(o *options) *string { return &o.ProviderID }, "")},
		{flag: "disable-lease-guard", field: "disableLeaseGuard", group: groupNode,
			usage: "act for the node even if another process holds its lease; by default one process acts, and others wait until it has ended",
			bind:  boolean(func(o *options) *bool { return &o.NoLeaseGuard })},

		{flag: "provider", field: "provider", group: groupPods, usage: "`name` of the provider; needed only where there are several",
			bind: text(func(o *options) *string { return &o.Provider }, "")},
		{flag: "provider-config", field: "providerConfig", group: groupPods, usage: "configuration `file` of the provider",
			bind: text(func(o *options) *string { return &o.ProviderConfig }, "")},
		{flag: "pod-sync-workers", field: "podSyncWorkers", group: groupPods, usage: "`number` of pods that are synced at the same time",
			bind: number(func(o *options) *int { return &o.PodSyncWorkers }, 10)},
		{flag: "full-resync-period", field: "fullResyncPeriod", group: groupPods, usage: "how often every pod is synced again without a change; 0 is never",
			bind: duration(func(o *options) *time.Duration { return &o.FullResync }, time.Minute)},
		{flag: "startup-timeout", field: "startupTimeout", group: groupPods, usage: "how long the node may take to become ready before the program exits; 0 is no limit",
			bind: duration(func(o *options) *time.Duration { return &o.StartupTimeout }, 0)},
		{flag: "pod-visibility-timeout", field: "podVisibilityTimeout", group: groupPods,
			usage: "how long the backend may take to show a pod that it has accepted, unless it reports the pod as Pending meanwhile; a pod that it does not show by then is lost. Deleting a pod from before a restart that never ran may take as long, unless the provider knows that its answers are complete",
			bind:  duration(func(o *options) *time.Duration { return &o.PodVisibility }, 30*time.Second)},
		{flag: "missing-pods-quarantine", field: "missingPodsQuarantine", group: groupPods,
			usage: "how long many pods must be missing at once, at the backend or in the API server, before any of them is replaced, failed or deleted; the node has the condition PodsMissing meanwhile",
			bind:  duration(func(o *options) *time.Duration { return &o.MissingPods }, 5*time.Minute)},
		{flag: "fail-unsupported", field: "failUnsupported", group: groupPods,
			usage: "fail pods that ask for what the provider does not support; otherwise they stay Pending, and say why",
			bind:  boolean(func(o *options) *bool { return &o.FailUnsupported })},
		{flag: "accept-unenforced", field: "acceptUnenforced", env: []string{"VKUBELET_ACCEPT_UNENFORCED"}, group: groupPods,
			usage: "`features` that a pod runs without, instead of being refused, where the provider does not have them: names such as FSGroup and ReadOnlyRoot, or none. An event of the pod names the fields. By default NoNewPrivileges, Seccomp and Capabilities where each pod is a virtual machine of its own, else none",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringSliceVar(&o.AcceptUnenforced, name, nil, usage)
			}},
		{flag: "drain-on-exit", field: "drainOnExit", group: groupPods,
			usage: "when the program is told to stop, stop the pods first, as a kubelet does at graceful node shutdown; by default they keep running",
			bind:  boolean(func(o *options) *bool { return &o.DrainOnExit })},
		{flag: "drain-timeout", field: "drainTimeout", group: groupPods, usage: "how long the drain of --drain-on-exit may take; pods with a longer grace period get less",
			bind: duration(func(o *options) *time.Duration { return &o.DrainTimeout }, 5*time.Minute)},
		{flag: "drain-critical-timeout", field: "drainCriticalTimeout", group: groupPods,
			usage: "the part of --drain-timeout for the pods that stop last: those of priority 2000000000 or more, such as system-cluster-critical",
			bind:  duration(func(o *options) *time.Duration { return &o.DrainCriticalTimeout }, 30*time.Second)},

		{flag: "disable-kubelet-api", field: "disableKubeletAPI", group: groupAPI, usage: "do not serve the kubelet API: kubectl logs, exec, attach and port-forward will not work",
			bind: boolean(func(o *options) *bool { return &o.DisableKubeletAPI })},
		{flag: "listen-address", field: "listenAddress", group: groupAPI, usage: "`address` to listen on; empty is all addresses",
			bind: text(func(o *options) *string { return &o.ListenAddress }, "")},
		{flag: "port", field: "port", env: []string{"KUBELET_PORT"}, group: groupAPI, usage: "`port` to listen on; with 0 the system chooses one",
			bind: number(func(o *options) *int { return &o.Port }, 10250)},
		{flag: "tls-cert-file", field: "tlsCertFile", env: []string{"APISERVER_CERT_LOCATION"}, group: groupAPI, usage: "PEM `file` with the serving certificate; read again when it changes",
			bind: text(func(o *options) *string { return &o.TLSCertFile }, "")},
		{flag: "tls-private-key-file", field: "tlsPrivateKeyFile", env: []string{"APISERVER_KEY_LOCATION"}, group: groupAPI, usage: "PEM `file` with the private key of the serving certificate",
			bind: text(func(o *options) *string { return &o.TLSPrivateKeyFile }, "")},
		{flag: "server-tls-bootstrap", field: "serverTLSBootstrap", group: groupAPI,
			usage: "request the serving certificate from the API server, and renew it; somebody must approve the requests. It is kept in --cert-dir; without --cert-dir, only in memory",
			bind:  boolean(func(o *options) *bool { return &o.ServerTLSBootstrap })},
		{flag: "client-ca-file", field: "clientCAFile", env: []string{"APISERVER_CA_CERT_LOCATION"}, group: groupAPI,
			usage: "PEM `file` with the authorities whose client certificates are accepted, read again when it changes; bearer tokens that the API server knows are always accepted",
			bind:  text(func(o *options) *string { return &o.ClientCAFile }, "")},
		{flag: "self-signed-serving-certificate", field: "selfSignedServingCertificate", group: groupAPI,
			usage: "make a self-signed serving certificate at start, which no client can verify; for development",
			bind:  boolean(func(o *options) *bool { return &o.SelfSigned })},
		{flag: "tls-min-version", field: "tlsMinVersion", group: groupAPI, usage: "minimum `version` of TLS: VersionTLS12 or VersionTLS13",
			bind: text(func(o *options) *string { return &o.TLSMinVersion }, "VersionTLS12")},
		{flag: "tls-cipher-suites", field: "tlsCipherSuites", group: groupAPI,
			usage: "cipher `suites` of TLS 1.2, by the names that Go and a kubelet have for them; those without forward secrecy and authenticated encryption are refused. By default all others",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringSliceVar(&o.TLSCipherSuites, name, nil, usage)
			}},
		{flag: "dangerously-serve-kubelet-api-without-authentication", field: "dangerouslyServeKubeletAPIWithoutAuthentication", group: groupAPI,
			usage: "serve without authentication: whoever reaches the port can run commands in every pod of the node",
			bind:  boolean(func(o *options) *bool { return &o.NoAuthentication })},
		{flag: "review-pod-permissions", field: "reviewPodPermissions", group: groupAPI,
			usage: "require of every client, the API server included, also the permission for pods/exec, pods/attach, pods/portforward or pods/log in the namespace of the pod",
			bind:  boolean(func(o *options) *bool { return &o.ReviewPods })},
		{flag: "enable-profiling", field: "enableProfiling", group: groupAPI,
			usage: "serve profiles of the program at /debug/pprof of the kubelet API, to clients with the permission for nodes/proxy",
			bind:  boolean(func(o *options) *bool { return &o.EnableProfiling })},
		{flag: "stream-idle-timeout", field: "streamIdleTimeout", group: groupAPI, usage: "how long an exec, attach or port-forward session may be idle",
			bind: duration(func(o *options) *time.Duration { return &o.StreamIdleTimeout }, 4*time.Hour)},
		{flag: "stream-creation-timeout", field: "streamCreationTimeout", group: groupAPI, usage: "how long an exec, attach or port-forward session may take to begin",
			bind: duration(func(o *options) *time.Duration { return &o.StreamCreationTimeout }, 30*time.Second)},
		{flag: "max-streams", field: "maxStreams", group: groupAPI,
			usage: "maximum `number` of exec, attach and port-forward sessions at the same time; more are refused with 429. Negative is no limit",
			bind:  number(func(o *options) *int { return &o.MaxStreams }, 2000)},
		{flag: "max-streams-per-user", field: "maxStreamsPerUser", group: groupAPI,
			usage: "how many of --max-streams one user may have; everybody who comes through an API server counts as one user. 0 is three quarters of --max-streams, negative is no limit",
			bind:  number(func(o *options) *int { return &o.MaxStreamsPerUser }, 0)},

		{flag: "log-level", field: "logLevel", group: groupLogs, usage: "minimum `level` of log lines: debug, info, warn or error",
			bind: text(func(o *options) *string { return &o.LogLevel }, "info")},
		{flag: "log-format", field: "logFormat", group: groupLogs, usage: "`format` of the log, on standard error: text or json",
			bind: text(func(o *options) *string { return &o.LogFormat }, "text")},
		{flag: "metrics-addr", field: "metricsAddress", group: groupLogs,
			usage: "loopback `address` and port to serve /metrics and /livez at without TLS and authentication; empty is none. The kubelet API has them too",
			bind:  text(func(o *options) *string { return &o.MetricsAddr }, "")},
		{flag: "debug-addr", field: "debugAddress", group: groupLogs,
			usage: "loopback `address` and port to serve the page /debug/pods at without TLS and authentication; empty is none. The kubelet API has it too",
			bind:  text(func(o *options) *string { return &o.DebugAddr }, "")},

		{flag: "trace-endpoint", field: "traceEndpoint", group: groupTraces,
			usage: "`URL` to send OpenTelemetry traces to: http(s)://HOST:PORT for OTLP over HTTP, grpc(s)://HOST:PORT over gRPC; empty is none",
			bind:  text(func(o *options) *string { return &o.TraceEndpoint }, "")},
		{flag: "trace-service-name", field: "traceServiceName", group: groupTraces, usage: "service `name` in traces",
			bind: text(func(o *options) *string { return &o.TraceServiceName }, "virtual-kubelet")},
		{flag: "trace-tag", field: "traceTags", group: groupTraces, usage: "attributes of every trace, as `key=value`; may be repeated",
			bind: func(fs *pflag.FlagSet, o *options, name, usage string) {
				fs.StringToStringVar(&o.TraceTags, name, nil, usage)
			}},
		{flag: "trace-sample-rate", field: "traceSampleRate", group: groupTraces, usage: "which traces are sent: always, never, or a `percentage` from 0 to 100",
			bind: text(func(o *options) *string { return &o.TraceSampleRate }, "always")},
	}
}

// defaultKubeconfig returns ~/.kube/config, or "" without a home directory.
func defaultKubeconfig() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}

type binder = func(fs *pflag.FlagSet, o *options, name, usage string)

func text(field func(*options) *string, def string) binder {
	return func(fs *pflag.FlagSet, o *options, name, usage string) { fs.StringVar(field(o), name, def, usage) }
}

func number(field func(*options) *int, def int) binder {
	return func(fs *pflag.FlagSet, o *options, name, usage string) { fs.IntVar(field(o), name, def, usage) }
}

func boolean(field func(*options) *bool) binder {
	return func(fs *pflag.FlagSet, o *options, name, usage string) { fs.BoolVar(field(o), name, false, usage) }
}

func duration(field func(*options) *time.Duration, def time.Duration) binder {
	return func(fs *pflag.FlagSet, o *options, name, usage string) { fs.DurationVar(field(o), name, def, usage) }
}
