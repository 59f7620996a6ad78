// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer echoes input as output until the input or the container ends. Without input it follows the
// log of the container until the container ends.
func (p *provider) AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	show := func(sh *shell, follow bool) error {
		log, err := p.GetContainerLogs(sh.ctx, namespace, podName, containerName, api.ContainerLogOpts{Follow: follow})
		if err != nil {
			return err
		}
		_, err = io.Copy(sh.stdout, log)
		return errors.Join(err, log.Close())
	}
	if attach.Stdin() == nil {
		sh, _, _, err := p.openShell(ctx, namespace, podName, containerName, attach)
		if err != nil {
			return err
		}
		return show(sh, true) // to its last line
	}
	err := p.runSession(ctx, namespace, podName, containerName, attach, func(sh *shell) error {
		if err := show(sh, false); err != nil {
			return err
		}
		_, err := io.Copy(sh.stdout, sh.stdin)
		return err
	})
	if errors.Is(err, errRunEnded) {
		return nil // the status of the pod has the outcome
	}
	return err
}
