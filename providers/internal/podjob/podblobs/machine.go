// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// maxRoot is the longest path of a root directory. podjob has a socket below it, and the path of a socket has at most 107 bytes.
const maxRoot = 80

// lastTime bounds each request to the storage, and the report of a failure at the end.
const lastTime = 10 * time.Second

// Run runs the pod of the package in the working directory. The job and the machine are names for its status;
// root is the data directory of the machine, hidden from containers. The error is ErrClaimed if an earlier run
// has the pod.
func Run(ctx context.Context, job, machine, root string) error {
	data, err := os.ReadFile(PackageFile)
	if err != nil {
		return err
	}
	var p Package
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read %s: %w", PackageFile, err)
	}
	// The package has secrets. A later run downloads the package again.
	if err := os.Remove(PackageFile); err != nil {
		return err
	}
	if root != "" && len(root) <= maxRoot { // it is on the data disk of the machine, if there is one
		if err := os.Setenv("TMPDIR", root); err != nil {
			return err
		}
	}
	logs, err := filepath.Abs("logs")
	if err != nil {
		return err
	}
	token := &azblobs.MachineToken{Identity: p.Identity}
	h := newPlace(p, &azblobs.Container{URL: p.ContainerURL, HTTP: &http.Client{Timeout: lastTime}, Token: token.Get}, logs, job, machine)
	uploading, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { h.logs.run(uploading, p.Every) })
	err = podjob.Run(ctx, podjob.Config{Host: h, Job: job, Machine: machine, LogDir: logs, Hide: root, LookEvery: p.Every})
	cancel()
	beside.Wait()
	if err != nil && !errors.Is(err, ErrClaimed) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
		defer cancel()
		err = errors.Join(err, h.reportFailure(last, err))
	}
	return err
}
