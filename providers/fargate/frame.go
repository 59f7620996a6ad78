// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Types of messages of a data channel of Systems Manager.
const (
	typeInput  = "input_stream_data"
	typeOutput = "output_stream_data"
	typeAck    = "acknowledge"
	typeClosed = "channel_closed"
)

// Types of the payload of a message.
const (
	payloadOutput            = 1
	payloadSize              = 3
	payloadHandshakeRequest  = 5
	payloadHandshakeResponse = 6
	payloadHandshakeComplete = 7
	payloadFlag              = 10
	payloadStderr            = 11
	payloadExitCode          = 12
)

// Offsets in a message. The length of the header counts up to the length of the payload.
const (
	atType, atVersion, atDate, atNumber, atFlags, atID, atDigest, atPayloadType, atLength, atPayload = 4, 36, 40, 48, 56, 64, 80, 112, 116, 120
)

// frame is a message of a data channel.
type frame struct {
	kind    string
	number  int64
	flags   uint64
	id      [16]byte
	payload uint32 // its type
	data    []byte
}

// newID returns the ID of a new message: a random UUID.
func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // rand.Read never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

func uuid(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// marshal encodes a message. The halves of an ID are in reverse order.
func (f frame) marshal() []byte {
	out := make([]byte, atPayload, atPayload+len(f.data))
	binary.BigEndian.PutUint32(out, atLength)
	copy(out[atType:atVersion], f.kind+strings.Repeat(" ", atVersion-atType))
	binary.BigEndian.PutUint32(out[atVersion:], 1)
	binary.BigEndian.PutUint64(out[atDate:], uint64(time.Now().UnixMilli()))
	binary.BigEndian.PutUint64(out[atNumber:], uint64(f.number))
	binary.BigEndian.PutUint64(out[atFlags:], f.flags)
	copy(out[atID:], f.id[8:])
	copy(out[atID+8:], f.id[:8])
	sum := sha256.Sum256(f.data)
	copy(out[atDigest:], sum[:])
	binary.BigEndian.PutUint32(out[atPayloadType:], f.payload)
	binary.BigEndian.PutUint32(out[atLength:], uint32(len(f.data)))
	return append(out, f.data...)
}

var errFrame = errors.New("a message of the data channel is broken")

// unmarshal decodes a message. It accepts the content only if the digest is right.
func unmarshal(in []byte) (f frame, err error) {
	if len(in) < atPayload || binary.BigEndian.Uint32(in) != atLength {
		return f, errFrame
	}
	f.kind = strings.TrimRight(string(in[atType:atVersion]), " \x00")
	f.number = int64(binary.BigEndian.Uint64(in[atNumber:]))
	f.flags = binary.BigEndian.Uint64(in[atFlags:])
	copy(f.id[8:], in[atID:atID+8])
	copy(f.id[:8], in[atID+8:atDigest])
	f.payload = binary.BigEndian.Uint32(in[atPayloadType:])
	f.data = in[atPayload:]
	sum := sha256.Sum256(f.data)
	if int(binary.BigEndian.Uint32(in[atLength:])) != len(f.data) || string(sum[:]) != string(in[atDigest:atPayloadType]) {
		return f, errFrame
	}
	return f, nil
}
