// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func checkAPIServer(ctx context.Context, e *exam) {
	if e.rest == nil {
		e.skip("there is no kubeconfig")
		return
	}
	config := rest.CopyConfig(e.rest)
	config.QPS = -1 // a few requests without a rate limit
	config.Timeout = e.Timeout
	config.Wrap(e.clock.watch)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.found("correct the credentials in the kubeconfig", "the credentials cannot be used: %v", err)
		return
	}
	// /version needs no permission, but refuses wrong credentials.
	_, err = client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil || apierrors.IsForbidden(err) {
		e.client = client
		return
	}
	cause, fix := explain(err)
	e.found(fix, "the API server %s %s: %v", config.Host, cause, err)
}

// explain describes why a request to the API server has failed, and the fix.
func explain(err error) (cause, fix string) {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case apierrors.IsUnauthorized(err):
		return "does not know these credentials (401)", "renew the token or the certificate in the kubeconfig; it may be expired, or of another cluster"
	case errors.As(err, &dns):
		return "has a name that cannot be resolved", "correct the server in the kubeconfig, or the DNS of this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections", "see that the API server runs, and that host and port of the server in the kubeconfig are right"
	case errors.As(err, &authority):
		return "has a certificate of an unknown authority", "set certificate-authority-data in the kubeconfig to the authority of this cluster; if the address is right, another machine may intercept the connection"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "has a certificate that has expired or is not valid yet", "renew the API server's certificate, or set the clock of this machine"
	case errors.As(err, &name):
		return "has a certificate for other names", "use a name in the kubeconfig that the certificate has, or set tls-server-name"
	case strings.Contains(err.Error(), "remote error: tls: "): // the type of a TLS alert is not exported
		return "refuses the client certificate", "renew the certificate in the kubeconfig"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "does not speak TLS", "correct scheme and port of the server in the kubeconfig"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "does not answer in time", "see whether a firewall or a proxy (HTTPS_PROXY, NO_PROXY) is in between, and whether the API server is overloaded"
	}
	return "cannot be asked", "read the error, and try kubectl with the same kubeconfig"
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
