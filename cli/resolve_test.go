// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

const fileHead = "apiVersion: virtual-kubelet.io/v1alpha1\nkind: VirtualKubeletConfiguration\n"

// resolveWith resolves args, env and the contents of config.yaml ("" for none). The
// kubelet API is off unless args, env or file say how to serve it.
func resolveWith(t *testing.T, args []string, env map[string]string, file string) (*resolved, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if file != "" {
		if err := os.WriteFile("config.yaml", []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", "config.yaml")
	}
	o := &options{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.define(fs, published.Providers...)
	// The klog flags are global to the process.
	t.Cleanup(func() { _ = o.klog.set.Set("v", "0") })
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o.resolve(fs, func(name string) string { return env[name] })
}

func TestPrecedence(t *testing.T) {
	file := fileHead + "disableKubeletAPI: true\nnodeName: from-file\n"
	env := map[string]string{"DEFAULT_NODE_NAME": "from-env"}
	for _, tc := range []struct {
		name         string
		args         []string
		env          map[string]string
		file         string
		want, origin string
	}{
		{"default", []string{"--disable-kubelet-api"}, nil, "", "virtual-kubelet", "default"},
		{"file", nil, nil, file, "from-file", "config.yaml:4"},
		{"environment over file", nil, env, file, "from-env", "environment DEFAULT_NODE_NAME"},
		{"flag over both", []string{"--nodename", "from-flag"}, env, file, "from-flag", "flag --nodename"},
		{"flag that equals the default", []string{"--nodename", "virtual-kubelet"}, env, file, "virtual-kubelet", "flag --nodename"},
		{"empty environment is none", nil, map[string]string{"DEFAULT_NODE_NAME": ""}, file, "from-file", "config.yaml:4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := resolveWith(t, tc.args, tc.env, tc.file)
			if err != nil {
				t.Fatal(err)
			}
			if r.NodeName != tc.want || r.origins["nodename"] != tc.origin {
				t.Errorf("got %q from %q, want %q from %q", r.NodeName, r.origins["nodename"], tc.want, tc.origin)
			}
		})
	}
}

func TestFileSetsEveryType(t *testing.T) {
	r, err := resolveWith(t, nil, nil, fileHead+`
tlsCertFile: c.pem
tlsPrivateKeyFile: k.pem
port: 1234
kubeAPIQPS: 12.5
fullResyncPeriod: 90s
disableTaint: true
traceTags: {team: a, zone: "1"}
`)
	if err != nil {
		t.Fatal(err)
	}
	if r.Port != 1234 || r.KubeAPIQPS != 12.5 || r.FullResync != 90*time.Second || !r.DisableTaint || r.TLSCertFile != "c.pem" {
		t.Errorf("got %+v", r.options)
	}
	if diff := cmp.Diff(map[string]string{"team": "a", "zone": "1"}, r.TraceTags); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	off := []string{"--disable-kubelet-api"}
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		file string
		want string
	}{
		{"unknown field", off, nil, fileHead + "nodeNmae: x\n", `unknown field "nodeNmae" at config.yaml:3; did you mean nodeName?`},
		{"field twice", off, nil, fileHead + "port: 1\nport: 2\n", `field "port" is given twice at config.yaml:4`},
		{"field type", off, nil, fileHead + "port: many\n", `field "port" at config.yaml:3 is "many", want a whole number`},
		{"field shape", off, nil, fileHead + "port: [1, 2]\n", `field "port" at config.yaml:3 must be one value`},
		{"field without value", off, nil, fileHead + "port:\n", `field "port" at config.yaml:3 has no value`},
		{"no header", off, nil, "port: 1\n", "config.yaml: apiVersion is missing, want apiVersion: virtual-kubelet.io/v1alpha1\n" +
			"config.yaml: kind is missing, want kind: VirtualKubeletConfiguration"},
		{"other kind", off, nil, strings.Replace(fileHead, "VirtualKubelet", "Kubelet", 1), `field "kind" at config.yaml:2 must be VirtualKubeletConfiguration`},
		{"environment", off, map[string]string{"KUBELET_PORT": "x"}, "", `environment variable KUBELET_PORT is "x", want a whole number`},
		{"port", append(off, "--port=70000"), nil, "", `--port 70000: want 0 to 65535`},
		{"node name", append(off, "--nodename=A_b"), nil, "", `--nodename "A_b": a lowercase RFC 1123 subdomain`},
		{"operating system", append(off, "--os=plan9"), nil, "", `--os "plan9": want linux or windows`},
		{"taint effect", off, map[string]string{"VKUBELET_TAINT_EFFECT": "Never"}, "", `--taint-effect "Never": want one of NoSchedule, PreferNoSchedule, NoExecute`},
		{"taint without effect", append(off, "--register-with-taints=gpu"), nil, "", `--register-with-taints "gpu": want KEY=VALUE:EFFECT, with one of the effects NoSchedule,`},
		{"taint of no key", append(off, "--register-with-taints=a b:NoSchedule"), nil, "", `--register-with-taints "a b:NoSchedule": name part must consist of`},
		{"taint twice", append(off, "--register-with-taints=virtual-kubelet.io/provider=x:NoSchedule"), nil, "", `the node has a taint with this key and effect already`},
		{"label", append(off, "--node-labels=a=b c"), nil, "", `--node-labels a=b c: a valid label must be`},
		{"label of the node itself", nil, nil, fileHead + "disableKubeletAPI: true\nnodeLabels: {kubernetes.io/os: windows}\n", `--node-labels kubernetes.io/os=windows: the node sets this label itself`},
		{"annotation", append(off, "--node-annotations=a b=c"), nil, "", `--node-annotations a b: name part must consist of`},
		{"ID of many", append(off, "--nodes=a,b", "--provider-id=x"), nil, "", `--provider-id x: it is of one node`},
		{"workers", append(off, "--pod-sync-workers=0"), nil, "", `--pod-sync-workers 0: want 1 or more`},
		{"drain without time", append(off, "--drain-on-exit", "--drain-timeout=0"), nil, "", `--drain-timeout 0s: want more than 0, and at least --drain-critical-timeout 30s`},
		{"drain with less time than its part", append(off, "--drain-on-exit", "--drain-timeout=20s"), nil, "", `--drain-timeout 20s: want more than 0, and at least --drain-critical-timeout 30s`},
		{"drain in the past", append(off, "--drain-critical-timeout=-1s"), nil, "", `--drain-critical-timeout -1s: want 0 or more`},
		{"node IP", off, map[string]string{"VKUBELET_POD_IP": "here"}, "", `--node-ip "here": want an IP address`},
		{"log level", append(off, "--log-level=loud"), nil, "", `--log-level "loud": want debug, info, warn or error`},
		{"log format", append(off, "--log-format=xml"), nil, "", `--log-format "xml": want text or json`},
		{"reserved tag", append(off, "--trace-tag=nodeName=x"), nil, "", `--trace-tag nodeName: the name is reserved; it is set by the program`},
		{"sample rate", append(off, "--trace-sample-rate=101"), nil, "", `--trace-sample-rate "101": want always, never, or a number from 0 to 100`},
		{"sample rate is no number", append(off, "--trace-sample-rate=NaN"), nil, "", `--trace-sample-rate "NaN": want always`},
		{"trace endpoint", append(off, "--trace-endpoint=localhost:4317"), nil, "", `--trace-endpoint "localhost:4317": want a URL`},
		{"trace exporter", append(off, "--trace-exporter=jaeger"), nil, "", `flag --trace-exporter is gone: traces are sent by OpenTelemetry: use --trace-endpoint`},
		{"open metrics", append(off, "--metrics-addr=:10255"), nil, "", `--metrics-addr ":10255": want a loopback address such as 127.0.0.1:10255`},
		{"open page", append(off, "--debug-addr=0.0.0.0:1"), nil, "", `--debug-addr "0.0.0.0:1": want a loopback address such as 127.0.0.1:10256`},
		{"no certificate", nil, nil, "", `no certificate for the kubelet API: set --tls-cert-file and --tls-private-key-file; or --server-tls-bootstrap; or, for development, --self-signed-serving-certificate; or --disable-kubelet-api`},
		{"certificate without key", nil, map[string]string{"APISERVER_CERT_LOCATION": "c"}, "", `--tls-cert-file and --tls-private-key-file need each other`},
		{"two certificates", []string{"--tls-cert-file=c", "--tls-private-key-file=k", "--self-signed-serving-certificate"}, nil, "", `contradicts --tls-cert-file`},
		{"authentication and none", []string{"--self-signed-serving-certificate", "--client-ca-file=x", "--dangerously-serve-kubelet-api-without-authentication"}, nil, "", `contradicts --client-ca-file`},
		{"old TLS", []string{"--self-signed-serving-certificate", "--tls-min-version=VersionTLS11"}, nil, "", `--tls-min-version VersionTLS11: TLS 1.1 is broken`},
		{"TLS that there is not", []string{"--self-signed-serving-certificate", "--tls-min-version=1.3"}, nil, "", `--tls-min-version 1.3: unknown tls version "1.3"`},
		{"weak suite", []string{"--self-signed-serving-certificate", "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA"}, nil, "", `--tls-cipher-suites: cipher suite TLS_RSA_WITH_AES_128_CBC_SHA has no forward secrecy`},
		{"suite that there is not", []string{"--self-signed-serving-certificate", "--tls-cipher-suites=AES"}, nil, "", `--tls-cipher-suites: Cipher suite AES not supported`},
		{"reviews and no authentication", []string{"--self-signed-serving-certificate", "--review-pod-permissions", "--dangerously-serve-kubelet-api-without-authentication"}, nil, "", `contradicts --review-pod-permissions`},
		{"request and file", []string{"--server-tls-bootstrap", "--tls-cert-file=c", "--tls-private-key-file=k"}, nil, "", `--server-tls-bootstrap contradicts --tls-cert-file`},
		{"request and none", append(off, "--server-tls-bootstrap"), nil, "", `--disable-kubelet-api contradicts`},
		{"requests of many", []string{"--server-tls-bootstrap", "--nodes=a,b"}, nil, "", `--server-tls-bootstrap is for one node`},
		{"bootstrap without a file to write", append(off, "--bootstrap-kubeconfig=b", "--cert-dir=d"), nil, "", `--bootstrap-kubeconfig needs --kubeconfig, the file to write, and --cert-dir`},
		{"bootstrap without a directory", append(off, "--bootstrap-kubeconfig=b", "--kubeconfig=k"), nil, "", `--bootstrap-kubeconfig needs --kubeconfig`},
		{"bootstrap of many", append(off, "--bootstrap-kubeconfig=b", "--kubeconfig=k", "--cert-dir=d", "--nodes=a,b"), nil, "", `--bootstrap-kubeconfig is for the identity of one node`},
		{"served and not", append(off, "--self-signed-serving-certificate"), nil, "", `--disable-kubelet-api contradicts`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := resolveWith(t, slices.Clone(tc.args), tc.env, tc.file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := resolveWith(t, []string{"--config=none.yaml"}, nil, ""); err == nil || !strings.HasPrefix(err.Error(), "read configuration: open none.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestOlderSettings uses every flag and variable of other virtual kubelet programs: each works, or causes a message about its replacement.
func TestOlderSettings(t *testing.T) {
	r, err := resolveWith(t, []string{
		"--kubeconfig=k", "--namespace=ns", "--cluster-domain=c.local", "--nodename=n", "--os=Linux", "--provider=mock",
		"--provider-config=p", "--metrics-addr=127.0.0.1:10255", "--taint=example.com/key", "--pod-sync-workers=3", "--enable-node-lease",
		"--trace-service-name=s", "--trace-tag=a=b", "--trace-tag=c=d", "--trace-sample-rate=50", "--full-resync-period=2m", "--startup-timeout=10s",
		"--stream-idle-timeout=1m", "--stream-creation-timeout=1m", "--log-level=debug", "--klog.v=2", "--klog.logtostderr",
	}, map[string]string{
		"KUBELET_PORT": "10251", "VKUBELET_POD_IP": "192.0.2.1", "APISERVER_CERT_LOCATION": "cert", "APISERVER_KEY_LOCATION": "key",
		"APISERVER_CA_CERT_LOCATION": "ca", "VKUBELET_TAINT_VALUE": "v", "VKUBELET_TAINT_EFFECT": "NoExecute", "JAEGER_USER": "u",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	o := *r.options
	want := options{
		Kubeconfig: "k", ClusterDomain: "c.local", NodeName: "n", OperatingSystem: "linux", Provider: "mock", ProviderConfig: "p",
		MetricsAddr: "127.0.0.1:10255", TaintKey: "example.com/key", TaintValue: "v", TaintEffect: "NoExecute", PodSyncWorkers: 3,
		TraceServiceName: "s", TraceTags: map[string]string{"a": "b", "c": "d"}, TraceSampleRate: "50", FullResync: 2 * time.Minute,
		DrainTimeout: 5 * time.Minute, DrainCriticalTimeout: 30 * time.Second,
		StartupTimeout: 10 * time.Second, PodVisibility: 30 * time.Second, MissingPods: 5 * time.Minute, StreamIdleTimeout: time.Minute, StreamCreationTimeout: time.Minute, MaxStreams: 2000, LogLevel: "debug",
		Port: 10251, NodeIP: "192.0.2.1", TLSCertFile: "cert", TLSPrivateKeyFile: "key", ClientCAFile: "ca",
		KubeAPIQPS: 5000, LogFormat: "text", TLSMinVersion: "VersionTLS12", tlsMinVersion: tls.VersionTLS12,
	}
	o.klog, o.shown = want.klog, nil
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{}, klogFlags{})); diff != "" {
		t.Error(diff)
	}
	if got := r.klog.value("v"); got != "2" {
		t.Errorf("--klog.v: got %s, want 2", got)
	}
	wantWarnings := []string{
		"flag --taint is deprecated: use --taint-key",
		"flag --namespace has no effect: the pods of a node are in all namespaces",
		"flag --enable-node-lease has no effect: the node always has a lease",
		"environment variable JAEGER_USER has no effect: traces are sent by OpenTelemetry: use --trace-endpoint",
		"flag --klog.logtostderr has no effect: the Kubernetes libraries log as the rest does",
	}
	if diff := cmp.Diff(wantWarnings, r.warningsFor("mock")); diff != "" {
		t.Error(diff)
	}
}
