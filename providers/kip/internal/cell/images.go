// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// pullImage implements podjob.PullFunc: it requests the image from the node.
func (a *Agent) pullImage(ctx context.Context, image string, login podjob.Login) (of podjob.Image, files io.ReadCloser, err error) {
	w := Want{ID: rand.Text(), Image: image, Login: login}
	wanted := want{arrives: make(chan *arrival), over: make(chan struct{})}
	a.mu.Lock()
	a.wanted[w.ID] = wanted
	a.state.Wants = append(a.state.Wants[:len(a.state.Wants):len(a.state.Wants)], w)
	a.wakeWatchers()
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.wanted, w.ID)
		close(wanted.over)
		var left []Want
		for _, other := range a.state.Wants {
			if other.ID != w.ID {
				left = append(left, other)
			}
		}
		a.state.Wants = left
		a.wakeWatchers()
	}()
	select {
	case <-ctx.Done():
		return of, nil, status.FromContextError(fmt.Errorf("pull image %s: the node does not send it: %w", image, ctx.Err())).Err()
	case got := <-wanted.arrives:
		if got.head.Error != "" {
			close(got.taken)
			return of, nil, status.Error(got.head.Code, got.head.Error)
		}
		return got.head.Image, &arriving{got.files, got.taken}, nil
	}
}

var errTaken = errdefs.NotFound("no machine waits for this image any more")

// arriving reads the files of an image. Close ends the request of the node.
type arriving struct {
	io.Reader
	taken chan struct{}
}

// Close implements io.Closer.
func (a *arriving) Close() error {
	close(a.taken)
	return nil
}

// receiveImage receives an image from the node.
func (a *Agent) receiveImage(_ http.ResponseWriter, r *http.Request) error {
	a.mu.Lock()
	wanted, is := a.wanted[r.PathValue("id")]
	a.mu.Unlock()
	if !is {
		return errTaken
	}
	body := bufio.NewReader(r.Body)
	line, err := body.ReadBytes('\n')
	if err != nil {
		return errdefs.AsInvalidInput(fmt.Errorf("read the image: %w", err))
	}
	got := &arrival{files: body, taken: make(chan struct{})}
	if err := json.Unmarshal(line, &got.head); err != nil {
		return errdefs.AsInvalidInput(fmt.Errorf("read the image: %w", err))
	}
	select {
	case wanted.arrives <- got:
	case <-wanted.over: // another request was first, for example after a new connection
		return errTaken
	case <-r.Context().Done():
		return r.Context().Err()
	}
	select {
	case <-got.taken:
	case <-r.Context().Done():
	}
	return nil
}
