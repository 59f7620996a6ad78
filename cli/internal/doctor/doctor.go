// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// Config has the settings of the node to examine.
type Config struct {
	// Problems are the wrong settings.
	Problems []Problem

	NodeName, NodeIP string
	// Kubeconfig is a file, or a list of files as in $KUBECONFIG. If it does not exist, the service account of
	// the pod is used.
	Kubeconfig string
	// KubeContext is the context in the kubeconfig; "" for the current one.
	KubeContext string
	// BootstrapKubeconfig gets the node its first certificate; "" for none.
	BootstrapKubeconfig string
	// RequestsCertificate means that the node requests its serving certificate from the cluster. CertDir is where it keeps
	// the certificate; "" for nowhere.
	RequestsCertificate bool
	CertDir             string
	// ManyNodes means that the process runs several nodes.
	ManyNodes bool
	// SharesNodes means that other processes run the same nodes.
	SharesNodes bool
	// AdminKubeconfig is the kubeconfig of a user with permissions to use nodes/proxy and list DaemonSets; ""
	// for the node's own.
	AdminKubeconfig string

	// Serve means that the node serves the kubelet API, on the port of ListenAddress; port 0 is any free port.
	Serve         bool
	ListenAddress string
	Port          int
	// CertFile and KeyFile are the serving certificate and key; "" if the certificate comes from elsewhere.
	CertFile, KeyFile string
	// ClientCAFile holds the certificate authorities of its callers; "" for none.
	ClientCAFile string
	// NoAuthentication means that callers are not authenticated.
	NoAuthentication bool

	// Provider makes the provider, for the cluster of client; client is nil if the cluster does not answer. The
	// result is nil if the provider cannot be pinged.
	Provider func(ctx context.Context, client kubernetes.Interface) (Pinger, error)
	// Node is the node as it will be registered, before the provider adds anything.
	Node *corev1.Node
	// Declared is the declaration of the pod features that the backend supports; nil if the provider has none.
	Declared *capability.Declaration
	// Timeout bounds each check.
	Timeout time.Duration
}

// Problem is a wrong setting.
type Problem struct {
	Err error
	// From is the origin of the setting; "" if unknown.
	From string
}

// Pinger is a provider with a health check of its backend.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Adviser is a Pinger with reports on the provider's programs.
type Adviser interface {
	// Advise returns their versions, and advice about some of them.
	Advise(ctx context.Context) (versions []string, advice []Advice)
}

// Advice is a problem without effect on running pods, and its fix.
type Advice struct{ Problem, Fix string }

// check is one check. It reports findings with the methods of exam, and reports nothing if it passes.
type check struct {
	name string
	// online checks need the API server.
	online bool
	run    func(ctx context.Context, e *exam)
}

// checks are ordered so that an earlier finding can explain a later one.
var checks = []check{
	{"configuration", false, checkConfiguration},
	{"kubeconfig", false, checkKubeconfig},
	{"client-certificate", false, checkClientCertificate},
	{"api-server", false, checkAPIServer},
	{"clock", true, checkClock},
	{"identity", true, checkIdentity},
	{"rights", true, checkRights},
	{"labels", true, checkLabels},
	{"webhook-authentication", true, checkReviews},
	{"certificate-requests", true, checkRequests},
	{"lease", true, checkLease},
	{"serving-certificate", false, checkServingCertificate},
	{"client-authorities", false, checkClientCA},
	{"port", false, checkPort},
	{"reachable", true, checkReachable},
	{"provider", false, checkProvider},
	{"daemonsets", true, checkDaemonSets},
}

// exam is one run of all checks.
type exam struct {
	Config
	report *Report
	name   string // of the running check

	rest      *rest.Config         // nil: no kubeconfig
	client    kubernetes.Interface // nil: no requests to the API server are possible
	clock     *clock
	bootstrap bool   // rest can only request a certificate
	user      string // our user name; "" if unknown
	here      bool   // the node's own process runs on this host
	holder    string // the process that holds the lease of the node; "" for none
	port      net.Listener
	host      string
	noNames   bool // the name of the node is invalid
}

// Run makes all checks. It ends with ctx.
func Run(ctx context.Context, c Config) *Report {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	e := &exam{Config: c, clock: &clock{}, report: &Report{Node: c.NodeName, Findings: []Finding{}, Passed: []string{}, Skipped: []Note{}, Unknown: []Note{}}}
	e.host, _ = os.Hostname() // without a name, no process counts as running on this host
	defer func() {
		if e.port != nil {
			_ = e.port.Close()
		}
	}()
	for _, k := range checks {
		e.do(ctx, k)
	}
	return e.report
}

func (e *exam) do(ctx context.Context, k check) {
	e.name = k.name
	before := e.size()
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	if k.online && e.client == nil {
		e.skip("the API server cannot be asked")
	} else {
		k.run(ctx, e)
	}
	if e.size() == before {
		e.report.Passed = append(e.report.Passed, k.name)
	}
}

func (e *exam) size() int {
	return len(e.report.Findings) + len(e.report.Skipped) + len(e.report.Unknown)
}

// found records a problem and its fix.
func (e *exam) found(fix, problem string, args ...any) { e.add(Error, fix, problem, args...) }

// warn records a possible problem and its fix.
func (e *exam) warn(fix, problem string, args ...any) { e.add(Warning, fix, problem, args...) }

// hint records correct but surprising behavior.
func (e *exam) hint(fix, text string, args ...any) {
	e.report.Hints = append(e.report.Hints, Finding{Check: e.name, Severity: Hint, Problem: fmt.Sprintf(text, args...), Fix: fix})
}

func (e *exam) add(severity Severity, fix, problem string, args ...any) {
	e.report.Findings = append(e.report.Findings, Finding{Check: e.name, Severity: severity, Problem: fmt.Sprintf(problem, args...), Fix: fix})
}

// skip records why a check is not done.
func (e *exam) skip(reason string, args ...any) {
	e.report.Skipped = append(e.report.Skipped, Note{e.name, fmt.Sprintf(reason, args...)})
}

// unknown records why a check did not finish.
func (e *exam) unknown(err error) {
	e.report.Unknown = append(e.report.Unknown, Note{e.name, err.Error()})
}
