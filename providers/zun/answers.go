// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
)

// container is a container in a response of Zun.
type container struct {
	UUID         string               `json:"uuid"`
	Name         string               `json:"name"`
	Status       string               `json:"status"`
	StatusReason string               `json:"status_reason"`
	StatusDetail string               `json:"status_detail"`
	TaskState    string               `json:"task_state"`
	Labels       map[string]string    `json:"labels"`
	Addresses    map[string][]address `json:"addresses"`
	CreatedAt    string               `json:"created_at"`
	Registry     string               `json:"registry_id"`
	// Containers are the containers of a capsule.
	Containers []container `json:"containers"`
}

type address struct {
	Addr    string `json:"addr"`
	Version any    `json:"version"`
}

// action is a requested action on a container.
type action struct {
	Action     string `json:"action"`
	RequestID  string `json:"request_id"`
	StartTime  string `json:"start_time"`
	FinishTime string `json:"finish_time"`
}

// Collections of Zun.
const (
	containers = "containers"
	capsules   = "capsules"
	registries = "registries"
)

// pageSize is the maximum number of items of a page.
const pageSize = "1000"

// eachItem passes each item of a collection to take, from all pages. For a registry, take gets the ID and the name.
func (c *client) eachItem(ctx context.Context, collection string, query url.Values, take func(container)) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", pageSize)
	return openstack.EachItem(collection, query, func(query url.Values, read func(io.Reader) error) error {
		_, err := c.call(ctx, "list "+collection, http.MethodGet, collection, query, nil, read)
		return err
	}, func(c container) string { return c.UUID }, take)
}

func (c *client) readContainer(ctx context.Context, uuid string) (out container, err error) {
	_, err = c.call(ctx, "read container", http.MethodGet, containers+"/"+uuid, nil, nil, &out)
	out.Labels = nil // the reader already knows the pod
	return out, err
}

// requestAction requests an action on a container, and returns the ID of the request.
func (c *client) requestAction(ctx context.Context, uuid, what string, query url.Values) (string, error) {
	header, err := c.call(ctx, what+" container", http.MethodPost, containers+"/"+uuid+"/"+what, query, nil, nil)
	return header.Get("X-Openstack-Request-Id"), err
}

// listStarts returns the starts of a container after the first one, oldest first.
func (c *client) listStarts(ctx context.Context, uuid string) (out []action, err error) {
	var answer struct {
		ContainerActions []action `json:"containerActions"`
	}
	_, err = c.call(ctx, "read the actions of the container", http.MethodGet, containers+"/"+uuid+"/container_actions", nil, nil, &answer)
	for _, a := range answer.ContainerActions {
		if a.Action == "start" {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b action) int { return strings.Compare(a.StartTime, b.StartTime) })
	return out, err
}

// parseTime returns a time of Zun, which is in UTC, or zero if the time is missing or cannot be parsed.
func parseTime(text string) time.Time {
	text, _, _ = strings.Cut(strings.Replace(text, "T", " ", 1), "+")
	t, _ := time.Parse(time.DateTime, text) // the time may have fractions of a second
	return t
}
