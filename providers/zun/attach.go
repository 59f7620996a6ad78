// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Attach implements service.Attacher. Zun attaches to containers with stdin, and does not end their input.
func (d *driver) Attach(ctx context.Context, to service.Target[instance], attach api.AttachIO) error {
	if err := to.Instance.noSession("attach"); err != nil {
		return err
	}
	uuid := to.Instance.UUID
	var address string
	if _, err := d.client.call(ctx, "attach", http.MethodGet, containers+"/"+uuid+"/attach", nil, nil, &address); err != nil {
		if statusOf(err) == http.StatusConflict || errdefs.IsInvalidInput(err) {
			return errdefs.InvalidInputf("%s: Zun attaches to containers that have stdin: use logs -f or exec", err.Error())
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := d.open(ctx, address)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	go s.resize(ctx, attach, func(ctx context.Context, size url.Values) error {
		_, err := d.client.do(ctx, uuid, "resize", size)
		return err
	})
	if in := attach.Stdin(); in != nil {
		go func() { // it ends with its input, or with the first write after the session
			buffer := make([]byte, 8<<10)
			for {
				n, err := in.Read(buffer)
				if n > 0 && s.write(buffer[:n]) != nil || err != nil {
					return
				}
			}
		}()
	}
	err = s.receive(ctx, func(data []byte) (bool, error) {
		if w := attach.Stdout(); w != nil {
			_, err := w.Write(data)
			return err != nil, err
		}
		return false, nil
	})
	if errors.Is(err, errClosed) { // the container has ended
		return nil
	}
	return err
}
