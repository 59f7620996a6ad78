// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// log answers GetLogs. It cuts a followed log after a time without a line, as the old provider says of the
// service.
func (s *Server) log(w http.ResponseWriter, r *http.Request, of *workload) error {
	query := r.URL.Query()
	number := func(name string) (n int, err error) {
		if text := query.Get(name); text != "" {
			if n, err = strconv.Atoi(text); err != nil || n < 1 {
				return 0, invalid(name, "%q: want a number", text)
			}
		}
		return n, nil
	}
	opts := api.ContainerLogOpts{Follow: query.Get("follow") == "true", Previous: query.Get("previous") == "true", Timestamps: query.Get("timestamps") == "true"}
	var err error
	for name, into := range map[string]*int{"tail_lines": &opts.Tail, "limit_bytes": &opts.LimitBytes, "since_seconds": &opts.SinceSeconds} {
		if *into, err = number(name); err != nil {
			return err
		}
	}
	if text := query.Get("since_time"); text != "" {
		if opts.SinceTime, err = time.Parse(time.RFC3339, text); err != nil || opts.SinceSeconds > 0 {
			return invalid("since_time", "want a time of RFC 3339, and no since_seconds beside it")
		}
	}
	runner, ns, name := s.Fleet.Runner(of.id)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	log, err := runner.GetContainerLogs(ctx, ns, name, query.Get("container_name"), opts)
	switch {
	case errdefs.IsNotFound(err):
		return notFound("%v", err)
	case errdefs.IsInvalidInput(err):
		return invalid("container_name", "%v", err)
	case err != nil:
		return err
	}
	defer log.Close()
	defer s.opened("logs", of.id)()
	patience := s.FollowFor
	if patience == 0 {
		patience = time.Minute
	}
	quiet := time.AfterFunc(patience, func() { cancel(); log.Close() })
	defer quiet.Stop()
	buffer := make([]byte, 32<<10)
	for {
		n, err := log.Read(buffer)
		if n > 0 {
			quiet.Reset(patience)
			if _, err := w.Write(buffer[:n]); err != nil {
				return nil
			}
			_ = http.NewResponseController(w).Flush() // without Flush, the client would receive the text only at the end
		}
		switch {
		case err != nil && ctx.Err() != nil:
			panic(http.ErrAbortHandler) // the connection is cut in the middle of the answer
		case err != nil:
			return nil
		}
	}
}
