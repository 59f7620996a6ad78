// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
)

// Attach implements service.Attacher. Zun attaches to containers with stdin, and does not end their input.
func (d *driver) Attach(ctx context.Context, to service.Target[instance], attach api.AttachIO) error {
	if err := to.Instance.noSession("attach"); err != nil {
		return err
	}
	uuid, address := to.Instance.UUID, ""
	if _, err := d.client.call(ctx, "attach", http.MethodGet, containers+"/"+uuid+"/attach", nil, nil, &address); err != nil {
		if openstack.StatusOf(err) == http.StatusConflict || errdefs.IsInvalidInput(err) {
			return errdefs.InvalidInputf("%s: Zun attaches to containers that have stdin: use logs -f or exec", err.Error())
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.openSession(ctx, address, attach, func(size url.Values) error {
		_, err := d.client.requestAction(ctx, uuid, "resize", size)
		return err
	})
	if err != nil {
		return err
	}
	if in := attach.Stdin(); in != nil {
		go io.Copy(s, in) //nolint:errcheck // it ends with its input, or with the first write after the session
	}
	for {
		_, data, err := s.ReadMessage()
		if err != nil {
			return ctx.Err() // nil: the container has ended
		}
		if w := attach.Stdout(); w != nil {
			if _, err := w.Write(data); err != nil {
				return err
			}
		}
	}
}
