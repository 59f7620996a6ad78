// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Client is a provider with its pods at a Backend in another process.
type Client struct {
	http *http.Client
	node string // the node of its pods; "": all nodes
}

// NewClient returns a client of the backend at the socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Second}}}
}

// Of returns a client with the pods of the node only.
func (c *Client) Of(node string) *Client { return &Client{http: c.http, node: node} }

// callBackend makes one call and returns the pods of the answer.
func (c *Client) callBackend(ctx context.Context, method, namespace, name string, pod *corev1.Pod) ([]*corev1.Pod, error) {
	body, err := json.Marshal(call{Method: method, Namespace: namespace, Name: name, Node: c.node, Pod: pod, Sent: time.Now()})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://backend/call", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", method, err)
	}
	switch {
	case a.Panic != "":
		panic(a.Panic)
	case a.NotFound:
		return nil, errdefs.NotFound(a.Error)
	case a.Error != "":
		return nil, errors.New(a.Error)
	}
	return a.Pods, nil
}

// CreatePod starts an instance.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.callBackend(ctx, "CreatePod", pod.Namespace, pod.Name, pod)
	return err
}

// UpdatePod changes the pod of an instance.
func (c *Client) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.callBackend(ctx, "UpdatePod", pod.Namespace, pod.Name, pod)
	return err
}

// DeletePod stops an instance.
func (c *Client) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.callBackend(ctx, "DeletePod", pod.Namespace, pod.Name, pod)
	return err
}

// GetPod returns the newest instance of the name.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.onePod(ctx, "GetPod", namespace, name)
}

// GetPodStatus returns the status of the newest instance of the name.
func (c *Client) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := c.onePod(ctx, "GetPodStatus", namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (c *Client) onePod(ctx context.Context, method, namespace, name string) (*corev1.Pod, error) {
	pods, err := c.callBackend(ctx, method, namespace, name, nil)
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("%s: got %d pods, want one", method, len(pods))
	}
	return pods[0], nil
}

// GetPods returns all instances, or the instances of the node.
func (c *Client) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	return c.callBackend(ctx, "GetPods", "", "", nil)
}

// Ping returns an error if the backend does not answer.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.callBackend(ctx, "Ping", "", "", nil)
	return err
}

// NotifyPods passes on the backend's reports until ctx ends.
func (c *Client) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	go func() {
		for ctx.Err() == nil {
			c.watchPods(ctx, notify)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
}

func (c *Client) watchPods(ctx context.Context, notify func(*corev1.Pod)) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend/watch?node="+c.node, http.NoBody)
	if err != nil {
		return
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for lines := json.NewDecoder(resp.Body); ; {
		var pod corev1.Pod
		if err := lines.Decode(&pod); err != nil {
			return
		}
		notify(&pod)
	}
}

// RunInContainer runs one of two commands: "exit" with a code, and "wait" (prints "ready" and never ends by
// itself).
func (c *Client) RunInContainer(ctx context.Context, namespace, pod, _ string, cmd []string, attach api.AttachIO) error {
	if _, err := c.callBackend(ctx, "RunInContainer", namespace, pod, nil); err != nil {
		return err
	}
	if len(cmd) == 2 && cmd[0] == "exit" {
		code, err := strconv.Atoi(cmd[1])
		if err != nil {
			return errdefs.AsInvalidInput(err)
		}
		return utilexec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return c.wait(ctx, attach)
}

func (c *Client) wait(ctx context.Context, attach api.AttachIO) error {
	if _, err := io.WriteString(attach.Stdout(), "ready\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// AttachToContainer prints "ready" and never ends by itself.
func (c *Client) AttachToContainer(ctx context.Context, namespace, pod, _ string, attach api.AttachIO) error {
	if _, err := c.callBackend(ctx, "AttachToContainer", namespace, pod, nil); err != nil {
		return err
	}
	return c.wait(ctx, attach)
}

// PortForward sends its input back.
func (c *Client) PortForward(ctx context.Context, namespace, pod string, _ int32, stream io.ReadWriteCloser) error {
	if _, err := c.callBackend(ctx, "PortForward", namespace, pod, nil); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	_, err := io.Copy(stream, stream)
	return err
}

// GetContainerLogs returns one line.
func (c *Client) GetContainerLogs(ctx context.Context, namespace, pod, _ string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
	if _, err := c.callBackend(ctx, "GetContainerLogs", namespace, pod, nil); err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader("a line\n")), nil
}

// GetStatsSummary returns nothing of interest.
func (c *Client) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	_, err := c.callBackend(ctx, "GetStatsSummary", "", "", nil)
	return &statsv1alpha1.Summary{}, err
}

// GetMetricsResource returns nothing of interest.
func (c *Client) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	_, err := c.callBackend(ctx, "GetMetricsResource", "", "", nil)
	return nil, err
}
