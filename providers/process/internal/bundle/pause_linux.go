// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// pauses are the instructions, by architecture, of a program that waits for signals in an endless loop.
var pauses = map[string]struct {
	machine uint16
	code    []byte
}{
	"amd64": {62, []byte{
		0xb8, 34, 0, 0, 0, // mov eax, pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the first
	}},
	"arm64": {183, []byte{
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, ppoll
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xfa, 0xff, 0xff, 0x17, // b to the first
	}},
}

// Pause returns the pause program, the first program of a sandbox. It does nothing, and runs as long as the
// sandbox.
func Pause(architecture string) ([]byte, error) {
	p, ok := pauses[architecture]
	if !ok {
		return nil, fmt.Errorf("gVisor runs on amd64 and arm64, and this is %s", architecture)
	}
	const base, header, segment = 0x400000, 64, 56
	size := uint64(header + segment + len(p.code))
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01") // 64 bits, little-endian
	b.Write(make([]byte, 9))
	for _, v := range []any{
		uint16(2), p.machine, uint32(1), uint64(base + header + segment), uint64(header), uint64(0), uint32(0),
		uint16(header), uint16(segment), uint16(1), uint16(0), uint16(0), uint16(0),
		// One segment, readable and executable: the whole file.
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(0x10000),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer returns no errors
	}
	b.Write(p.code)
	return b.Bytes(), nil
}
