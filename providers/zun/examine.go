// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// nobody is an ID without a container, and a name without a registry.
const nobody = "00000000-0000-0000-0000-000000000000"

// Examine implements service.Examiner. It logs in, lists containers with the microversion of all requests, and tries actions that the policy may
// forbid on a container that does not exist.
func (d *driver) Examine(ctx context.Context) error {
	if _, err := d.List(ctx); err != nil {
		return adviseAddress(err)
	}
	var problems []error
	for _, try := range []struct{ action, method, path string }{
		{"read container", http.MethodGet, ""}, {"read the actions of the container", http.MethodGet, "/container_actions"},
		{"start container", http.MethodPost, "/start"}, {"stop container", http.MethodPost, "/stop"}, {"read the log", http.MethodGet, "/logs"},
		{"run a command", http.MethodPost, "/execute?command=true"}, {"delete container", http.MethodDelete, ""},
	} {
		if _, err := d.client.call(ctx, try.action, try.method, containers+"/"+nobody+try.path, nil, nil, nil); err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	if err := d.client.eachItem(ctx, registries, url.Values{"name": {nobody}}, func(container) {}); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// adviseAddress adds advice about an address that is not of the expected service.
func adviseAddress(err error) error {
	var lost *net.OpError
	var stranger *tls.CertificateVerificationError
	if errors.As(err, &lost) || errors.As(err, &stranger) {
		return fmt.Errorf("%w: check authURL, caFile and the catalog of Keystone, and DNS, proxies and firewalls between this machine and them", err)
	}
	return err
}
