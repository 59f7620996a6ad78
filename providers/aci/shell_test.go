// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec/shelltest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// shelled runs containers with a stand-in for a shell.
type shelled struct{ *inprocess.Provider }

// RunInContainer implements nodeutil.Provider.
func (s shelled) RunInContainer(ctx context.Context, namespace, pod, container string, command []string, attach api.AttachIO) error {
	if len(command) != 1 || command[0] != shell || !attach.TTY() {
		return fmt.Errorf("%q: want a shell on a terminal", command)
	}
	return shelltest.Run(command, attach, func(command []string, attach api.AttachIO) error {
		return s.Provider.RunInContainer(ctx, namespace, pod, container, command, attach)
	})
}
