// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
)

// streamPatience is how long the event stream may be silent: Nomad sends a sign of life every 30 seconds.
const streamPatience = 45 * time.Second

// streamLasts is how long a stream lasts that was a success.
const streamLasts = 30 * time.Second

// event is one of the stream.
type event struct {
	Topic   string
	Type    string
	Key     string
	Index   uint64
	Payload struct {
		Allocation *nomadapi.Allocation
		Evaluation *nomadapi.Evaluation
	}
}

// events follows the event stream of the namespace: begun is called when it is there, then each with all events that come. It returns
// when the stream breaks or is silent, and never without an error.
func (c *client) events(ctx context.Context, begun func() error, each func(event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(streamPatience, func() { cancel(errors.New("the event stream of Nomad is silent")) })
	defer watchdog.Stop()
	u := c.url("/v1/event/stream", nil)
	values := u.Query()
	values["topic"] = []string{"Allocation", "Evaluation", "Job"}
	u.RawQuery = values.Encode()
	answer, err := c.openAt(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	decoder := json.NewDecoder(answer.Body)
	for first := true; ; first = false {
		var batch struct{ Events []event }
		if err := decoder.Decode(&batch); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("the event stream of Nomad ended: %w", err)
		}
		watchdog.Reset(streamPatience)
		if first {
			if err := begun(); err != nil {
				return err
			}
			watchdog.Reset(streamPatience)
		}
		for _, e := range batch.Events {
			each(e)
		}
	}
}
