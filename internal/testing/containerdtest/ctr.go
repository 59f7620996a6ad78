// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// criNamespace is containerd's namespace for the objects of the Container Runtime Interface.
const criNamespace = "k8s.io"

// importArchive imports an archive from a file, or from the reader when the name is "-", and returns when the
// images can be used. Their names come from ctr's output, which has a line for each unpacked image.
func (c *Containerd) importArchive(ctx context.Context, name string, from io.Reader) error {
	cmd := exec.CommandContext(ctx, "ctr", "--address", c.socketPath(), "--namespace", criNamespace, "images", "import", name)
	cmd.Stdin = from
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "unpacking" {
			if err := c.awaitImage(ctx, fields[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitImage returns when the interface for runtimes has the image: it learns about the imports of other clients
// by events.
func (c *Containerd) awaitImage(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	conn, err := c.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimeapi.NewImageServiceClient(conn)
	for {
		status, err := client.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		if err == nil && status.GetImage() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for image %s: %w", name, errors.Join(ctx.Err(), err))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
