// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// reservedTags are the attributes that the program sets itself.
var reservedTags = []string{"operatingSystem", "provider", "nodeName"}

var taintEffects = []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}

// validate returns the errors of all settings that cannot work, and parses values into the form that the program uses.
func (o *options) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if problems := validation.IsDNS1123Subdomain(o.NodeName); len(problems) > 0 {
		refuse("--nodename %q: %s", o.NodeName, problems[0])
	}
	if o.NodeIP != "" && net.ParseIP(o.NodeIP) == nil {
		refuse("--node-ip %q: want an IP address", o.NodeIP)
	}
	if len(o.Nodes) > 0 {
		names, err := nodeutil.NodeNames(o.Nodes...)
		if err != nil {
			refuse("--nodes: %w", err)
		}
		o.nodeNames = names
	}
	switch {
	case o.ShareNodes == "":
	case len(o.Nodes) == 0:
		refuse("--share-nodes %s: want --nodes, which every process of the group has", o.ShareNodes)
	case o.DrainOnExit:
		refuse("--share-nodes %s: other processes go on with the pods of this one, so it contradicts --drain-on-exit", o.ShareNodes)
	case o.NoLeaseGuard:
		refuse("--share-nodes %s: nodes are shared by their leases, so it contradicts --disable-lease-guard", o.ShareNodes)
	}
	errs = append(errs, o.checkAccepted()...)
	o.OperatingSystem = strings.ToLower(o.OperatingSystem)
	if o.OperatingSystem != string(corev1.Linux) && o.OperatingSystem != string(corev1.Windows) {
		refuse("--os %q: want linux or windows", o.OperatingSystem)
	}
	if !slices.Contains(taintEffects, o.TaintEffect) {
		refuse("--taint-effect %q: want one of %s", o.TaintEffect, strings.Join(taintEffects, ", "))
	}
	if problems := validation.IsQualifiedName(o.TaintKey); len(problems) > 0 && !o.DisableTaint {
		refuse("--taint-key %q: %s", o.TaintKey, problems[0])
	}
	errs = append(errs, o.validateNode()...)
	for flag, d := range map[string]time.Duration{"pod-visibility-timeout": o.PodVisibility, "missing-pods-quarantine": o.MissingPods} {
		if d <= 0 {
			refuse("--%s %v: want more than 0", flag, d)
		}
	}
	if o.PodSyncWorkers <= 0 {
		refuse("--pod-sync-workers %d: want 1 or more", o.PodSyncWorkers)
	}
	if o.Port < 0 || o.Port > 65535 {
		refuse("--port %d: want 0 to 65535", o.Port)
	}
	for name, d := range map[string]time.Duration{
		"full-resync-period": o.FullResync, "startup-timeout": o.StartupTimeout,
		"drain-timeout": o.DrainTimeout, "drain-critical-timeout": o.DrainCriticalTimeout,
		"stream-idle-timeout": o.StreamIdleTimeout, "stream-creation-timeout": o.StreamCreationTimeout,
	} {
		if d < 0 {
			refuse("--%s %s: want 0 or more", name, d)
		}
	}
	if o.DrainOnExit && (o.DrainTimeout == 0 || o.DrainCriticalTimeout > o.DrainTimeout) {
		refuse("--drain-timeout %s: want more than 0, and at least --drain-critical-timeout %s", o.DrainTimeout, o.DrainCriticalTimeout)
	}
	if o.KubeAPIBurst < 0 {
		refuse("--kube-api-burst %d: want 0 or more", o.KubeAPIBurst)
	}
	errs = append(errs, o.validateServing(), o.validateTraces(), o.validateLogs())
	return errors.Join(errs...)
}

// validateNode checks the labels, annotations and taints of the node and its ID.
func (o *options) validateNode() (errs []error) {
	for key, value := range o.NodeLabels {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--node-labels %s=%s: %s", key, value, problems[0]))
		}
		if key == corev1.LabelOSStable || key == corev1.LabelHostname {
			errs = append(errs, fmt.Errorf("--node-labels %s=%s: the node sets this label itself, by --os and --nodename: remove it", key, value))
		}
	}
	for key := range o.NodeAnnotations {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--node-annotations %s: %s", key, problems[0]))
		}
	}
	seen := map[corev1.Taint]bool{}
	if !o.DisableTaint {
		seen[corev1.Taint{Key: o.TaintKey, Effect: corev1.TaintEffect(o.TaintEffect)}] = true
	}
	o.taints = nil
	for _, text := range o.RegisterWithTaints {
		t, err := parseTaint(text)
		if same := (corev1.Taint{Key: t.Key, Effect: t.Effect}); err == nil && seen[same] {
			err = errors.New("the node has a taint with this key and effect already, by --taint-key or by another one: remove one")
		} else {
			seen[same] = true
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--register-with-taints %q: %w", text, err))
		}
		o.taints = append(o.taints, t)
	}
	if o.ProviderID != "" && len(o.Nodes) > 0 {
		errs = append(errs, fmt.Errorf("--provider-id %s: it is of one node, and --nodes are several", o.ProviderID))
	}
	return errs
}

