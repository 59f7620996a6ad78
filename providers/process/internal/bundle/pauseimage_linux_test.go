// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"testing"
)

// TestPauseImageHasTheProgramAndPlacesForMounts reads the image like a kernel. The kernel looks names up by
// binary search, so the names must be sorted.
func TestPauseImageHasTheProgramAndPlacesForMounts(t *testing.T) {
	program, err := Pause(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	image, err := PauseImage(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	head := image[1024:]
	if magic, block := le.Uint32(head), head[12]; magic != 0xe0f5e1e2 || block != 12 || len(image)%4096 != 0 || int(le.Uint32(head[36:])) != len(image)/4096 {
		t.Fatalf("the head: %#x, blocks of 2^%d, %d of %d bytes", magic, block, le.Uint32(head[36:]), len(image))
	}
	inode := func(number uint32) []byte { return image[le.Uint32(head[40:])*4096+number*32:] }
	list := func(number uint32) map[string]uint32 {
		at := inode(number)
		if le.Uint16(at) != 2<<1 || le.Uint16(at[4:]) != 0o040755 {
			t.Fatalf("inode %d: layout %d, mode %o", number, le.Uint16(at), le.Uint16(at[4:]))
		}
		data := at[32 : 32+le.Uint32(at[8:])]
		var names []string
		got := map[string]uint32{}
		for i := 0; i < int(le.Uint16(data[8:]))/12; i++ {
			begin, end := int(le.Uint16(data[i*12+8:])), len(data)
			if (i+1)*12 < int(le.Uint16(data[8:])) {
				end = int(le.Uint16(data[(i+1)*12+8:]))
			}
			names = append(names, string(data[begin:end]))
			got[string(data[begin:end])] = le.Uint32(data[i*12:])
		}
		if !slices.IsSorted(names) {
			t.Errorf("inode %d: the names are in the order %q", number, names)
		}
		return got
	}
	root := uint32(le.Uint16(head[14:]))
	files := list(root)
	if got, want := slices.Sorted(maps.Keys(files)), []string{".", "..", "dev", "pause", "proc", "sys", "tmp"}; !slices.Equal(got, want) {
		t.Fatalf("the root has %q, want %q", got, want)
	}
	for name, number := range files {
		switch name {
		case "pause":
			at := inode(number)
			begin := le.Uint32(at[16:]) * 4096
			if le.Uint16(at[4:]) != 0o100555 || !bytes.Equal(image[begin:begin+le.Uint32(at[8:])], program) {
				t.Error("the program is another one, or cannot be run")
			}
		case ".", "..":
			if number != root {
				t.Errorf("%s is inode %d", name, number)
			}
		default:
			if got := list(number); len(got) != 2 || got["."] != number || got[".."] != root {
				t.Errorf("%s has %v", name, got)
			}
		}
	}
	if _, err := PauseImage("s390x"); err == nil {
		t.Error("an architecture without gVisor: got no error")
	}
}
