// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// decode reads a body. An error does not repeat it.
func decode(r *http.Request, to any) error {
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		return errdefs.InvalidInputf("%s: the body does not follow the protocol", r.URL.Path)
	}
	return nil
}

// submitted decodes the pod in the body of a create request. The body has one of three forms: the form of API
// servers, a list as in the description of the protocol, or the form of a virtual node that connects without an
// API server.
func submitted(raw json.RawMessage) (in wire.Retrieved, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		var list []wire.Retrieved
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
			return in, errdefs.InvalidInput("the body is not one pod")
		}
		return list[0], nil
	}
	if _, sorted := fields["container"]; !sorted { // the body of a server is sorted by container
		var c wire.Create
		if json.Unmarshal(raw, &c) != nil {
			return in, errdefs.InvalidInput("the body does not follow the protocol")
		}
		return wire.Retrieved{Pod: c.Pod, Containers: []wire.Container{{ConfigMaps: c.ConfigMaps, Projected: c.Projected, Secrets: c.Secrets}}}, nil
	}
	if json.Unmarshal(raw, &in) != nil {
		return in, errdefs.InvalidInput("the body does not follow the protocol")
	}
	return in, nil
}
