// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

func (s *server) logs(w http.ResponseWriter, r *http.Request) error {
	var asked wire.Logs
	if err := decode(r, &asked); err != nil {
		return err
	}
	k := s.pods.get(types.UID(asked.PodUID))
	if k == nil {
		return errdefs.NotFoundf("the plugin has no pod with the UID %q", asked.PodUID)
	}
	if err := s.pods.owns(r.Context(), k); err != nil {
		return err
	}
	stream, err := s.pods.provider.GetContainerLogs(r.Context(), k.Pod.Namespace, k.Pod.Name, asked.Container, api.ContainerLogOpts(asked.Options))
	if err != nil {
		return err
	}
	defer stream.Close()
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	_, err = io.Copy(flushed{w, http.NewResponseController(w)}, stream)
	if err != nil && r.Context().Err() == nil {
		log.G(r.Context()).WithError(err).Warn("The log of a container broke off")
	}
	return nil
}

// flushed flushes after every write.
type flushed struct {
	http.ResponseWriter
	controller *http.ResponseController
}

// Write implements io.Writer.
func (f flushed) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	return n, errors.Join(err, f.controller.Flush())
}
