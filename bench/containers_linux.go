// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"
)

// containerd is a containerd of our own.
type containerd struct{ *containerdtest.Containerd }

// Cgroup returns the control group in which pods are made.
func (c containerd) Cgroup() string { return c.CgroupParent }

// StartBare makes the three calls of CRI that every start of a pod needs: for its sandbox, for its container,
// and for the start of the container. The image is there, and no further calls are made.
func (c containerd) StartBare(ctx context.Context, pods int) (took []float64, err error) {
	conn, err := c.Connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := runtimeapi.NewRuntimeServiceClient(conn)
	for i := range pods {
		began := time.Now()
		sandbox := &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: podName(i), Namespace: floorName, Uid: podName(i)},
			Hostname: podName(i),
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: c.CgroupParent},
		}
		made, err := client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandbox})
		if err != nil {
			return nil, fmt.Errorf("run sandbox %s: %w", podName(i), err)
		}
		container, err := client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
			PodSandboxId: made.GetPodSandboxId(), SandboxConfig: sandbox,
			Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: appImage}},
		})
		if err != nil {
			return nil, fmt.Errorf("create the container of %s: %w", podName(i), err)
		}
		if _, err := client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.GetContainerId()}); err != nil {
			return nil, fmt.Errorf("start the container of %s: %w", podName(i), err)
		}
		took = append(took, inMillis(time.Since(began)))
	}
	return took, nil
}

// startContainers starts a containerd with the image of the pods, and writes the same image into a folder.
func startContainers(ctx context.Context, counted *accounts, folder string) (containers, error) {
	c, err := containerdtest.New(ctx, containerdtest.Options{CgroupParent: counted.podsGroup(containerdGroup)})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(countContainerd(c, counted), prepareImage(ctx, c, folder)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return containerd{c}, nil
}

// countContainerd counts containerd in its account, with the shims that it will start.
func countContainerd(c *containerdtest.Containerd, counted *accounts) error {
	file, err := counted.makeDaemonGroup(containerdGroup)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(c.PID())), 0); err != nil {
		return fmt.Errorf("count what containerd uses: %w", err)
	}
	return nil
}

// prepareImage gives containerd the image of the pods, and the folder its archive.
func prepareImage(ctx context.Context, c *containerdtest.Containerd, folder string) error {
	image, err := containerdtest.PauseImage(ctx, appImage)
	if err != nil {
		return err
	}
	archive, err := image.Archive()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("write the image of the pods: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "app.tar"), archive, 0o600); err != nil {
		return fmt.Errorf("write the image of the pods: %w", err)
	}
	return c.Import(ctx, image)
}

// removeCgroup removes a control group with all its children.
func removeCgroup(name string) error { return containerdtest.RemoveCgroup(name) }

// unmountBelow unmounts the agents' remaining mounts below a folder, as a kubelet does with its own.
func unmountBelow(folder string) error { return containerdtest.Unmount(folder) }
