// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// agent is the agent of one machine.
type agent interface {
	// Join signs the certificate of the machine, once. Before is the key that the node signed earlier for the machine, and record saves a new key.
	Join(ctx context.Context, before string, record func(ctx context.Context, key string) error) error
	// Give gives the machine its pod. Giving the same pod again is no error. Giving another pod is cell.ErrTaken.
	Give(ctx context.Context, b podjob.Bundle) error
	// Renew replaces objects, tokens and logins of the pod.
	Renew(ctx context.Context, b podjob.Bundle) error
	// SetServices replaces the Services of the cluster that the machine knows.
	SetServices(ctx context.Context, s cell.Services) error
	// Watch reports the state of the machine, now and at each change, until ctx or the connection ends.
	Watch(ctx context.Context, tell func(cell.State)) error
	// Stop stops the pod. The machine keeps running.
	Stop(ctx context.Context, grace time.Duration) error
	Logs(ctx context.Context, container string, opts api.ContainerLogOpts) (io.ReadCloser, error)
	Stream(ctx context.Context, r podjob.Request, e podjob.Ends) error
	Stats(ctx context.Context) (statsv1alpha1.PodStats, error)
	Close()
}

// requestTime is the time limit of a request to a machine or to the cloud.
const requestTime = 30 * time.Second

// openAuthority reads the authority of the node from path. If the file is missing, it makes the authority, and made is true.
func openAuthority(path string) (a *cell.Authority, made bool, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		a, err := cell.ParseAuthority(data)
		if err != nil {
			return nil, false, fmt.Errorf("authorityFile %s: %w", path, err)
		}
		return a, false, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("authorityFile: %w", err)
	}
	a, err = cell.NewAuthority()
	if err != nil {
		return nil, false, err
	}
	if data, err = a.PEM(); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, false, fmt.Errorf("authorityFile: %w", err)
	}
	// The link fails if another process was first. This process then reads the authority of the other process.
	whole, err := os.CreateTemp(filepath.Dir(path), ".authority-")
	if err != nil {
		return nil, false, fmt.Errorf("authorityFile: %w", err)
	}
	defer func() { _ = os.Remove(whole.Name()) }()
	_, err = whole.Write(data)
	if err = errors.Join(err, whole.Sync(), whole.Close()); err == nil {
		err = os.Link(whole.Name(), path)
	}
	if _, missing := os.Stat(path); errors.Is(err, os.ErrExist) && missing == nil { // otherwise path is a link to a missing file
		return openAuthority(path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("authorityFile: %w", err)
	}
	return a, true, nil
}
