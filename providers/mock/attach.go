// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer shows the log of a container and what is typed: input comes back as
// output until it ends. Without input it follows the log until the container ends.
func (p *provider) AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	sh, err := p.shell(ctx, namespace, podName, containerName, attach)
	if err != nil {
		return err
	}
	follow := attach.Stdin() == nil
	log, err := p.GetContainerLogs(ctx, namespace, podName, containerName, api.ContainerLogOpts{Follow: follow})
	if err != nil {
		return err
	}
	_, err = io.Copy(sh.stdout, log)
	if err := errors.Join(err, log.Close()); err != nil || follow {
		return err
	}
	_, err = io.Copy(sh.stdout, sh.stdin)
	return err
}
