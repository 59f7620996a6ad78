// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// nobody is the ID of no container.
const nobody = "00000000-0000-0000-0000-000000000000"

// Examine implements service.Examiner. It logs in, makes a list with the microversion of every request, and
// tries actions that the policy may forbid with a container that does not exist.
func (d *driver) Examine(ctx context.Context) error {
	if _, err := d.List(ctx); err != nil {
		return d.place(err)
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
	if _, err := d.registries(ctx, d.prefix()); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// place adds advice about an address without the expected service.
func (d *driver) place(err error) error {
	var unknown *net.DNSError
	var stranger x509.UnknownAuthorityError
	var refused *net.OpError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: nothing is called %s: look at authURL and the catalog of Keystone, and at the DNS of this machine", err, unknown.Name)
	case errors.As(err, &stranger):
		return fmt.Errorf("%w: look at caFile", err)
	case errors.As(err, &refused):
		return fmt.Errorf("%w: check authURL, the catalog of Keystone, and proxies and firewalls between this machine and them", err)
	}
	return err
}
