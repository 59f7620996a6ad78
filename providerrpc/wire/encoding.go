// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// ProtocolVersion is the version of the protocol in this package.
const ProtocolVersion = 1

// DefaultMaxMessageBytes is the default size limit of a message.
const DefaultMaxMessageBytes = 16 << 20

// Object is a Kubernetes object that supports both encodings.
type Object interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Marshal encodes o.
func Marshal(e rpc.Encoding, o Object) ([]byte, error) {
	switch e {
	case rpc.Encoding_ENCODING_JSON:
		return json.Marshal(o)
	case rpc.Encoding_ENCODING_PROTOBUF:
		return o.Marshal()
	}
	return nil, fmt.Errorf("unknown encoding %v", e)
}

// Unmarshal decodes data into o. The caller passes an empty o.
func Unmarshal(e rpc.Encoding, data []byte, o Object) error {
	switch e {
	case rpc.Encoding_ENCODING_JSON:
		return json.Unmarshal(data, o)
	case rpc.Encoding_ENCODING_PROTOBUF:
		return o.Unmarshal(data)
	}
	return fmt.Errorf("unknown encoding %v", e)
}