// parseTaint reads KEY=VALUE:EFFECT, where =VALUE may be missing.
func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	if !slices.Contains(taintEffects, effect) {
		return corev1.Taint{}, fmt.Errorf("want KEY=VALUE:EFFECT, with one of the effects %s", strings.Join(taintEffects, ", "))
	}
	if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
		return corev1.Taint{}, errors.New(problems[0])
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}

// validateServing checks that the user has chosen exactly one way to serve the kubelet API.
func (o *options) validateServing() error {
	var errs []error
	files := o.TLSCertFile != "" || o.TLSPrivateKeyFile != ""
	switch {
	case o.DisableKubeletAPI && (files || o.SelfSigned || o.ServerTLSBootstrap || o.NoAuthentication):
		errs = append(errs, errors.New("--disable-kubelet-api contradicts the settings for how to serve it"))
	case o.DisableKubeletAPI:
	case files && o.SelfSigned:
		errs = append(errs, errors.New("--self-signed-serving-certificate contradicts --tls-cert-file and --tls-private-key-file"))
	case o.ServerTLSBootstrap && (files || o.SelfSigned):
		errs = append(errs, errors.New("--server-tls-bootstrap contradicts --tls-cert-file, --tls-private-key-file and --self-signed-serving-certificate: there is one certificate"))
	case o.ServerTLSBootstrap && len(o.Nodes) > 0:
		errs = append(errs, errors.New("--server-tls-bootstrap is for one node; with --nodes, set --tls-cert-file and --tls-private-key-file"))
	case o.ServerTLSBootstrap:
	case files && (o.TLSCertFile == "" || o.TLSPrivateKeyFile == ""):
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file need each other"))
	case !files && !o.SelfSigned:
		errs = append(errs, errors.New("no certificate for the kubelet API: set --tls-cert-file and --tls-private-key-file; or --server-tls-bootstrap; or, "+
			"for development, --self-signed-serving-certificate; or --disable-kubelet-api to do without kubectl logs and exec"))
	}
	if o.NoAuthentication && o.ClientCAFile != "" {
		errs = append(errs, errors.New("--dangerously-serve-kubelet-api-without-authentication contradicts --client-ca-file"))
	}
	if o.NoAuthentication && o.ReviewPods {
		errs = append(errs, errors.New("--dangerously-serve-kubelet-api-without-authentication contradicts --review-pod-permissions"))
	}
	if o.MetricsAddr != "" && !loopback(o.MetricsAddr) {
		errs = append(errs, fmt.Errorf("--metrics-addr %q: want a loopback address such as 127.0.0.1:10255, because it has no authentication; "+
			"from elsewhere, read /metrics of the kubelet API", o.MetricsAddr))
	}
	if o.DebugAddr != "" && !loopback(o.DebugAddr) {
		errs = append(errs, fmt.Errorf("--debug-addr %q: want a loopback address such as 127.0.0.1:10256, because it has no authentication; "+
			"from elsewhere, read /debug/pods of the kubelet API", o.DebugAddr))
	}
	errs = append(errs, o.validateTLS())
	return errors.Join(errs...)
}

// validateTLS parses the TLS version and the cipher suites, which have the same names as for a kubelet.
func (o *options) validateTLS() error {
	version, err := cliflag.TLSVersion(o.TLSMinVersion)
	if err == nil {
		err = nodeutil.WithMinTLSVersion(version)(&tls.Config{})
	}
	if err != nil {
		err = fmt.Errorf("--tls-min-version %s: %w", o.TLSMinVersion, err)
	}
	suites, suitesErr := cliflag.TLSCipherSuites(o.TLSCipherSuites)
	if suitesErr == nil {
		suitesErr = nodeutil.WithCipherSuites(suites...)(&tls.Config{})
	}
	if suitesErr != nil {
		suitesErr = fmt.Errorf("--tls-cipher-suites: %w", suitesErr)
	}
	o.tlsMinVersion, o.tlsCipherSuites = version, suites
	return errors.Join(err, suitesErr)
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (o *options) validateTraces() error {
	var errs []error
	if _, err := parseEndpoint(o.TraceEndpoint); err != nil {
		errs = append(errs, err)
	}
	if _, err := sampler(o.TraceSampleRate); err != nil {
		errs = append(errs, err)
	}
	for _, tag := range reservedTags {
		if _, ok := o.TraceTags[tag]; ok {
			errs = append(errs, fmt.Errorf("--trace-tag %s: the name is reserved; it is set by the program", tag))
		}
	}
	return errors.Join(errs...)
}

func (o *options) validateLogs() error {
	var errs []error
	if _, err := parseLevel(o.LogLevel); err != nil {
		errs = append(errs, err)
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		errs = append(errs, fmt.Errorf("--log-format %q: want text or json", o.LogFormat))
	}
	if _, err := strconv.Atoi(o.klog.value("v")); err != nil {
		errs = append(errs, fmt.Errorf("--klog.v: %w", err))
	}
	return errors.Join(errs...)
}
