// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/virtual-kubelet/virtual-kubelet/cli/internal/doctor"
	"github.com/virtual-kubelet/virtual-kubelet/internal/kubeconfig"
	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// lookAtCertificates is the longest interval between two checks of the files, because a certificate may be replaced at any time.
const lookAtCertificates = time.Hour

// ownCertificate is a certificate file of the node that another program renews.
type ownCertificate struct {
	what, fix string
	read      func() ([]byte, error) // PEM; nil: no certificate
	said      string                 // the last problem; "": none
}

// ownCertificates returns the certificates in the settings. It leaves out certificates that the node itself
// requests: their renewal is reported elsewhere.
func (o *options) ownCertificates() (all []*ownCertificate) {
	if o.BootstrapKubeconfig == "" {
		all = append(all, &ownCertificate{what: "the client certificate of --kubeconfig " + o.Kubeconfig, fix: doctor.RenewClient, read: o.clientCertificate})
	}
	if o.DisableKubeletAPI {
		return all
	}
	for _, file := range []struct{ what, path string }{{"the serving certificate --tls-cert-file ", o.TLSCertFile}, {"the authority in --client-ca-file ", o.ClientCAFile}} {
		if file.path != "" {
			all = append(all, &ownCertificate{what: file.what + file.path, fix: "renew " + file.path, read: func() ([]byte, error) { return os.ReadFile(file.path) }})
		}
	}
	return all
}

// clientCertificate returns the client certificate of the kubeconfig.
func (o *options) clientCertificate() ([]byte, error) {
	config, err := kubeconfig.Load(o.Kubeconfig, o.KubeContext)
	if config == nil || err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	return config.CertData, nil
}

// checkIdentity returns an error if the client certificate belongs to another node: the API server would refuse
// every request.
func (o *options) checkIdentity() error {
	if o.BootstrapKubeconfig != "" || len(o.nodeNames) > 0 {
		return nil
	}
	pem, err := o.clientCertificate()
	if err != nil || pem == nil {
		return nil // the code that makes the clients returns the error
	}
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		return nil // like the error above
	}
	if of := doctor.NodeOf(certs[0]); of != "" && of != o.NodeName {
		problem, fix := doctor.OtherNode(of, o.NodeName)
		return fmt.Errorf("%s: %s", problem, fix)
	}
	return nil
}

// identity returns the name under which the cluster knows the credentials of the node, or "unknown".
func (o *options) identity() string {
	if o.BootstrapKubeconfig != "" {
		return "system:node:" + o.NodeName
	}
	config, err := kubeconfig.Load(o.Kubeconfig, o.KubeContext)
	if err != nil || config == nil {
		config, err = rest.InClusterConfig()
	}
	if err != nil || rest.LoadTLSFiles(config) != nil {
		return "unknown"
	}
	if config.BearerToken == "" && config.BearerTokenFile != "" {
		token, _ := os.ReadFile(config.BearerTokenFile) // without a token, the name is unknown
		config.BearerToken = string(token)
	}
	name := cmp.Or(tokenSubject(config.BearerToken), config.Username)
	if certs, err := cert.ParseCertsPEM(config.CertData); err == nil {
		name = certs[0].Subject.CommonName // the API server prefers a certificate
	}
	return cmp.Or(name, "unknown")
}

// tokenSubject returns the subject that a token of a service account states, or "".
func tokenSubject(token string) string {
	var claims struct {
		Subject string `json:"sub"`
	}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Subject
}

// watchCertificates logs certificates that end soon or have ended, until ctx ends.
func (o *options) watchCertificates(ctx context.Context) error {
	all := o.ownCertificates()
	for len(all) > 0 {
		wait := lookAtCertificates
		for _, c := range all {
			wait = min(wait, c.look(ctx, time.Now()))
		}
		if !sleep.For(ctx, wait) {
			break
		}
	}
	return nil
}

// look logs a change in the state of the certificate, and returns the time until its state may change without a change of the file.
func (c *ownCertificate) look(ctx context.Context, now time.Time) time.Duration {
	wait := lookAtCertificates
	pem, err := c.read()
	if err != nil || pem == nil {
		return wait // the code that uses the file reports this error
	}
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		return wait
	}
	severity, problem, until := doctor.Severity(""), "", ""
	for _, one := range certs {
		if s, p := doctor.Lifetime(one, now); severity != doctor.Error && s != "" {
			severity, problem, until = s, p, one.NotAfter.String()+string(s)
		}
		for _, at := range []time.Time{one.NotBefore, doctor.LateRenewal(one), one.NotAfter} {
			if left := at.Sub(now); left > 0 {
				wait = min(wait, left)
			}
		}
	}
	if until == c.said {
		return wait
	}
	c.said = until
	switch logger := log.G(ctx); severity {
	case doctor.Error:
		logger.Errorf("%s %s: %s", c.what, problem, c.fix)
	case doctor.Warning:
		logger.Warnf("%s %s: %s", c.what, problem, c.fix)
	default:
		logger.Infof("%s was renewed", c.what)
	}
	return wait
}
