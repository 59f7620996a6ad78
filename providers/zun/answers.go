// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// container is a container as Zun shows it.
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

// registry is the create of a login for images.
type registry struct {
	Name     string `json:"name"`
	Domain   string `json:"domain"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// The collections of Zun.
const (
	containers = "containers"
	capsules   = "capsules"
	registries = "registries"
)

const (
	// pageSize is the maximum number of items of a page, and maxPages the maximum number of pages of a list.
	pageSize, maxPages = "1000", 100
)

// list reads all pages of a collection. Of a registry, it reads the ID and the name.
func (c *client) list(ctx context.Context, collection string, query url.Values) (all []container, err error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", pageSize)
	for range maxPages {
		var page struct {
			Containers, Capsules, Registries []container // one of them is there
			Next                             *string
		}
		if _, err := c.call(ctx, "list "+collection, http.MethodGet, collection, query, nil, &page); err != nil {
			return nil, err
		}
		some := slices.Concat(page.Containers, page.Capsules, page.Registries)
		all = append(all, some...)
		if page.Next == nil {
			return all, nil
		}
		if len(some) == 0 || query.Get("marker") == some[len(some)-1].UUID {
			return nil, fmt.Errorf("list %s: Zun gives the same page again", collection)
		}
		query.Set("marker", some[len(some)-1].UUID)
	}
	return nil, fmt.Errorf("list %s: the list has more than %d pages of %s", collection, maxPages, pageSize)
}

func (c *client) get(ctx context.Context, uuid string) (out container, err error) {
	_, err = c.call(ctx, "read container", http.MethodGet, containers+"/"+uuid, nil, nil, &out)
	out.Labels = nil // its reader knows the pod
	return out, err
}

// do asks for an action on a container, and returns the ID of the request.
func (c *client) do(ctx context.Context, uuid, what string, query url.Values) (string, error) {
	header, err := c.call(ctx, what+" container", http.MethodPost, containers+"/"+uuid+"/"+what, query, nil, nil)
	return header.Get("X-Openstack-Request-Id"), err
}

// starts returns the starts of a container after the first, the oldest first.
func (c *client) starts(ctx context.Context, uuid string) (out []action, err error) {
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
	t, _ := time.Parse(time.DateTime, text) // with a part of a second, too
	return t
}
